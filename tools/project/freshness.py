"""Is the index what the disk is? Brought up to date before each answer, as far as the time goes, and said in words."""

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.index import Freshness

SLICE = 0.25
"""Seconds between two looks whether the caller still waits."""
SLICES = 40


async def fresh(ctx: Context) -> Freshness:
    mark, turn = ctx.index.arrive(), 0
    while True:
        now, turn = await to_thread.run_sync(ctx.index.refresh, mark, SLICE), turn + 1
        if now.complete or turn >= SLICES:
            return now
        await ctx.progress(now.looked, None, f"reading what changed: {now.looked:,} files looked at")


def said(now: Freshness, ctx: Context) -> str:
    """What stands behind the answer, in one sentence."""
    files = f"{now.files:,} file{'s' if now.files != 1 else ''}"
    out = ", ".join(f"{count:,} {why}" for why, count in sorted(now.left_out.items()))
    kept_out = "Left out is what a rule keeps from this tool. " if ctx.hides else ""
    left = f"; not in it: {out}" if out else ""
    if now.complete:
        return f"{kept_out}Index of {files}, as they are now{left}."
    meanwhile = "Call again to go on with it, or use `grep` meanwhile."
    return f"{kept_out}The index is still being made: {files} so far{left}. {meanwhile}"
