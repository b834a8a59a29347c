"""What changed? In the worktree, in the index, or since another commit."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Done, Ending
from tools.git.patch import PatchRequest, ShownPatch, read_patch
from tools.git.program import GitProgram, open_repository
from tools.git.revisions import resolve_comparison


async def show_unstaged_diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    patch = await _read_diff(git, "git_diff_unstaged", args)
    return _build_answer(git, patch, "No unstaged changes: the files match the index. git_status shows new files.")


async def show_staged_diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    patch = await _read_diff(git, "git_diff_staged", args, "--cached")
    return _build_answer(git, patch, "No staged changes: the next commit would be empty. git_add stages files.")


async def show_diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    patch = await _read_diff(git, "git_diff", args, await resolve_comparison(git, args["target"]))
    return _build_answer(git, patch, f"No differences from `{args['target']}`.")


async def _read_diff(git: GitProgram, tool: str, args: Mapping[str, Any], *comparison: str) -> ShownPatch:
    context = f"--unified={args.get('context_lines', 3)}"
    return await read_patch(git, PatchRequest(tool, args, ("diff", *comparison), ("diff", context, *comparison)))


def _build_answer(git: GitProgram, patch: ShownPatch, text_if_empty: str) -> Ending:
    if not patch.file_count:
        return Done(text_if_empty, patch.data, meta={"files": 0})
    return Done(patch.text, patch.data, outside=git.source, meta={"files": patch.file_count})
