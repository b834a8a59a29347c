"""What was the project like at the last commit? A worktree of its own, for as long as somebody looks at it."""

import posixpath
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio import to_thread

from mcp_server.model.ending import Refusal
from mcp_server.model.ports.context import Context
from tools.git.program import opened
from tools.testing import Look, Seen


async def at_last_commit(ctx: Context, seen: Callable[[str], Awaitable[Seen]]) -> Seen:
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
        return Seen(Look.UNCLEAR, refused.problem.text, refused.problem)


async def _in_worktree(ctx: Context, path: str, seen: Callable[[str], Awaitable[Seen]]) -> Seen:
    git = await opened(ctx, ".")
    commit = (await git.read("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}")).decode().strip()
    whole = f"{ctx.files.root.rstrip('/')}/{path}"
    try:
        await git.change("worktree", "add", "--detach", "--quiet", whole, commit)
        # The workspace may be a folder somewhere inside of the repository.
        return await seen(posixpath.normpath(f"{path}/{posixpath.relpath('.', git.repository.top)}"))
    finally:
        with anyio.CancelScope(shield=True), suppress(Refusal):
            # Git's own note of it; the files go with the folder they are in.
            await git.change("worktree", "remove", "--force", "--force", whole)
