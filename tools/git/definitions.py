"""Which git tools are there, and what does each take?"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, build_schema
from mcp_server.model.tools import (
    ACTING,
    HINTS,
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

# Tools that look at a repository: its state, its differences, its commits and branches.

PAGE = 48_000
"""Characters of a patch in one answer."""

MOST_CHARS = PAGE + 24_000

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


def _build_reading_tool(name: str, title: str, description: str, arguments: type, run: Run, **more: Any) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        arguments=build_schema(arguments),
        profile=Profile.RESTRICTED,
        effect=Effect.READ_LOCAL,
        stages=WARMUP | ACTING | REVIEWING,
        run=run,
        subject=("repo_path", RuleSubject.PATH),
        shut_in=True,
        **more,
    )


class GitStatusArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    offset: NotRequired[Annotated[int, "How many entries to skip", Is(default=0, at_least=0)]]


STATUS = _build_reading_tool(
    name="git_status",
    title="State of the repository",
    description=(
        "Show the branch, how it compares with its upstream, and which files are staged, changed, in conflict or new "
        "(git status). A folder of new files is shown as one entry."
    ),
    arguments=GitStatusArguments,
    run=LazyFunction("tools.git.status:show_status"),
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
        Effect.READ_LOCAL,
        Profile.RESTRICTED,
        next((why for path in paths if (why := protected.describe_read_risk(path))), None),
    )


PATCH: Mapping[str, Any] = {
    "demand": demand_reading,
    "confirmation": Confirmation.BY_ARGUMENTS,
    "paths": ("repo_path", "paths"),
    "base": "repo_path",
    "max_result_chars": MOST_CHARS,
    "large": True,
}
"""What the tools that answer with a patch have in common."""

DIFF_UNSTAGED = _build_reading_tool(
    name="git_diff_unstaged",
    title="Changes not staged",
    description=(
        "Show what changed in the working tree and is not staged yet (git diff), as a patch. New files that git does "
        "not track are listed by git_status. Long patches come in pages; the answer names the call for the next page."
    ),
    arguments=GitDiffArguments,
    run=LazyFunction("tools.git.diff:show_unstaged_diff"),
    **PATCH,
)

DIFF_STAGED = _build_reading_tool(
    name="git_diff_staged",
    title="Changes staged",
    description=(
        "Show what is staged, which is what the next commit will contain (git diff --cached), as a patch. Long patches "
        "come in pages; the answer names the call for the next page."
    ),
    arguments=GitDiffArguments,
    run=LazyFunction("tools.git.diff:show_staged_diff"),
    **PATCH,
)

DIFF = _build_reading_tool(
    name="git_diff",
    title="Compare with a commit or branch",
    description=(
        "Compare the working tree with a branch, tag or commit, or two of them with each other (git diff): "
        '{"target": "main"}, {"target": "main...feature"}. Returns a patch, in pages if it is long.'
    ),
    arguments=GitDiffTargetArguments,
    run=LazyFunction("tools.git.diff:show_diff"),
    **PATCH,
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
    offset: NotRequired[Annotated[int, "How many commits to skip", Is(default=0, at_least=0)]]


LOG = _build_reading_tool(
    name="git_log",
    title="History of commits",
    description=(
        "Show the commit log (git log), newest first: 12 digits of the hash, date, author, first line of the message; "
        "optionally only between two times, for some files, or from another branch."
    ),
    arguments=GitLogArguments,
    run=LazyFunction("tools.git.history:show_log"),
    paths=("repo_path", "paths"),
    base="repo_path",
    max_result_chars=MOST_CHARS,
)


class GitShowArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    revision: Annotated[str, "Commit, branch or tag, such as `HEAD~1` or `v1.2`", Is(shortest=1, longest=1000)]
    context_lines: NotRequired[ContextLines]
    paths: NotRequired[Paths]
    offset: NotRequired[Offset]


SHOW = _build_reading_tool(
    name="git_show",
    title="One commit",
    description=(
        "Show a commit: author, date, message, and what it changed as a patch (git show). For a merge, only the lines "
        "that differ from both sides. Long patches come in pages."
    ),
    arguments=GitShowArguments,
    run=LazyFunction("tools.git.history:show_commit"),
    **PATCH,
)


class GitBranchListArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    show_remote: NotRequired[Annotated[bool, "Also list remote branches, as last fetched", Is(default=False)]]
    offset: NotRequired[Annotated[int, "How many branches to skip", Is(default=0, at_least=0)]]


BRANCH_LIST = _build_reading_tool(
    name="git_branch_list",
    title="Branches",
    description=(
        "List the branches with their last commit, marking the current one (git branch -v); with show_remote also "
        "remote branches, as last fetched. Nothing is fetched."
    ),
    arguments=GitBranchListArguments,
    run=LazyFunction("tools.git.branches:list_branches"),
)


# Tools that change a repository: staging, committing, and switching branches.


def _build_changing_tool(name: str, title: str, description: str, arguments: type, run: Run, **more: Any) -> Tool:
    return Tool(
        name=name,
        title=title,
        description=description,
        arguments=build_schema(arguments),
        profile=more.pop("profile", Profile.NORMAL),
        effect=Effect.VCS_LOCAL,
        stages=ACTING,
        run=run,
        shut_in=True,
        **more,
    )


class GitCommitArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    message: Annotated[
        str, "The commit message: one line, or a first line, an empty line and a body", Is(shortest=1, longest=20_000)
    ]
    run_hooks: NotRequired[
        Annotated[bool, "Run the repository's own hooks, which are programs that came with it", Is(default=False)]
    ]


ENTERING = "A commit becomes a permanent part of the repository's history."


def demand_committing(args: Arguments) -> Demand:
    if args.get("run_hooks"):
        # A hook is a program: asking for it asks for running one.
        return Demand(Effect.EXEC, Profile.TRUSTED)
    return Demand(Effect.VCS_LOCAL, Profile.NORMAL, ENTERING, waivable=True, asked_below=Profile.TRUSTED)


COMMIT = _build_changing_tool(
    name="git_commit",
    title="Commit what is staged",
    description=(
        "Record the staged changes as a commit (git commit); returns its hash and files. Refused if nothing is "
        "staged: stage with git_add first. Not signed; the repository's hooks run only with run_hooks."
    ),
    arguments=GitCommitArguments,
    run=LazyFunction("tools.git.commit:commit"),
    demand=demand_committing,
    confirmation=Confirmation.BY_ARGUMENTS,
    stands_on=LazyFunction("tools.git.commit:read_commit_facts"),
    subject=("message", RuleSubject.TEXT),
    paths=("repo_path",),
)


class GitAddArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    files: Annotated[
        list[Annotated[str, Is(shortest=1, longest=4096)]],
        "Files or folders to stage, relative to `repo_path` or absolute; `.` for everything. Deleted files are staged "
        "as deletions",
        Is(most_items=500),
    ]


def demand_adding(args: Arguments) -> Demand:
    named = next((path for path in args["files"] if protected.describe_read_risk(path)), None)
    why = f"`{named}` usually holds passwords or keys, which would enter the repository's history." if named else None
    return Demand(Effect.VCS_LOCAL, Profile.NORMAL, why)


ADD = _build_changing_tool(
    name="git_add",
    title="Stage files",
    description=(
        "Stage files for the next commit (git add) and say which ones entered the index. Ignored files are refused. "
        'Example: {"files": ["src/a.py", "docs"]}'
    ),
    arguments=GitAddArguments,
    hints=HINTS[Effect.VCS_LOCAL].adjust("a file that is staged stays staged", idempotent=True),
    run=LazyFunction("tools.git.staging:add"),
    demand=demand_adding,
    confirmation=Confirmation.BY_ARGUMENTS,
    subject=("files", RuleSubject.PATH),
    paths=("files", "repo_path"),
    base="repo_path",
)


class GitResetArguments(TypedDict):
    repo_path: NotRequired[RepoPath]


RESET = _build_changing_tool(
    name="git_reset",
    title="Unstage everything",
    description=(
        "Unstage all staged changes (git reset) and list them. Never touches the files themselves or the history."
    ),
    arguments=GitResetArguments,
    hints=HINTS[Effect.VCS_LOCAL].adjust(
        "it discards the staged changes, and a second call has nothing left to discard",
        destructive=True,
        idempotent=True,
    ),
    run=LazyFunction("tools.git.staging:reset"),
    subject=("repo_path", RuleSubject.PATH),
)


class GitCreateBranchArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    branch_name: Annotated[str, "The new branch's name", Is(shortest=1, longest=250)]
    base_branch: NotRequired[
        Annotated[str, "The branch, tag or commit it starts at; HEAD if left out", Is(shortest=1, longest=1000)]
    ]


CREATE_BRANCH = _build_changing_tool(
    name="git_create_branch",
    title="Create a branch",
    description="Create a branch at a branch, tag or commit, by default HEAD (git branch), without switching to it.",
    arguments=GitCreateBranchArguments,
    run=LazyFunction("tools.git.branches:create_branch"),
    subject=("branch_name", RuleSubject.TEXT),
    paths=("repo_path",),
)


class GitCheckoutArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    branch_name: Annotated[str, "The branch to switch to", Is(shortest=1, longest=250)]
    keep_changes: NotRequired[
        Annotated[bool, "Switch despite uncommitted changes, and take them along", Is(default=False)]
    ]
    obeyed_files: NotRequired[
        Annotated[
            bool,
            "Allow changes to files that other programs obey (.gitattributes, .envrc, .vscode ...); the user is asked",
            Is(default=False),
        ]
    ]


def demand_checkout(args: Arguments) -> Demand:
    why = "It replaces files that decide what other programs run with the other branch's versions."
    return Demand(Effect.VCS_LOCAL, Profile.TRUSTED, why if args.get("obeyed_files") else None)


CHECKOUT = _build_changing_tool(
    name="git_checkout",
    title="Switch branches",
    description=(
        "Switch to another local branch (git switch, git checkout) and name both branches. Refused while there are "
        "uncommitted changes, unless keep_changes takes them along."
    ),
    arguments=GitCheckoutArguments,
    profile=Profile.TRUSTED,
    hints=HINTS[Effect.VCS_LOCAL].adjust(
        "it replaces files of the worktree, and a second call changes nothing", destructive=True, idempotent=True
    ),
    run=LazyFunction("tools.git.checkout:checkout"),
    demand=demand_checkout,
    confirmation=Confirmation.BY_ARGUMENTS,
    stands_on=LazyFunction("tools.git.checkout:read_checkout_facts"),
    subject=("branch_name", RuleSubject.TEXT),
    paths=("repo_path",),
)


TOOLS = (
    STATUS,
    DIFF_UNSTAGED,
    DIFF_STAGED,
    DIFF,
    COMMIT,
    ADD,
    RESET,
    LOG,
    CREATE_BRANCH,
    CHECKOUT,
    SHOW,
    BRANCH_LIST,
)
