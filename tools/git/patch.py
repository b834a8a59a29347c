"""What differs, file by file and line by line? The answer comes in pages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread
from msgspec import Struct

from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import format_count, to_one_line
from tools.git import escape, porcelain
from tools.git.definitions import PAGE
from tools.git.paths import find_unnamed_secrets, locate_paths
from tools.git.porcelain import FileChange
from tools.git.program import GitProgram

MAX_LISTED_FILES = 100
MAX_DATA_FILES = 300
MAX_HIDDEN_FILES = 500
MAX_TARGET_BYTES = 4096
FORMAT = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "-O/dev/null"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--inter-hunk-context=0", "--find-renames"),
)


class PatchRequest(Struct, frozen=True):
    """One comparison."""

    tool: str
    arguments: Mapping[str, Any]
    list_command: tuple[str, ...]
    """Git's arguments to list the files."""
    patch_command: tuple[str, ...]
    """Git's arguments to show the lines."""


class ShownPatch(Struct, frozen=True):
    text: str
    data: Mapping[str, Any]
    file_count: int


async def read_patch(git: GitProgram, request: PatchRequest, heading: tuple[str, ...] = ()) -> ShownPatch:
    """Read the changed files and a page of the patch; `heading` are lines to begin with."""
    requested = request.arguments.get("paths") or ()
    files, repository = git.ctx.files, git.repository
    paths = await to_thread.run_sync(locate_paths, files, repository, requested)
    options = ("--raw", "--numstat", "-z", "--no-abbrev")
    listing = await git.read_result(*request.list_command, *FORMAT, *options, "--", *paths)
    changes = porcelain.parse_changes(listing.out)
    # The user approved secret files whose names show what they are, not those behind a link with a harmless name.
    secrets = [path for path in requested if is_secret(path)]
    approved = await to_thread.run_sync(locate_paths, files, repository, secrets)
    hidden = find_unnamed_secrets(_list_paths(changes), approved)
    first = request.arguments.get("offset", 1)
    page = await _read_patch_page(git, request, paths, hidden, first) if changes else PatchPage(b"", 0, 0, False)
    head = (*heading, *_format_overview(git, changes, listing.cut, first), *_format_hidden_note(hidden))
    next_call = dict(request.arguments) | {"offset": page.first + page.lines} if page.more else None
    return ShownPatch(
        "\n".join(part for part in ("\n".join(head), page.text, _format_rest_note(request, page, next_call)) if part),
        {
            "files": [_build_change_data(change) for change in changes[:MAX_DATA_FILES]],
            "files_total": len(changes),
            "not_shown": [to_one_line(path) for path in hidden[:MAX_DATA_FILES]],
            "truncated": page.more or page.cut or listing.cut or len(changes) > MAX_DATA_FILES,
            "total": page.total,
            "next": next_call,
        },
        len(changes),
    )


def build_changes_data(changes: Sequence[FileChange]) -> dict[str, Any]:
    """Build what the structured result says of changes that no further call shows."""
    return {
        "files": [_build_change_data(change) for change in changes[:MAX_DATA_FILES]],
        "total": len(changes),
        "truncated": len(changes) > MAX_DATA_FILES,
        "next": None,
    }


def _build_change_data(change: FileChange) -> dict[str, Any]:
    data: dict[str, Any] = {"path": escape.to_visible_path(change.path), "status": change.status_word}
    if change.old_path is not None:
        data["from"] = escape.to_visible_path(change.old_path)
    if change.added is not None:
        data |= {"added": change.added, "removed": change.removed}
    if change.is_submodule:
        data["submodule"] = True
    return data


def format_change(change: FileChange, details: str = "") -> str:
    """Format a change as one line; for `details` see `read_change_details`."""
    path = escape.to_visible_path(change.path)
    if change.old_path is not None:
        path = f"{escape.to_visible_path(change.old_path)} -> {path}"
    lines = "" if change.added is None else f"  +{change.added} -{change.removed}"
    kind = "submodule" if change.is_submodule else "link" if change.is_link and not details.startswith("link") else ""
    notes = ", ".join(note for note in (kind, details, change.mode_note) if note)
    return f"{change.status_word:<9} {path}{lines}{f'  ({notes})' if notes else ''}"


def format_summary(changes: Sequence[FileChange], cut: bool = False) -> str:
    added, removed = sum(change.added or 0 for change in changes), sum(change.removed or 0 for change in changes)
    return f"{'At least ' if cut else ''}{format_count(len(changes), 'file')} changed, +{added:,} -{removed:,}"


def _list_paths(changes: Sequence[FileChange]) -> list[str]:
    paths = [path for change in changes for path in (change.path, change.old_path) if path is not None]
    return [path.decode("utf-8", "surrogateescape") for path in paths]


