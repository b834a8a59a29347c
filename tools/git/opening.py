"""May git be started on this repository, and as which program?"""

import re
from collections.abc import Iterator

from anyio import to_thread

from mcp_server.model.ending import Code, Problem, Refusal
from mcp_server.model.ports.context import Context
from tools.git.plain import inline
from tools.git.program import Git
from tools.git.repository import Repository, find

PROGRAMS = re.compile(r"filter\..*\.(clean|smudge|process)", re.DOTALL)
"""The settings that no option can switch off: what git runs on a file's content, by the repository's own word."""
OWN = ("local", "worktree")
"""Where a setting comes from that the repository brought along; the person's own are the person's word."""


async def opened(ctx: Context, repo_path: str, run_hooks: bool = False) -> Git:
    repository = await to_thread.run_sync(find, ctx.files, repo_path)
    binary = ctx.processes.find("git")
    if binary is None:
        raise Refusal(
            Problem(Code.NOT_FOUND, "There is no `git` on this machine's search path.", "Have the person install git.")
        )
    git = Git(ctx, repository, binary, run_hooks)
    if ctx.processes.sandbox == "none" and (named := await _programs(git)):
        raise _unsafe(repository, named)
    return git


async def _programs(git: Git) -> list[str]:
    """What the repository would have git run, where nothing would hold it."""
    listed = await git.read("config", "--list", "--includes", "--show-scope", "-z")
    return sorted({key for scope, key in settings(listed) if scope in OWN and PROGRAMS.fullmatch(key)})


def settings(listed: bytes) -> Iterator[tuple[str, str]]:
    """Scope and key of each."""
    fields = listed.decode("utf-8", "surrogateescape").split("\0")
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        yield scope, setting.partition("\n")[0]


def _unsafe(repository: Repository, named: list[str]) -> Refusal:
    shown = ", ".join(f"`{inline(key, 60)}`" for key in named[:5])
    return Refusal(
        Problem(
            Code.UNSAFE_REPOSITORY,
            f"The configuration of {repository.name} names programs that git would run ({shown}), and this machine "
            "has no sandbox to run them in.",
            "Have the person install bubblewrap, or take these settings out of the repository's configuration.",
        )
    )
