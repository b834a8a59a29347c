"""What is different, file by file and line by line? Shown in pages, with no more of it in memory than they need."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_one_line
from tools.git import escape, porcelain
from tools.git.definitions import PAGE
from tools.git.paths import find_unnamed_secrets, locate_paths
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram

MOST_LISTED = 100
MOST_FILES = 300
MOST_HIDDEN = 500
FORMAT = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "-O/dev/null"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--inter-hunk-context=0", "--find-renames"),
)


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """One comparison, as a tool was asked for it."""

    tool: str
    arguments: Mapping[str, Any]
    listing: tuple[str, ...]
    """What git is called with to list the files,"""
    patching: tuple[str, ...]
    """and what to show the lines."""


@dataclass(frozen=True, slots=True)
class ShownPatch:
    text: str
    data: Mapping[str, Any]
    total: int
    """How many files are different."""


async def read_patch(git: GitProgram, asked: PatchRequest, least: tuple[str, ...] = ()) -> ShownPatch:
    """The files and a page of the patch; `least` are lines to begin with."""
    named = asked.arguments.get("paths") or ()
    files, repository = git.ctx.files, git.repository
    paths = await to_thread.run_sync(locate_paths, files, repository, named)
    listed = await git.read_result(*asked.listing, *FORMAT, "--raw", "--numstat", "-z", "--no-abbrev", "--", *paths)
    changes = porcelain.parse_changes(listed.out)
    # Asked about is what was named in words that say what it is; what a link leads to was not.
    spoken = await to_thread.run_sync(locate_paths, files, repository, [path for path in named if is_secret(path)])
    hidden = find_unnamed_secrets(_list_paths(changes), spoken)
    first = asked.arguments.get("offset", 1)
    page = await _read_patch_page(git, asked, paths, hidden, first) if changes else PatchPage(b"", 0, 0, False)
    head = (*least, *_format_overview(git, changes, listed.cut, first), *_format_hidden_note(hidden))
    onward = dict(asked.arguments) | {"offset": page.first + page.lines} if page.more else None
    return ShownPatch(
        "\n".join(part for part in ("\n".join(head), page.text, _format_rest_note(asked, page, onward)) if part),
        {
            "files": [build_change_data(change) for change in changes[:MOST_FILES]],
            "files_total": len(changes),
            "not_shown": [to_one_line(path) for path in hidden[:MOST_FILES]],
            "truncated": page.more or page.cut or listed.cut or len(changes) > MOST_FILES,
            "total": page.total,
            "next": onward,
        },
        len(changes),
    )


def build_change_data(change: FileChange) -> dict[str, Any]:
    """A change for programs."""
    told: dict[str, Any] = {"path": escape.to_visible_path(change.path), "status": change.status_word}
    if change.old is not None:
        told["from"] = escape.to_visible_path(change.old)
    if change.added is not None:
        told |= {"added": change.added, "removed": change.removed}
    if change.is_submodule:
        told["submodule"] = True
    return told


def format_change(change: FileChange, more: str = "") -> str:
    """A change in one line; `more` is what there is to be said besides."""
    path = escape.to_visible_path(change.path)
    if change.old is not None:
        path = f"{escape.to_visible_path(change.old)} -> {path}"
    lines = "" if change.added is None else f"  +{change.added} -{change.removed}"
    kind = "submodule" if change.is_submodule else "link" if change.is_link and not more.startswith("link") else ""
    notes = ", ".join(note for note in (kind, more, change.mode_note) if note)
    return f"{change.status_word:<9} {path}{lines}{f'  ({notes})' if notes else ''}"


def format_summary(changes: Sequence[FileChange], cut: bool = False) -> str:
    added, removed = sum(one.added or 0 for one in changes), sum(one.removed or 0 for one in changes)
    least = "At least " if cut else ""
    return f"{least}{escape.format_count(len(changes), 'file')} changed, +{added:,} -{removed:,}"


def _list_paths(changes: Sequence[FileChange]) -> list[str]:
    paths = [path for change in changes for path in (change.path, change.old) if path is not None]
    return [path.decode("utf-8", "surrogateescape") for path in paths]


def _format_overview(git: GitProgram, changes: Sequence[FileChange], cut: bool, first: int) -> list[str]:
    if not changes or first > 1:
        return []
    top = git.repository.top
    where = "" if top == "." else f" (paths are relative to {git.repository.name})"
    lines = [f"{format_summary(changes, cut)}{where}", *map(format_change, changes[:MOST_LISTED])]
    more = len(changes) - MOST_LISTED
    return [*lines, *([f"... and {escape.format_count(more, 'more file', 'more files')}"] if more > 0 else []), ""]


def _format_hidden_note(hidden: Sequence[str]) -> list[str]:
    if not hidden:
        return []
    names = ", ".join(f"`{to_one_line(path)}`" for path in hidden[:5]) + (", ..." if len(hidden) > 5 else "")
    return [
        f"[Not shown, because such files usually hold passwords or keys: {names}. Named in `paths`, the person is"
        " asked.]"
    ]


@dataclass(frozen=True, slots=True)
class PatchPage:
    """Some lines of a patch, from `first` on."""

    data: bytes
    first: int
    lines: int
    cut: bool
    """There is more of the patch than was kept."""
    total: int = 0
    more: bool = False

    @property
    def text(self) -> str:
        return "\n".join(map(escape.to_content_line, self.data.split(b"\n"))) if self.lines else ""


async def _read_patch_page(
    git: GitProgram, asked: PatchRequest, paths: Sequence[str], hidden: Sequence[str], first: int
) -> PatchPage:
    if len(hidden) > MOST_HIDDEN:
        return PatchPage(b"", 1, 0, False)
    wanted = list(paths)
    if hidden:
        wanted = [f":(top,literal){path}" for path in paths]
        wanted += [f":(top,exclude,literal){path}" for path in hidden]
    ran = await git.read_result(*asked.patching, *FORMAT, "--patch", "--", *wanted, magic=bool(hidden))
    page = cut_patch_page(ran.out, first, ran.cut)
    if first > 1 and not page.lines:
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS,
                f"Line {first:,} is past the end of the patch, of which {page.total:,} lines are there.",
                "Give a smaller `offset`, or name fewer files in `paths`.",
            )
        )
    return page


def cut_patch_page(data: bytes, first: int, cut: bool) -> PatchPage:
    """From that line on, until a page is full; at least one line."""
    total = data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
    start = 0
    for _ in range(first - 1):
        start = data.find(b"\n", start) + 1
        if start == 0:
            return PatchPage(b"", first, 0, cut, total)
    end, lines, size = start, 0, 0
    while end < len(data):
        stop = data.find(b"\n", end)
        stop = len(data) if stop < 0 else stop
        size += min(stop - end, escape.LINE_CHARS) + 1
        if lines and size > PAGE:
            break
        end, lines = stop + 1, lines + 1
    return PatchPage(data[start : end - 1] if lines else b"", first, lines, cut, total, end < len(data))


def _format_rest_note(asked: PatchRequest, page: PatchPage, onward: Mapping[str, Any] | None) -> str:
    last = page.first + page.lines - 1
    least = "at least " if page.cut else ""
    if onward is not None:
        call = f"{asked.tool} {json.dumps(onward, ensure_ascii=False)}"
        return f"[Lines {page.first:,}-{last:,} of {least}{page.total:,} of the patch. Go on with {call}]"
    if page.cut:
        return f"[The patch goes on after line {last:,}, and is too long to be shown whole: name files in `paths`.]"
    return ""
