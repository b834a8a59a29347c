"""What is in this file or folder, as data: no line numbers, nothing remembered for editing."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import LEFT_OUT_BY_RULE, DirectoryEntry, Files
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import make_visible
from tools.files.lines import describe_non_text
from tools.fs.definitions import LISTED, PAGE, FsInfoArguments, FsListArguments, FsReadFileArguments


async def read_file(ctx: Context, args: FsReadFileArguments) -> Ending:
    return await to_thread.run_sync(_read_file, ctx.files, args)


def _read_file(files: Files, args: FsReadFileArguments) -> Ending:
    head, tail, offset = args.get("head"), args.get("tail"), args.get("offset", 0)
    if tail is not None and (head is not None or offset):
        return Problem(Code.INVALID_ARGUMENTS, "`tail` goes with neither `head` nor `offset`.", "Give one of them.")
    if args.get("encoding") == "base64":
        return _read_base64(files, args["path"], head, tail, offset)
    if tail is not None:
        return _read_last_lines(files, args["path"], tail)
    return _read_text(files, args["path"], head, offset)


def _read_base64(files: Files, path: str, head: int | None, tail: int | None, offset: int) -> Ending:
    most = PAGE * 3 // 4
    wanted = min(head or tail or most, most)
    found = files.read(path, wanted, -wanted if tail else offset)
    text, size = b64encode(found.data).decode(), found.stamp.size
    if tail:
        return Done(text if tail <= most or found.whole else f"[Only the last {wanted:,} bytes are shown.]\n{text}")
    end = offset + len(found.data)
    return Done(text + ("" if head and head <= most else _format_rest_note(path, end, size, ', encoding="base64"')))


def _read_text(files: Files, path: str, head: int | None, offset: int) -> Ending:
    found = files.read(path, PAGE, offset)
    data, size = found.data, found.stamp.size
    if offset and offset >= size:
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"Byte {offset:,} is past the end of `{make_visible(path)}`, which has {size:,} bytes.",
            "Give a smaller `offset`.",
        )
    while offset and data[:1] and data[0] & 0xC0 == 0x80 and len(found.data) - len(data) < 3:
        data = data[1:]  # the rest of a character that begins before the offset
    start = offset + len(found.data) - len(data)
    lines = data.split(b"\n")
    if head is not None and len(lines) > head:
        return _build_text_answer(path, b"\n".join(lines[:head]) + b"\n", start == 0, size)
    if start + len(data) < size:
        data = _cut_to_whole_lines(data)
    return _build_text_answer(path, data, start == 0, size, _format_rest_note(path, start + len(data), size))


def _cut_to_whole_lines(data: bytes) -> bytes:
    """Without the line, or at least the character, that the cut went through."""
    line = data.rfind(b"\n") + 1
    if line:
        return data[:line]
    cut = next((back for back in range(1, 5) if data[-back] & 0xC0 != 0x80), 0)
    return data[:-cut] if cut and data[-cut] >= 0xC0 else data


def _read_last_lines(files: Files, path: str, tail: int) -> Ending:
    found = files.read(path, PAGE, -PAGE)
    lines = found.data.split(b"\n")
    ended = lines[-1] == b""
    short = len(lines) - ended <= tail and not found.whole
    if short and len(lines) > 2:
        lines = lines[1:]  # the cut went through it
    kept = lines[-(tail + ended) :]
    note = f"[Only the last {len(kept) - ended} lines: no more fit one answer.]\n" if short else ""
    ending = _build_text_answer(path, b"\n".join(kept), found.whole, found.stamp.size)
    return Done(note + ending.text) if note and isinstance(ending, Done) else ending


def _build_text_answer(path: str, data: bytes, start: bool, size: int, more: str = "") -> Done | Problem:
    what = describe_non_text(data) if start else describe_non_text(b"." + data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text, what = "", what or "not text in UTF-8"
    if what:
        return Problem(Code.NOT_TEXT, f"`{make_visible(path)}` is {what}.", "Read it with `encoding` base64.")
    if size == 0:
        return Done(f"[`{make_visible(path)}` is empty: it has no content at all.]")
    # A CRLF is a line end and no control character.
    plain = text.replace("\r\n", "\n")
    clean = make_visible(plain)
    shown = clean + ("" if clean == plain else "\n[Control characters are shown as \\xNN.]") + more
    return Done(shown, verbatim=True)


def _format_rest_note(path: str, end: int, size: int, more: str = "") -> str:
    if end >= size:
        return ""
    call = f'fs_read_file(path="{make_visible(path)}", offset={end}{more})'
    return f"\n[{end:,} of {size:,} bytes shown. Next: {call}]"


async def list_directory(ctx: Context, args: FsListArguments) -> Ending:
    return await to_thread.run_sync(_list_entries, ctx.files, ctx.hides, args)


def _list_entries(files: Files, hides: Callable[[str], bool] | None, args: FsListArguments) -> Ending:
    path, offset, limit = args.get("path", "."), args.get("offset", 0), args.get("limit", LISTED)
    entries = [one for one in files.list_folder(path, args.get("depth", 1)) if hides is None or not hides(one.path)]
    name, total, kept_out = make_visible(path), len(entries), f"\n{LEFT_OUT_BY_RULE}" if hides else ""
    if not entries:
        return Done(f"[The folder `{name}` {'shows no entries' if hides else 'is empty'}.]{kept_out}")
    if offset >= total:
        return Problem(
            Code.INVALID_ARGUMENTS, f"`{name}` has {total:,} entries; none are left after {offset:,}.", "Start earlier."
        )
    shown = entries[offset : offset + limit]
    return Done(
        "\n".join(map(_format_entry, shown)) + _format_entries_note(args, name, offset + len(shown), entries) + kept_out
    )


def _format_entries_note(args: FsListArguments, name: str, end: int, entries: Sequence[DirectoryEntry]) -> str:
    if end >= len(entries):
        return (
            f"\n[{len(entries):,} entries.]" if not args.get("offset") else f"\n[The last of {len(entries):,} entries.]"
        )
    depth = f", depth={args['depth']}" if "depth" in args else ""
    call = f'fs_list_directory(path="{name}"{depth}, offset={end})'
    return f"\n[Entries {args.get('offset', 0) + 1}-{end} of {len(entries):,}. Next: {call}]"


def _format_entry(entry: DirectoryEntry) -> str:
    name = make_visible(entry.path)
    if entry.kind == "directory":
        return f"{name}/"
    return f"{name}\t{entry.size:,} bytes" if entry.kind == "file" else f"{name}\t{entry.kind}"


async def get_file_info(ctx: Context, args: FsInfoArguments) -> Ending:
    entry = await to_thread.run_sync(ctx.files.get_info, args["path"])
    data: dict[str, Any] = {
        "path": make_visible(entry.path),
        "kind": entry.kind,
        "size": entry.size,
        "modified": datetime.fromtimestamp(entry.mtime_ns // 1_000_000_000, UTC).isoformat(),
        "mode": f"{entry.mode:04o}",
    }
    return Done("\n".join(f"{key}: {value}" for key, value in data.items()), data)
