"""What is the state of the repository? Its branch, and what differs between commit, index and files."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import format_count, to_one_line
from tools.git import escape, porcelain
from tools.git.porcelain import CONFLICTS, STATUS_WORDS, GitStatus, StatusEntry
from tools.git.program import GitProgram, add_person_ignores, open_repository
from tools.git.repository import find_unfinished_operation

PAGE = 300
STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--find-renames", "--no-column")
PARTS = {"conflict": "In conflict", "staged": "Staged", "unstaged": "Not staged", "untracked": "Untracked"}
SUBMODULE_CHANGES = {"C": "other commit", "M": "changed files", "U": "untracked files"}


async def show_status(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await add_person_ignores(await open_repository(ctx, args.get("repo_path", "")))
    result = await git.read_result(*STATUS, "--untracked-files=normal")
    status = porcelain.parse_status(result.out)
    operation = await to_thread.run_sync(find_unfinished_operation, ctx.files, git.repository)
    entries = _group_entries(status.entries)
    offset = args.get("offset", 0)
    if offset and offset >= len(entries):
        message = f"There are {format_count(len(entries), 'entry', 'entries')}, so none after the first {offset:,}."
        return Problem(Code.INVALID_ARGUMENTS, message, "Pass a smaller `offset`.")
    page = entries[offset : offset + PAGE]
    end = offset + len(page)
    next_call = dict(args) | {"offset": end} if end < len(entries) else None
    lines = [*_describe_branch(git, status, operation), *_format_entries(page)]
    if not entries:
        lines.append("Nothing to commit: the files match the last commit.")
    if next_call is not None or offset or result.cut:
        at_least = "at least " if result.cut else ""
        lines.append(f"[Entries {offset + 1:,}-{end:,} of {at_least}{len(entries):,}.")
        lines[-1] += f" Continue with git_status {json.dumps(next_call, ensure_ascii=False)}]" if next_call else "]"
    data = _build_branch_data(status, operation) | {
        "clean": not entries,
        "entries": [_build_entry_data(part, entry) for part, entry in page],
        "total": len(entries),
        "truncated": next_call is not None or result.cut,
        "next": next_call,
    }
    return Done("\n".join(lines), data, outside=git.source, meta={"entries": len(entries)})


def _describe_branch(git: GitProgram, status: GitStatus, operation: str | None) -> list[str]:
    commit = status.commit[:12] if status.commit else "no commit yet"
    branch = f"On branch {to_one_line(status.branch)}" if status.branch else "On no branch (detached HEAD)"
    line = f"{branch}, {commit}{_describe_upstream(status)}"
    if git.repository.top != ".":
        line += f". Paths are relative to {git.repository.name}"
    return [f"{line}.", *([f"A {operation} is in progress."] if operation else [])]


def _describe_upstream(status: GitStatus) -> str:
    if status.upstream is None:
        return ""
    name = to_one_line(status.upstream)
    if status.ahead is None or status.behind is None:
        return f", tracks {name}, which is gone"
    counts = [f"{number} {word}" for number, word in ((status.ahead, "ahead of"), (status.behind, "behind")) if number]
    return f", {' and '.join(counts)} {name}" if counts else f", up to date with {name}"


def _group_entries(entries: Sequence[StatusEntry]) -> list[tuple[str, StatusEntry]]:
    """Pair every entry with its part, in the order of PARTS; one that is both staged and unstaged appears twice."""
    parts: dict[str, list[StatusEntry]] = {name: [] for name in PARTS}
    for entry in entries:
        if entry.conflict:
            parts["conflict"].append(entry)
        elif entry.untracked:
            parts["untracked"].append(entry)
        else:
            for name, code in (("staged", entry.staged), ("unstaged", entry.unstaged)):
                if code:
                    parts[name].append(entry)
    return [(name, entry) for name, members in parts.items() for entry in members]


def _describe_change(part: str, entry: StatusEntry) -> str:
    if part == "conflict":
        return CONFLICTS.get(entry.conflict, entry.conflict)
    code = entry.staged if part == "staged" else entry.unstaged
    return "new" if part == "untracked" else STATUS_WORDS.get(code, code)


def _get_old_path(part: str, entry: StatusEntry) -> str | None:
    """Return the path that the entry was renamed or copied from in this part."""
    code = entry.staged if part == "staged" else entry.unstaged
    return escape.to_visible_path(entry.old_path) if entry.old_path is not None and code in ("R", "C") else None


def _format_entries(entries: Sequence[tuple[str, StatusEntry]]) -> list[str]:
    lines: list[str] = []
    last_part = ""
    for part, entry in entries:
        if part != last_part:
            lines.append(f"{PARTS[part]}:")
            last_part = part
        path, old_path = escape.to_visible_path(entry.path), _get_old_path(part, entry)
        path = path if old_path is None else f"{old_path} -> {path}"
        changes = ", ".join(SUBMODULE_CHANGES[sign] for sign in entry.submodule if sign in SUBMODULE_CHANGES)
        lines.append(f"  {_describe_change(part, entry):<12} {path}{f'  (submodule: {changes})' if changes else ''}")
    return lines


def _build_entry_data(part: str, entry: StatusEntry) -> dict[str, Any]:
    data: dict[str, Any] = {
        "part": part,
        "status": _describe_change(part, entry),
        "path": escape.to_visible_path(entry.path),
    }
    if (old_path := _get_old_path(part, entry)) is not None:
        data["from"] = old_path
    if entry.submodule:
        data["submodule"] = entry.submodule
    return data


def _build_branch_data(status: GitStatus, operation: str | None) -> dict[str, Any]:
    return {
        "branch": to_one_line(status.branch) if status.branch else None,
        "commit": status.commit,
        "detached": status.branch is None,
        "upstream": to_one_line(status.upstream) if status.upstream else None,
        "ahead": status.ahead,
        "behind": status.behind,
        "under_way": operation,
    }
