"""What goes into the next commit, and what leaves it again?"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Done, Ending, Problem, Refusal
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain
from tools.git.diff import describe_source
from tools.git.patch import MOST_FILES, MOST_LISTED, build_change_data, format_change
from tools.git.paths import find_unnamed_secrets, locate_paths
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram, add_person_ignores, open_repository

MISSING = re.compile(r"pathspec '(.*)' did not match any file", re.DOTALL)
UNFILTERED = ("unspecified", "unset", "set", "")
MOST_ASKED = 2_000
STAGED = (
    "diff",
    "--cached",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--raw",
    "--numstat",
    "-z",
    "--no-abbrev",
)


async def add(ctx: Context, args: Mapping[str, Any]) -> Ending:
    if not args["files"]:
        return Problem(Code.INVALID_ARGUMENTS, "`files` is empty; nothing was staged.", "Name files, or `.` for all.")
    git = await add_person_ignores(await open_repository(ctx, args.get("repo_path", "")))
    paths = await to_thread.run_sync(locate_paths, ctx.files, git.repository, args["files"])
    await _raise_if_unasked(git, args["files"], paths)
    before = await read_staged_changes(git)
    await _stage(git, paths)
    after = await read_staged_changes(git)
    entered = [change for path, change in after.items() if before.get(path) != change]
    # What was staged before and is now as in the last commit has left the index again.
    undone = [change for path, change in before.items() if path not in after]
    if not entered and not undone:
        text = "Nothing to stage: the index already holds these files as they are."
        return Done(text, _build_data((), len(after)), meta={"files": 0})
    lines = [f"Staged {escape.format_count(len(entered), 'file')}; {len(after):,} in the next commit."]
    lines += _format_changes(entered)
    if undone:
        lines += ["No longer different from the last commit:", *_format_changes(undone)]
    return Done(
        "\n".join(lines), _build_data(entered, len(after)), outside=describe_source(git), meta={"files": len(entered)}
    )


async def _stage(git: GitProgram, paths: Sequence[str]) -> None:
    try:
        await git.change("add", "--", *paths)
    except Refusal as refusal:
        missing = MISSING.search(refusal.problem.message)
        if missing is None:
            raise
        message = f"There is no file `{to_one_line(missing[1])}`, and git knows none of that name; nothing was staged."
        raise Refusal(Problem(Code.NOT_FOUND, message, "Look with git_status which files changed.")) from refusal


async def _raise_if_unasked(git: GitProgram, words: Sequence[str], paths: Sequence[str]) -> None:
    """What usually holds secrets enters a history only by its own name, about which the person was asked."""
    ran = await git.read_result("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--", *paths)
    if ran.cut:
        message = "There are more changed files than can be looked at; nothing was staged."
        raise Refusal(Problem(Code.TOO_LARGE, message, "Stage one folder after the other."))
    entries = porcelain.parse_status(ran.out).entries
    names = [one.path.decode("utf-8", "surrogateescape") for one in entries if one.untracked or one.unstaged != "D"]
    await _raise_if_unfiltered(git, names[:MOST_ASKED])
    own_names = [word for word in words if is_secret(word)]
    spoken = await to_thread.run_sync(locate_paths, git.ctx.files, git.repository, own_names)
    if unasked := find_unnamed_secrets(names, spoken):
        shown = ", ".join(f"`{to_one_line(path)}`" for path in unasked[:5]) + (", ..." if len(unasked) > 5 else "")
        raise Refusal(
            Problem(
                Code.PATH_REFUSED,
                f"Nothing was staged: {shown} would have been, and such files usually hold passwords or keys.",
                "Name the files to stage one by one, or put these into .gitignore. Named itself, such a file is "
                "staged when the person says yes.",
            )
        )


async def _raise_if_unfiltered(git: GitProgram, names: Sequence[str]) -> None:
    """What the repository keeps through a filter that is not set up would enter the history as it is, whole."""
    if not names:
        return
    fields = (await git.read("check-attr", "-z", "filter", "--", *names)).decode("utf-8", "surrogateescape").split("\0")
    kept = {value: name for name, _, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False)}
    for value, name in sorted(kept.items()):
        if value not in UNFILTERED and not await _is_filter_configured(git, value):
            raise Refusal(
                Problem(
                    Code.WRONG_STATE,
                    f"`{to_one_line(name)}` is kept by the filter `{to_one_line(value)}`, which is not "
                    "set up in "
                    "this repository's own configuration; nothing was staged.",
                    "Have the person set it up here, for Git LFS by `git lfs install --local`, or stage other files.",
                )
            )


async def _is_filter_configured(git: GitProgram, value: str) -> bool:
    found = [await git.test("config", "--get", f"filter.{value}.{name}") for name in ("clean", "process")]
    return any(one.code == 0 for one in found)


async def read_staged_changes(git: GitProgram) -> dict[bytes, FileChange]:
    """What the next commit would change, by path."""
    return {change.path: change for change in porcelain.parse_changes(await git.read(*STAGED))}


def _format_changes(changes: Sequence[FileChange]) -> list[str]:
    more = len(changes) - MOST_LISTED
    tail = [f"... and {escape.format_count(more, 'more file', 'more files')}"] if more > 0 else []
    return [*(f"  {format_change(change)}" for change in changes[:MOST_LISTED]), *tail]


def _build_data(changes: Sequence[FileChange], left: int) -> dict[str, Any]:
    return {
        "files": [build_change_data(change) for change in changes[:MOST_FILES]],
        "total": len(changes),
        "truncated": len(changes) > MOST_FILES,
        "next": None,
        "staged": left,
    }


async def reset(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await open_repository(ctx, args.get("repo_path", ""))
    before = await read_staged_changes(git)
    if not before:
        return Done("Nothing was staged.", _build_data((), 0), meta={"files": 0})
    # By path and not as a whole, which would also forget that a merge is under way.
    await git.change("reset", "--quiet", "--", ".")
    after = await read_staged_changes(git)
    left = [change for path, change in before.items() if after.get(path) != change]
    lines = [
        f"Unstaged {escape.format_count(len(left), 'file')}; the files themselves are as they were.",
        *_format_changes(left),
    ]
    return Done(
        "\n".join(lines), _build_data(left, len(after)), outside=describe_source(git), meta={"files": len(left)}
    )
