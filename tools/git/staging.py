"""How are files staged and unstaged?"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import format_count, to_one_line
from tools.git import escape, porcelain
from tools.git.patch import build_changes_data, format_changes
from tools.git.paths import find_unnamed_secrets, locate_paths
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram, add_person_ignores, open_repository
from tools.git.staged_content import check_staged

NO_MATCH = re.compile(r"pathspec '(.*)' did not match any file", re.DOTALL)
NO_FILTER = ("unspecified", "unset", "set", "")
MAX_CHECKED_FILES = 2_000
LIST_STAGED = (
    *("diff", "--cached", "--no-ext-diff", "--no-textconv"),
    *("--no-renames", "--raw", "--numstat", "-z", "--no-abbrev"),
)


async def add(ctx: Context, args: Mapping[str, Any]) -> Ending:
    if not args["files"]:
        return Problem(
            Code.INVALID_ARGUMENTS, "`files` is empty; nothing was staged.", "Name files, or pass `.` for all."
        )
    git = await add_person_ignores(await open_repository(ctx, args.get("repo_path", "")))
    paths = await to_thread.run_sync(locate_paths, ctx.files, git.repository, args["files"])
    await _raise_if_unapproved(git, args["files"], paths)
    before = await _read_staged_changes(git)
    await _stage(git, paths)
    after = await _read_staged_changes(git)
    staged = [change for path, change in after.items() if before.get(path) != change]
    await check_staged(git, staged, before)
    # A file that was staged before and is now as in the last commit again.
    reverted = [change for path, change in before.items() if path not in after]
    if not staged and not reverted:
        text = "Nothing to stage: the index already has these files as they are."
        return Done(text, _build_data((), len(after)), meta={"files": 0})
    lines = [f"Staged {format_count(len(staged), 'file')}; {len(after):,} in the next commit."]
    lines += format_changes(staged, indent="  ")
    if reverted:
        lines += ["No longer different from the last commit:", *format_changes(reverted, indent="  ")]
    return Done("\n".join(lines), _build_data(staged, len(after)), outside=git.source, meta={"files": len(staged)})


async def _stage(git: GitProgram, paths: Sequence[str]) -> None:
    try:
        await git.change("add", "--", *paths)
    except Refusal as refusal:
        no_match = NO_MATCH.search(refusal.problem.message)
        if no_match is None:
            raise
        message = (
            f"There is no file `{to_one_line(no_match[1])}`, and git tracks no file with that name; nothing was staged."
        )
        raise Refusal.because(Code.NOT_FOUND, message, "See git_status for the changed files.") from refusal


async def _raise_if_unapproved(git: GitProgram, words: Sequence[str], paths: Sequence[str]) -> None:
    """Stage files that usually hold secrets only if the call names them, since then the user was asked."""
    result = await git.read_result(
        "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--", *paths
    )
    if result.cut:
        message = "There are more changed files than menugate can check; nothing was staged."
        raise Refusal.because(Code.TOO_LARGE, message, "Stage one folder at a time.")
    entries = [
        entry for entry in porcelain.parse_status(result.out).entries if entry.untracked or entry.unstaged != "D"
    ]
    names = [entry.path.decode("utf-8", "surrogateescape") for entry in entries]
    await _raise_if_filter_missing(git, names[:MAX_CHECKED_FILES])
    secrets = [word for word in words if is_secret(word)]
    approved = await to_thread.run_sync(locate_paths, git.ctx.files, git.repository, secrets)
    if unapproved := find_unnamed_secrets(names, approved):
        secret_names = escape.format_names([to_one_line(path) for path in unapproved])
        raise Refusal.because(
            Code.PATH_REFUSED,
            f"Nothing was staged: this would stage {secret_names}, and such files usually hold passwords or keys.",
            "Name the files to stage one by one, or add these to .gitignore. To stage such a file, name it; the "
            "user is asked.",
        )


async def _raise_if_filter_missing(git: GitProgram, names: Sequence[str]) -> None:
    """Refuse files whose filter, such as Git LFS, is not set up: git would commit their full content instead."""
    if not names:
        return
    fields = (await git.read("check-attr", "-z", "filter", "--", *names)).decode("utf-8", "surrogateescape").split("\0")
    filters = {value: name for name, _, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False)}
    for value, name in sorted(filters.items()):
        if value not in NO_FILTER and not await _is_filter_configured(git, value):
            raise Refusal.because(
                Code.WRONG_STATE,
                f"`{to_one_line(name)}` uses the filter `{to_one_line(value)}`, which this repository's own "
                "configuration does not set up; nothing was staged.",
                "Stage other files, or ask the user to set it up (for Git LFS: `git lfs install --local`).",
            )


async def _is_filter_configured(git: GitProgram, value: str) -> bool:
    settings = [await git.test("config", "--get", f"filter.{value}.{name}") for name in ("clean", "process")]
    return any(setting.code == 0 for setting in settings)


async def _read_staged_changes(git: GitProgram) -> dict[bytes, FileChange]:
    """Read what the next commit would change, by path."""
    return {change.path: change for change in porcelain.parse_changes(await git.read(*LIST_STAGED))}


def _build_data(changes: Sequence[FileChange], staged: int) -> dict[str, Any]:
    return {**build_changes_data(changes), "staged": staged}


async def reset(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    before = await _read_staged_changes(git)
    if not before:
        return Done("Nothing was staged.", _build_data((), 0), meta={"files": 0})
    # With a path: a plain `reset` would also end a merge.
    await git.change("reset", "--quiet", "--", ".")
    after = await _read_staged_changes(git)
    unstaged = [change for path, change in before.items() if after.get(path) != change]
    lines = [f"Unstaged {format_count(len(unstaged), 'file')}; the files themselves are unchanged."]
    lines += format_changes(unstaged, indent="  ")
    return Done("\n".join(lines), _build_data(unstaged, len(after)), outside=git.source, meta={"files": len(unstaged)})