def _format_overview(git: GitProgram, changes: Sequence[FileChange], cut: bool, first: int) -> list[str]:
    if not changes or first > 1:
        return []
    top = git.repository.top
    base = "" if top == "." else f" (paths are relative to {git.repository.name})"
    return [f"{format_summary(changes, cut)}{base}", *format_changes(changes), ""]


def format_changes(
    changes: Sequence[FileChange], details: Mapping[bytes, str] | None = None, indent: str = ""
) -> list[str]:
    """Format the first changes as lines, and say how many more there are."""
    shown = changes[:MAX_LISTED_FILES]
    lines = [indent + format_change(change, (details or {}).get(change.path, "")) for change in shown]
    more = len(changes) - len(shown)
    return [*lines, f"... and {format_count(more, 'more file', 'more files')}"] if more else lines


def _format_hidden_note(hidden: Sequence[str]) -> list[str]:
    if not hidden:
        return []
    names = escape.format_names([to_one_line(path) for path in hidden])
    return [
        f"[Not shown, because such files usually hold passwords or keys: {names}. Name them in `paths` to ask the"
        " user.]"
    ]


class PatchPage(Struct, frozen=True):
    """Some lines of a patch."""

    data: bytes
    first: int
    lines: int
    cut: bool
    """The patch is longer than what we kept of git's output."""
    total: int = 0
    more: bool = False

    @property
    def text(self) -> str:
        return "\n".join(map(escape.to_content_line, self.data.split(b"\n"))) if self.lines else ""


async def _read_patch_page(
    git: GitProgram, request: PatchRequest, paths: Sequence[str], hidden: Sequence[str], first: int
) -> PatchPage:
    if len(hidden) > MAX_HIDDEN_FILES:
        return PatchPage(b"", 1, 0, False)
    pathspecs = list(paths)
    if hidden:
        pathspecs = [f":(top,literal){path}" for path in paths]
        pathspecs += [f":(top,exclude,literal){path}" for path in hidden]
    result = await git.read_result(*request.patch_command, *FORMAT, "--patch", "--", *pathspecs, magic=bool(hidden))
    page = _cut_patch_page(result.out, first, result.cut)
    if first > 1 and not page.lines:
        raise Refusal.because(
            Code.INVALID_ARGUMENTS,
            f"Line {first:,} is past the end of the patch, which has {page.total:,} lines.",
            "Pass a smaller `offset`, or name fewer files in `paths`.",
        )
    return page


def _cut_patch_page(data: bytes, first: int, cut: bool) -> PatchPage:
    """Take whole lines, from line `first` until the page is full; at least one."""
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


def _format_rest_note(request: PatchRequest, page: PatchPage, next_call: Mapping[str, Any] | None) -> str:
    last = page.first + page.lines - 1
    if next_call is not None:
        total = f"{'at least ' if page.cut else ''}{page.total:,}"
        call = f"{request.tool} {json.dumps(next_call, ensure_ascii=False)}"
        return f"[Lines {page.first:,}-{last:,} of {total} of the patch. Continue with {call}]"
    if page.cut:
        return f"[The patch is too long to show past line {last:,}: name fewer files in `paths`.]"
    return ""


async def read_change_details(git: GitProgram, changes: Sequence[FileChange]) -> Mapping[bytes, str]:
    """Describe, by path, the links and binary files among the changes; deleted files are left out."""
    present = [change for change in changes if change.blob.strip("0") and not change.is_submodule]
    links = [change for change in present if change.is_link]
    binaries = [change for change in present if change.added is None and not change.is_link]
    if not links and not binaries:
        return {}
    names = "".join(f"{change.blob}\n" for change in [*links, *binaries]).encode()
    lines = (await git.read("cat-file", "--batch-check=%(objectsize)", stdin=names)).split(b"\n")
    sizes = [(change, int(line)) for change, line in zip([*links, *binaries], lines, strict=False) if line.isdigit()]
    details = {change.path: format_count(size, "byte") for change, size in sizes}
    short_links = [(change, size) for change, size in sizes if change.is_link and size <= MAX_TARGET_BYTES]
    return {**details, **(await _read_link_targets(git, short_links) if short_links else {})}


async def _read_link_targets(git: GitProgram, links: Sequence[tuple[FileChange, int]]) -> Mapping[bytes, str]:
    names = "".join(f"{change.blob}\n" for change, _ in links).encode()
    output = await git.read("cat-file", "--batch=%(objectsize)", stdin=names)
    targets: dict[bytes, str] = {}
    start = 0
    for change, size in links:
        # Skip by size, not to the next line end: a target may contain one.
        start += len(f"{size}\n")
        targets[change.path] = f"link to {escape.to_visible_path(output[start : start + size])}"
        start += size + 1
    return targets
