"""What did change? In the worktree, in the index, or since another commit."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Done, Ending
from tools.git.patch import PatchRequest, ShownPatch, shown
from tools.git.program import GitProgram, opened
from tools.git.revisions import compared


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


async def _shown(git: GitProgram, tool: str, args: Mapping[str, Any], *ends: str) -> ShownPatch:
    around = f"--unified={args.get('context_lines', 3)}"
    return await shown(git, PatchRequest(tool, args, ("diff", *ends), ("diff", around, *ends)))


def ended(git: GitProgram, found: ShownPatch, nothing: str) -> Ending:
    if not found.total:
        return Done(nothing, found.data, meta={"files": 0})
    return Done(found.text, found.data, outside=source(git), meta={"files": found.total})


def source(git: GitProgram) -> str:
    """Where the text comes from: whoever wrote the files and the commits."""
    return f"the git repository in {git.repository.name}"
