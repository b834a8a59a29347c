"""Where does the repository stand? Its branch, and what differs between commit, index and files."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain
from tools.git.diff import describe_source
from tools.git.porcelain import CONFLICTS, WORDS, GitStatus, StatusEntry
from tools.git.program import GitProgram, add_person_ignores, open_repository
from tools.git.repository import find_unfinished_operation

PAGE = 300
ASKED = ("status", "--porcelain=v2", "--branch", "-z", "--find-renames", "--no-column")
PARTS = {"conflict": "In conflict", "staged": "Staged", "unstaged": "Not staged", "untracked": "Not known to git"}
NEWS = {"C": "other commit", "M": "changed files", "U": "unknown files"}


async def show_status(ctx: Context, args: Mapping[str, Any]) -> Ending:
    git = await add_person_ignores(await open_repository(ctx, args.get("repo_path", "")))
    ran = await git.read_result(*ASKED, "--untracked-files=normal")
    found = porcelain.parse_status(ran.out)
    begun = await to_thread.run_sync(find_unfinished_operation, ctx.files, git.repository)
    entries = group_entries(found.entries)
    offset = args.get("offset", 0)
    if offset and offset >= len(entries):
        message = f"There are {escape.format_count(len(entries), 'entry', 'entries')}; none are left after {offset:,}."
        return Problem(Code.INVALID_ARGUMENTS, message, "Start earlier.")
    part = entries[offset : offset + PAGE]
    end = offset + len(part)
    onward = dict(args) | {"offset": end} if end < len(entries) else None
    lines = [*describe_standing(git, found, begun), *_format_entries(part)]
    if not entries:
        lines.append("Nothing to commit: the files are as in the last commit.")
    if onward is not None or offset or ran.cut:
        least = "at least " if ran.cut else ""
        lines.append(f"[Entries {offset + 1:,}-{end:,} of {least}{len(entries):,}.")
        lines[-1] += f" Go on with git_status {json.dumps(onward, ensure_ascii=False)}]" if onward else "]"
    data = _build_branch_data(found, begun) | {
        "clean": not entries,
        "entries": [_build_entry_data(kind, entry) for kind, entry in part],
        "total": len(entries),
        "truncated": onward is not None or ran.cut,
        "next": onward,
    }
    return Done("\n".join(lines), data, outside=describe_source(git), meta={"entries": len(entries)})


def describe_standing(git: GitProgram, found: GitStatus, begun: str | None) -> list[str]:
    """On which branch, from which commit, in the middle of what."""
    commit = found.commit[:12] if found.commit else "no commit yet"
    here = f"On branch {to_one_line(found.branch)}" if found.branch else "On no branch (detached HEAD)"
    line = f"{here}, {commit}{_describe_upstream(found)}"
    if git.repository.top != ".":
        line += f". Paths are relative to {git.repository.name}"
    return [f"{line}.", *([f"A {begun} is under way and not finished."] if begun else [])]


def _describe_upstream(found: GitStatus) -> str:
    if found.upstream is None:
        return ""
    name = to_one_line(found.upstream)
    if found.ahead is None or found.behind is None:
        return f", follows {name}, which is gone"
    steps = [f"{number} {word}" for number, word in ((found.ahead, "ahead of"), (found.behind, "behind")) if number]
    return f", {' and '.join(steps)} {name}" if steps else f", level with {name}"


def group_entries(entries: Sequence[StatusEntry]) -> list[tuple[str, StatusEntry]]:
    """Every entry under the part it belongs to, in the order of PARTS; one that is in two stands in both."""
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
    return [(name, entry) for name, found in parts.items() for entry in found]


def _describe_change(kind: str, entry: StatusEntry) -> str:
    if kind == "conflict":
        return CONFLICTS.get(entry.conflict, entry.conflict)
    code = entry.staged if kind == "staged" else entry.unstaged
    return "new" if kind == "untracked" else WORDS.get(code, code)


def _is_moved(kind: str, entry: StatusEntry) -> bool:
    return entry.old is not None and (entry.staged if kind == "staged" else entry.unstaged) in ("R", "C")


def _format_entries(part: Sequence[tuple[str, StatusEntry]]) -> list[str]:
    lines: list[str] = []
    so_far = ""
    for kind, entry in part:
        if kind != so_far:
            lines.append(f"{PARTS[kind]}:")
            so_far = kind
        path = escape.to_visible_path(entry.path)
        if entry.old is not None and _is_moved(kind, entry):
            path = f"{escape.to_visible_path(entry.old)} -> {path}"
        news = ", ".join(NEWS[sign] for sign in entry.submodule if sign in NEWS)
        lines.append(f"  {_describe_change(kind, entry):<12} {path}{f'  (submodule: {news})' if news else ''}")
    return lines


def _build_entry_data(kind: str, entry: StatusEntry) -> dict[str, Any]:
    told: dict[str, Any] = {
        "part": kind,
        "status": _describe_change(kind, entry),
        "path": escape.to_visible_path(entry.path),
    }
    if entry.old is not None and _is_moved(kind, entry):
        told["from"] = escape.to_visible_path(entry.old)
    if entry.submodule:
        told["submodule"] = entry.submodule
    return told


def _build_branch_data(found: GitStatus, begun: str | None) -> dict[str, Any]:
    return {
        "branch": to_one_line(found.branch) if found.branch else None,
        "commit": found.commit,
        "detached": found.branch is None,
        "upstream": to_one_line(found.upstream) if found.upstream else None,
        "ahead": found.ahead,
        "behind": found.behind,
        "under_way": begun,
    }
