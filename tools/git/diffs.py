"""What did change? In the worktree, in the index, or since another commit."""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from mcp_server.model.ending import Done, Ending
from mcp_server.model.ports.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tool import ACTING, REVIEWING, WARMUP, Arguments, Demand, Effect, Hints, Subject, Tool
from tools.files import consent
from tools.git.patches import PAGE, Asked, Shown, shown
from tools.git.program import Git, opened
from tools.git.revisions import compared

READING_ONLY = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
EVERYWHERE = WARMUP | ACTING | REVIEWING
MOST_CHARS = PAGE + 24_000

RepoPath = Annotated[
    str, "The repository's folder, absolute or relative to the workspace; the workspace if left out", Is(longest=4096)
]
ContextLines = Annotated[int, "Unchanged lines around each change", Is(default=3, at_least=0, at_most=1000)]
Paths = Annotated[
    list[Annotated[str, Is(shortest=1, longest=4096)]],
    "Only these files or folders, relative to `repo_path`",
    Is(most_items=200),
]
Offset = Annotated[int, "Line of the patch to start at, from 1", Is(default=1, at_least=1)]


class DiffArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    context_lines: NotRequired[ContextLines]
    paths: NotRequired[Paths]
    offset: NotRequired[Offset]


class TargetArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    target: Annotated[
        str, "Commit, branch or tag to compare the files with, or `A..B`, `A...B`", Is(shortest=1, longest=1000)
    ]
    context_lines: NotRequired[ContextLines]
    paths: NotRequired[Paths]
    offset: NotRequired[Offset]


async def diff_unstaged(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await opened(ctx, args.get("repo_path", ""))
    found = await _shown(git, "git_diff_unstaged", args)
    return ended(git, found, "No unstaged changes: the files are as they are in the index. git_status shows new files.")


async def diff_staged(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await opened(ctx, args.get("repo_path", ""))
    found = await _shown(git, "git_diff_staged", args, "--cached")
    return ended(git, found, "No staged changes: the next commit would be empty. git_add stages files.")


async def diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await opened(ctx, args.get("repo_path", ""))
    ends = await compared(git, args["target"])
    return ended(git, await _shown(git, "git_diff", args, *ends), f"No difference to `{args['target']}`.")


async def _shown(git: Git, tool: str, args: Mapping[str, Any], *ends: str) -> Shown:
    around = f"--unified={args.get('context_lines', 3)}"
    return await shown(git, Asked(tool, args, ("diff", *ends), ("diff", around, *ends)))


def ended(git: Git, found: Shown, nothing: str) -> Ending:
    if not found.total:
        return Done(nothing, found.data, meta={"files": 0})
    return Done(found.text, found.data, outside=source(git), meta={"files": found.total})


def source(git: Git) -> str:
    """Where the text comes from: whoever wrote the files and the commits."""
    return f"the git repository in {git.repository.name}"


def demand(args: Arguments) -> Demand:
    paths = [path for path in args.get("paths", ()) if isinstance(path, str)]
    return Demand(
        Effect.READ_LOCAL, Profile.RESTRICTED, next((why for path in paths if (why := consent.to_read(path))), None)
    )


DIFF_UNSTAGED = Tool(
    name="git_diff_unstaged",
    title="Changes not staged",
    description=(
        "Show what changed in the working tree and is not staged yet (git diff), as a patch. New files git does not "
        "know are in git_status. Long patches come in pages; the answer names the call that goes on."
    ),
    arguments=schema_of(DiffArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=diff_unstaged,
    demand=demand,
    subject=("repo_path", Subject.PATH),
    shut_in=True,
    max_result_chars=MOST_CHARS,
    large=True,
)

DIFF_STAGED = Tool(
    name="git_diff_staged",
    title="Changes staged",
    description=(
        "Show what is staged, which is what the next commit will hold (git diff --cached), as a patch. Long patches "
        "come in pages; the answer names the call that goes on."
    ),
    arguments=schema_of(DiffArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=diff_staged,
    demand=demand,
    subject=("repo_path", Subject.PATH),
    shut_in=True,
    max_result_chars=MOST_CHARS,
    large=True,
)

DIFF = Tool(
    name="git_diff",
    title="Compare with a commit or branch",
    description=(
        "Compare the working tree with a branch, tag or commit, or two of them with each other (git diff): "
        '{"target": "main"}, {"target": "main...feature"}. Shows a patch, in pages where it is long.'
    ),
    arguments=schema_of(TargetArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=diff,
    demand=demand,
    subject=("repo_path", Subject.PATH),
    shut_in=True,
    max_result_chars=MOST_CHARS,
    large=True,
)
