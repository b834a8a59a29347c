"""What is offered for looking at a repository? Its state, its differences, its commits and branches."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tools import (
    ACTING,
    REVIEWING,
    WARMUP,
    Arguments,
    Demand,
    Effect,
    Hints,
    LazyFunction,
    RuleSubject,
    Tool,
)

PAGE = 48_000
"""Characters of a patch in one answer."""

MOST_CHARS = PAGE + 24_000
READING_ONLY = Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
EVERYWHERE = WARMUP | ACTING | REVIEWING

RepoPath = Annotated[
    str,
    "The repository's folder, absolute or relative to the workspace",
    Is(shortest=1, default=".", longest=4096),
]

ContextLines = Annotated[int, "Unchanged lines around each change", Is(default=3, at_least=0, at_most=1000)]

Paths = Annotated[
    list[Annotated[str, Is(shortest=1, longest=4096)]],
    "Only these files or folders, relative to `repo_path`",
    Is(most_items=200),
]

Offset = Annotated[int, "Line of the patch to start at, from 1", Is(default=1, at_least=1)]


class GitStatusArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    offset: NotRequired[Annotated[int, "How many entries to leave out first", Is(default=0, at_least=0)]]


STATUS = Tool(
    name="git_status",
    title="State of the repository",
    description=(
        "Show the branch, how it stands to its upstream, and which files are staged, changed, in conflict or new "
        "(git status). Folders of new files are named as one."
    ),
    arguments=schema_of(GitStatusArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.status:status"),
    subject=("repo_path", RuleSubject.PATH),
    shut_in=True,
)


class GitDiffArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    context_lines: NotRequired[ContextLines]
    paths: NotRequired[Paths]
    offset: NotRequired[Offset]


class GitDiffTargetArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    target: Annotated[
        str, "Commit, branch or tag to compare the files with, or `A..B`, `A...B`", Is(shortest=1, longest=1000)
    ]
    context_lines: NotRequired[ContextLines]
    paths: NotRequired[Paths]
    offset: NotRequired[Offset]


def demand_reading(args: Arguments) -> Demand:
    paths = [path for path in args.get("paths", ()) if isinstance(path, str)]
    return Demand(
        Effect.READ_LOCAL, Profile.RESTRICTED, next((why for path in paths if (why := protected.to_read(path))), None)
    )


DIFF_UNSTAGED = Tool(
    name="git_diff_unstaged",
    title="Changes not staged",
    description=(
        "Show what changed in the working tree and is not staged yet (git diff), as a patch. New files git does not "
        "know are in git_status. Long patches come in pages; the answer names the call that goes on."
    ),
    arguments=schema_of(GitDiffArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.diff:diff_unstaged"),
    demand=demand_reading,
    subject=("repo_path", RuleSubject.PATH),
    paths=("repo_path", "paths"),
    base="repo_path",
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
    arguments=schema_of(GitDiffArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.diff:diff_staged"),
    demand=demand_reading,
    subject=("repo_path", RuleSubject.PATH),
    paths=("repo_path", "paths"),
    base="repo_path",
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
    arguments=schema_of(GitDiffTargetArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.diff:diff"),
    demand=demand_reading,
    subject=("repo_path", RuleSubject.PATH),
    paths=("repo_path", "paths"),
    base="repo_path",
    shut_in=True,
    max_result_chars=MOST_CHARS,
    large=True,
)

MOST_COUNT = 500
When = Annotated[
    str, "A time: `2026-11-01`, `2026-11-01T09:30:00`, `2 weeks ago`, `yesterday`", Is(shortest=1, longest=60)
]


class GitLogArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    max_count: NotRequired[Annotated[int, "How many commits", Is(default=10, at_least=1, at_most=MOST_COUNT)]]
    start_timestamp: NotRequired[Annotated[When, "Only commits after this time"]]
    end_timestamp: NotRequired[Annotated[When, "Only commits before this time"]]
    revision: NotRequired[Annotated[str, "Where to start; HEAD if left out", Is(longest=1000, shortest=1)]]
    paths: NotRequired[Paths]
    offset: NotRequired[Annotated[int, "How many commits to leave out first", Is(default=0, at_least=0)]]


LOG = Tool(
    name="git_log",
    title="History of commits",
    description=(
        "Show the commit log (git log), newest first: 12 digits of the commit, date, author, first line of the "
        "message; optionally only between two times, of some files, or of another branch."
    ),
    arguments=schema_of(GitLogArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.history:log"),
    subject=("repo_path", RuleSubject.PATH),
    paths=("repo_path", "paths"),
    base="repo_path",
    shut_in=True,
    max_result_chars=MOST_CHARS,
)


class GitShowArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    revision: Annotated[str, "Commit, branch or tag, such as `HEAD~1` or `v1.2`", Is(shortest=1, longest=1000)]
    context_lines: NotRequired[ContextLines]
    paths: NotRequired[Paths]
    offset: NotRequired[Offset]


SHOW = Tool(
    name="git_show",
    title="One commit",
    description=(
        "Show a commit: author, date, message, and what it changed as a patch (git show). Of a merge, only the lines "
        "that differ from both sides. Long patches come in pages."
    ),
    arguments=schema_of(GitShowArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.history:show"),
    demand=demand_reading,
    subject=("repo_path", RuleSubject.PATH),
    paths=("repo_path", "paths"),
    base="repo_path",
    shut_in=True,
    max_result_chars=MOST_CHARS,
    large=True,
)


class GitBranchListArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    show_remote: NotRequired[
        Annotated[bool, "Also the branches as they were last fetched from remotes", Is(default=False)]
    ]
    offset: NotRequired[Annotated[int, "How many branches to leave out first", Is(default=0, at_least=0)]]


BRANCH_LIST = Tool(
    name="git_branch_list",
    title="Branches",
    description=(
        "List the branches with their last commit, marking the current one (git branch -v); with show_remote also "
        "those of remotes as last fetched. Nothing is fetched."
    ),
    arguments=schema_of(GitBranchListArguments),
    profile=Profile.RESTRICTED,
    effect=Effect.READ_LOCAL,
    hints=READING_ONLY,
    stages=EVERYWHERE,
    run=LazyFunction("tools.git.branches:branch_list"),
    subject=("repo_path", RuleSubject.PATH),
    shut_in=True,
)
