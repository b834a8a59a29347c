"""What was the project like at the last commit? A worktree of its own, for as long as somebody looks at it."""

import posixpath
import time
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread

from mcp_server.model.ending import Problem, Refusal
from mcp_server.model.ports.context import Context
from mcp_server.model.ports.files import Files
from tools.git.program import Git, opened
from tools.testing import Look, Seen

PREFIX = ".menugate-baseline-"
LEFT_OVER_NS = 3600 * 10**9


async def at_last_commit(ctx: Context, seen: Callable[[str], Awaitable[Seen]]) -> Seen:
    """What is seen in the folder that stands for the workspace at the last commit; why nothing can be, where so."""
    try:
        git = await opened(ctx, ".")
        commit = (await git.read("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")).decode().strip()
    except Refusal as refused:
        return _unseen(refused.problem)
    await _sweep(ctx, git)
    path = git.repository.below(f"{PREFIX}{ctx.records.session.new_id()}")
    whole = f"{ctx.files.root.rstrip('/')}/{path}"
    try:
        await git.change("worktree", "add", "--detach", "--quiet", whole, commit)
        # The workspace may be a folder somewhere inside of the repository.
        inside = posixpath.relpath(".", git.repository.top) if git.repository.top != "." else "."
        return await seen(path if inside == "." else f"{path}/{inside}")
    except Refusal as refused:
        return _unseen(refused.problem)
    finally:
        with anyio.CancelScope(shield=True):
            await _remove(git, whole)


def _unseen(problem: Problem) -> Seen:
    return Seen(Look.UNCLEAR, problem.text, problem)


async def _remove(git: Git, whole: str) -> None:
    try:
        await git.change("worktree", "remove", "--force", whole)
    except Refusal:
        # It was never made, or something in it cannot be taken away now: the next look sweeps it.
        return


async def _sweep(ctx: Context, git: Git) -> None:
    """What a server left that was killed while it looked."""
    top, now = git.repository.top, time.time_ns()
    for path, changed in await to_thread.run_sync(_worktrees, ctx.files, top):
        if now - changed > LEFT_OVER_NS:
            await _remove(git, f"{ctx.files.root.rstrip('/')}/{path}")


def _worktrees(files: Files, top: str) -> list[tuple[str, int]]:
    found = files.entries(top)
    return [(one.path, one.mtime_ns) for one in found if posixpath.basename(one.path).startswith(PREFIX)]
