"""Which tools search? `grep` searches the content of files, `glob` their names."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import (
    ACTING,
    REVIEWING,
    WARMUP,
    Arguments,
    Confirmation,
    Demand,
    Effect,
    LazyFunction,
    RuleSubject,
    Tool,
)

ENTRIES = 250
MOST_AROUND = 100
WANT = {"files_with_matches": "files", "content": "content", "count": "count"}
LEFT_OUT = "files that .gitignore names, `.git`, binary files, and files that usually hold secrets (`.env`, keys)"
AnyPath = Annotated[str, "File or folder to search; the workspace if left out", Is(shortest=1, longest=4096)]
Folder = Annotated[str, "Folder to look in; the workspace if left out", Is(shortest=1, longest=4096)]
FileGlob = Annotated[str, "Only these files: `*.py`, `src/**/*.{ts,tsx}`, `*.c;!test_*`", Is(shortest=1, longest=1000)]
FileType = Annotated[str, "Only files of a type: py, js, ts, rust, go, java, c, cpp ...", Is(shortest=1, longest=40)]
Mode = Annotated[str, "Paths, matching lines, or lines per file", Is(default="files_with_matches", enum=tuple(WANT))]
After = Annotated[int, "Lines after each match", Is(at_least=0, at_most=MOST_AROUND)]
Before = Annotated[int, "Lines before each match", Is(at_least=0, at_most=MOST_AROUND)]
Around = Annotated[int, "Lines around each match", Is(at_least=0, at_most=MOST_AROUND)]
Most = Annotated[int, "Maximum number of entries; 0 for all", Is(default=ENTRIES, at_least=0)]
Skipped = Annotated[int, "How many entries to skip", Is(default=0, at_least=0)]

GrepArguments = TypedDict(
    "GrepArguments",
    {
        "pattern": Annotated[str, "Regular expression", Is(shortest=1, longest=4000)],
        "path": NotRequired[AnyPath],
        "glob": NotRequired[FileGlob],
        "type": NotRequired[FileType],
        "output_mode": NotRequired[Mode],
        "-i": NotRequired[Annotated[bool, "Ignore case", Is(default=False)]],
        "-n": NotRequired[Annotated[bool, "Line numbers", Is(default=True)]],
        "-A": NotRequired[After],
        "-B": NotRequired[Before],
        "-C": NotRequired[Around],
        "context": NotRequired[Around],
        "-o": NotRequired[Annotated[bool, "Only what matched", Is(default=False)]],
        "multiline": NotRequired[Annotated[bool, "Match across lines; `.` matches line ends", Is(default=False)]],
        "head_limit": NotRequired[Most],
        "offset": NotRequired[Skipped],
    },
)


class GlobArguments(TypedDict):
    pattern: Annotated[str, "`*.py` at any depth, `src/**/*.ts`, several with `;`", Is(shortest=1, longest=1000)]
    path: NotRequired[Folder]
    offset: NotRequired[Skipped]


def demand_searching(args: Arguments) -> Demand:
    return Demand(Effect.READ_LOCAL, Profile.RESTRICTED, protected.describe_read_risk(str(args.get("path", ""))))


GREP = Tool(
    name="grep",
    title="Search in files",
    description=(
        "Search the contents of files with a regular expression. Shows the paths of matching files, sorted; "
        '`output_mode` "content" shows lines as `path:line:text`, "count" how many per file. Up to 250 entries, with '
        f"totals and the call for the next page. Searches hidden files, but not {LEFT_OUT}, unless `path` names the "
        "file. Links are not followed, lines are cut at 500 characters. Write `\\{` for a literal brace. Example: "
        '{"pattern": "def main", "type": "py", "output_mode": "content", "-C": 2}'
    ),
    arguments=build_schema(GrepArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("tools.search.search:grep"),
    demand=demand_searching,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("path", RuleSubject.PATH),
    large=True,
)

GLOB = Tool(
    name="glob",
    title="Find files by name",
    description=(
        "Find files whose path matches a pattern, newest first, 100 at a time. A pattern without `/` matches names at "
        "any depth, `**` any number of folders, `{a,b}` either; `;` separates several, `!` excludes. Hidden files are "
        "found; `.git`, files that .gitignore names, folders and links are not. "
        'Example: {"pattern": "src/**/*.{ts,tsx}"}'
    ),
    arguments=build_schema(GlobArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    stages=WARMUP | ACTING | REVIEWING,
    run=LazyFunction("tools.search.search:glob"),
    subject=("path", RuleSubject.PATH),
)


TOOLS = (GREP, GLOB)
