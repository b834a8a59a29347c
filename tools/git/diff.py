"""What did change? In the worktree, in the index, or since another commit."""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.context import Context
from mcp_server.model.results import Done, Ending
from tools.git.patch import PatchRequest, ShownPatch, read_patch
from tools.git.program import GitProgram, open_repository
from tools.git.revisions import resolve_comparison


async def show_unstaged_diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    found = await _read_diff(git, "git_diff_unstaged", args)
    return build_diff_answer(
        git, found, "No unstaged changes: the files are as they are in the index. git_status shows new files."
    )


async def show_staged_diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    found = await _read_diff(git, "git_diff_staged", args, "--cached")
    return build_diff_answer(git, found, "No staged changes: the next commit would be empty. git_add stages files.")


async def show_diff(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    ends = await resolve_comparison(git, args["target"])
    return build_diff_answer(
        git, await _read_diff(git, "git_diff", args, *ends), f"No difference to `{args['target']}`."
    )


async def _read_diff(git: GitProgram, tool: str, args: Mapping[str, Any], *ends: str) -> ShownPatch:
    around = f"--unified={args.get('context_lines', 3)}"
    return await read_patch(git, PatchRequest(tool, args, ("diff", *ends), ("diff", around, *ends)))


def build_diff_answer(git: GitProgram, found: ShownPatch, nothing: str) -> Ending:
    if not found.total:
        return Done(nothing, found.data, meta={"files": 0})
    return Done(found.text, found.data, outside=describe_source(git), meta={"files": found.total})


def describe_source(git: GitProgram) -> str:
    """Where the text comes from: whoever wrote the files and the commits."""
    return f"the git repository in {git.repository.name}"
