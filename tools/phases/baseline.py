"""What was the project like at the last commit? A worktree apart, for as long as somebody looks at it."""

import posixpath
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Refusal
from tools.git.program import opened
from tools.single_test import SingleTestOutcome, SingleTestRun


async def at_last_commit(ctx: Context, seen: Callable[[str], Awaitable[SingleTestRun]]) -> SingleTestRun:
    """What is seen in the folder that stands for the workspace at the last commit; why nothing can be, where so."""
    scratch = ctx.files.scratch()
    try:
        folder = await to_thread.run_sync(scratch.__enter__)
        try:
            return await _in_worktree(ctx, f"{folder}/tree", seen)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(scratch.__exit__, None, None, None)
    except Refusal as refused:
        return SingleTestRun(SingleTestOutcome.UNCLEAR, refused.problem.text, refused.problem)


async def _in_worktree(ctx: Context, path: str, seen: Callable[[str], Awaitable[SingleTestRun]]) -> SingleTestRun:
    git = await opened(ctx, ".")
    commit = (await git.read("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")).decode().strip()
    folder = f"{ctx.files.root.rstrip('/')}/{path}"
    # An index of its own: nothing of this is noted in the repository, and nothing has to be taken out of it again.
    apart = {"GIT_INDEX_FILE": f"{folder}.index"}
    await git.change("read-tree", commit, env=apart)
    await git.change("checkout-index", "--all", f"--prefix={folder}/", env=apart)
    # The workspace may be a folder somewhere inside of the repository.
    return await seen(posixpath.normpath(f"{path}/{posixpath.relpath('.', git.repository.top)}"))
