"""Which tools cover the project as a whole? Those for its index of words and symbols, and for its memory."""

from collections.abc import Callable
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
    Run,
    Tool,
)

MOST = 100
AnyPath = Annotated[str, "Only in this file or folder", Is(shortest=1, longest=4096)]
Globs = Annotated[str, "Only these files: `*.py`, `src/**/*.{ts,tsx}`, `*.c;!test_*`", Is(shortest=1, longest=1000)]
Most = Annotated[int, "Maximum number of results", Is(default=20, at_least=1, at_most=MOST)]
Skipped = Annotated[int, "How many results to skip", Is(default=0, at_least=0, at_most=1_000_000)]


def build_reading_tool(
    name: str,
    words: tuple[str, str],
    arguments: type,
    run: Run,
    subject: tuple[str, RuleSubject],
    demand: Callable[[Arguments], Demand] | None = None,
) -> Tool:
    """A tool of this pack; `words` are its title and its description."""
    return Tool(
        name=name,
        title=words[0],
        description=words[1],
        arguments=build_schema(arguments),
        profile=Profile.RESTRICTED,
        effect=Effect.READ_LOCAL,
        stages=WARMUP | ACTING | REVIEWING,
        run=run,
        subject=subject,
        demand=demand,
        confirmation=Confirmation.BY_ARGUMENTS if demand else Confirmation.NEVER,
    )


class ProjectSearchArguments(TypedDict):
    query: Annotated[str, 'Words; `begin*`; `"a phrase"`', Is(shortest=1, longest=1000)]
    path: NotRequired[AnyPath]
    glob: NotRequired[Globs]
    limit: NotRequired[Most]
    offset: NotRequired[Skipped]


INDEX_SEARCH = build_reading_tool(
    "index_search",
    (
        "Search the project",
        "Search the index of the whole project for words: shows `path:line: text`, best first. A file matches if it "
        "contains every word; lines with more of them, definitions and matching paths come first. Case does not "
        "matter, and `parse request` finds `parse_request` and `parseRequest`. The index updates itself and leaves "
        "out files that .gitignore names, binary files, files over 1 MB and files that usually hold secrets. For "
        'regular expressions use grep. Example: {"query": "retry backoff", "glob": "*.py"}',
    ),
    ProjectSearchArguments,
    LazyFunction("tools.project.search:search_index"),
    ("path", RuleSubject.PATH),
)

KINDS = (
    *("class", "function", "method", "interface", "struct", "enum", "type", "module", "constant", "variable"),
    *("table", "heading"),
)
"""The index's kinds of symbols, written out here so that listing the tools does not load the port."""


class ProjectSymbolArguments(TypedDict):
    query: NotRequired[
        Annotated[str, "A name or a part of it: `Store`, `Store.open`, `handler`", Is(shortest=1, longest=300)]
    ]
    path: NotRequired[AnyPath]
    glob: NotRequired[Globs]
    kind: NotRequired[Annotated[str, "Only this kind", Is(enum=KINDS)]]
    limit: NotRequired[Annotated[int, "Maximum number of results", Is(default=50, at_least=1, at_most=MOST)]]
    offset: NotRequired[Skipped]


INDEX_SYMBOLS = build_reading_tool(
    "index_symbols",
    (
        "Find definitions",
        "Find where classes, functions, methods, types, constants and headings are defined, by name or a part of it: "
        "`path:first-last: kind Full.name: its line`, exact names first. With `path` alone, shows the outline of a "
        "file or folder. Knows Python, JavaScript, TypeScript, Go, Rust, Java, Kotlin, C#, C, C++, Swift, Scala, PHP, "
        'Ruby, Lua, shell, SQL and Markdown. Read one with index_read. Example: {"query": "Store.open"}',
    ),
    ProjectSymbolArguments,
    LazyFunction("tools.project.search:search_symbols"),
    ("path", RuleSubject.PATH),
)

LINES = 200
MOST_LINES = 1000


class ProjectReadArguments(TypedDict):
    path: Annotated[str, "The file, absolute or relative to the workspace", Is(shortest=1, longest=4096)]
    symbol: NotRequired[Annotated[str, "Show this definition: `open`, `Store.open`", Is(shortest=1, longest=300)]]
    line: NotRequired[Annotated[int, "First line to show, counted from 1", Is(default=1, at_least=1)]]
    limit: NotRequired[Annotated[int, "How many lines", Is(default=LINES, at_least=1, at_most=MOST_LINES)]]


def demand_reading(args: Arguments) -> Demand:
    return Demand(Effect.READ_LOCAL, Profile.RESTRICTED, protected.describe_read_risk(args["path"]))


INDEX_READ = build_reading_tool(
    "index_read",
    (
        "Read a definition",
        "Show one definition of a file in full, with line numbers, by its `symbol`; or the lines of the "
        "file from `line` on. Reads the file as it is now. Before changing a file with Edit or Write, read it with "
        'Read. Example: {"path": "src/store.py", "symbol": "Store.open"}',
    ),
    ProjectReadArguments,
    LazyFunction("tools.project.read:read"),
    ("path", RuleSubject.PATH),
    demand_reading,
)

TIERS = ("fact", "decision", "outcome")
"""The memory's tiers, written out for the same reason."""


class ProjectMemoryArguments(TypedDict):
    query: NotRequired[Annotated[str, "Words; if left out, the newest entries", Is(shortest=1, longest=1000)]]
    tier: NotRequired[Annotated[str, "Only this kind", Is(enum=TIERS)]]
    limit: NotRequired[Annotated[int, "Maximum number of results", Is(default=10, at_least=1, at_most=50)]]
    offset: NotRequired[Skipped]


MEMORY_SEARCH = build_reading_tool(
    "memory_search",
    (
        "Search the memory",
        "Look up what earlier runs learned about this project: `fact` (paths, build commands), `decision` (how it is "
        "built and why), `outcome` (how the last runs ended). Only runs that succeeded, and the user, add to it: lines "
        "of the final answer that begin with `Fact:` or `Decision:` are kept. "
        'Example: {"query": "database", "tier": "decision"}',
    ),
    ProjectMemoryArguments,
    LazyFunction("tools.project.search:search_memory"),
    ("query", RuleSubject.TEXT),
)


TOOLS = (INDEX_SEARCH, INDEX_SYMBOLS, INDEX_READ, MEMORY_SEARCH)
