"""What is offered for changing a repository? Staging, committing, and going from branch to branch."""

from typing import Annotated, NotRequired, TypedDict

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.schema import Is, schema_of
from mcp_server.model.tools import ACTING, Arguments, Demand, Effect, Hints, LazyFunction, RuleSubject, Tool
from tools.git.definitions import RepoPath


class GitCommitArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    message: Annotated[
        str, "The commit message: one line, or a first line, an empty one and more", Is(shortest=1, longest=20_000)
    ]
    run_hooks: NotRequired[
        Annotated[bool, "Run the repository's own hooks, which are programs it brought along", Is(default=False)]
    ]


ENTERING = "A commit enters the history of the repository, and stays there."


def demand_committing(args: Arguments) -> Demand:
    if args.get("run_hooks"):
        # A hook is a program: asking for it asks for running one.
        return Demand(Effect.EXEC, Profile.TRUSTED)
    return Demand(Effect.VCS_LOCAL, Profile.NORMAL, ENTERING, waivable=True, asked_below=Profile.TRUSTED)


COMMIT = Tool(
    name="git_commit",
    title="Commit what is staged",
    description=(
        "Record the staged changes as a commit (git commit); says its number and files. Refused where nothing is "
        "staged: stage with git_add first. Not signed; the repository's hooks run only with run_hooks."
    ),
    arguments=schema_of(GitCommitArguments),
    profile=Profile.NORMAL,
    effect=Effect.VCS_LOCAL,
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=False),
    stages=ACTING,
    run=LazyFunction("tools.git.commit:commit"),
    demand=demand_committing,
    stands_on=LazyFunction("tools.git.preview:of_commit"),
    subject=("message", RuleSubject.TEXT),
    paths=("repo_path",),
    shut_in=True,
)


class GitAddArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    files: Annotated[
        list[Annotated[str, Is(shortest=1, longest=4096)]],
        "Files or folders to stage, relative to `repo_path` or absolute; `.` for everything. A file that was deleted "
        "is staged as deleted",
        Is(most_items=500),
    ]


def demand_adding(args: Arguments) -> Demand:
    named = next((path for path in args["files"] if protected.to_read(path)), None)
    why = f"`{named}` usually holds passwords or keys, which would enter the repository's history." if named else None
    return Demand(Effect.VCS_LOCAL, Profile.NORMAL, why)


ADD = Tool(
    name="git_add",
    title="Stage files",
    description=(
        "Stage files for the next commit (git add) and say which ones entered the index. Ignored files are refused. "
        'Example: {"files": ["src/a.py", "docs"]}'
    ),
    arguments=schema_of(GitAddArguments),
    profile=Profile.NORMAL,
    effect=Effect.VCS_LOCAL,
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
    stages=ACTING,
    run=LazyFunction("tools.git.staging:add"),
    demand=demand_adding,
    subject=("files", RuleSubject.PATH),
    paths=("files", "repo_path"),
    base="repo_path",
    shut_in=True,
)


class GitResetArguments(TypedDict):
    repo_path: NotRequired[RepoPath]


RESET = Tool(
    name="git_reset",
    title="Unstage everything",
    description=(
        "Take all staged changes out of the index again (git reset) and say which ones left it. Never touches the "
        "files themselves nor the history."
    ),
    arguments=schema_of(GitResetArguments),
    profile=Profile.NORMAL,
    effect=Effect.VCS_LOCAL,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    stages=ACTING,
    run=LazyFunction("tools.git.staging:reset"),
    subject=("repo_path", RuleSubject.PATH),
    shut_in=True,
)


class GitCreateBranchArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    branch_name: Annotated[str, "The new branch's name", Is(shortest=1, longest=250)]
    base_branch: NotRequired[
        Annotated[str, "The branch, tag or commit it begins at; HEAD if left out", Is(shortest=1, longest=1000)]
    ]


CREATE_BRANCH = Tool(
    name="git_create_branch",
    title="Make a branch",
    description="Make a new branch at a branch, tag or commit, by default here (git branch), without going to it.",
    arguments=schema_of(GitCreateBranchArguments),
    profile=Profile.NORMAL,
    effect=Effect.VCS_LOCAL,
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=False),
    stages=ACTING,
    run=LazyFunction("tools.git.branches:create_branch"),
    subject=("branch_name", RuleSubject.TEXT),
    paths=("repo_path",),
    shut_in=True,
)


class GitCheckoutArguments(TypedDict):
    repo_path: NotRequired[RepoPath]
    branch_name: Annotated[str, "The branch to go to", Is(shortest=1, longest=250)]
    keep_changes: NotRequired[
        Annotated[bool, "Go although there are uncommitted changes, and take them along", Is(default=False)]
    ]
    obeyed_files: NotRequired[
        Annotated[
            bool,
            "Let it change files that other programs obey (.gitattributes, .envrc, .vscode ...); the person is asked",
            Is(default=False),
        ]
    ]


def demand_checkout(args: Arguments) -> Demand:
    why = "Files that decide what other programs run are replaced by those of the other branch."
    return Demand(Effect.VCS_LOCAL, Profile.TRUSTED, why if args.get("obeyed_files") else None)


CHECKOUT = Tool(
    name="git_checkout",
    title="Go to another branch",
    description=(
        "Switch to another local branch (git switch, git checkout) and say from where to where. Refused while there "
        "are uncommitted changes, unless keep_changes takes them along."
    ),
    arguments=schema_of(GitCheckoutArguments),
    profile=Profile.TRUSTED,
    effect=Effect.VCS_LOCAL,
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    stages=ACTING,
    run=LazyFunction("tools.git.branches:checkout"),
    demand=demand_checkout,
    stands_on=LazyFunction("tools.git.preview:of_checkout"),
    subject=("branch_name", RuleSubject.TEXT),
    paths=("repo_path",),
    shut_in=True,
)
