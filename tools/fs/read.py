"""What is in this file or folder, as data? No line numbers, and nothing is remembered for `Edit`."""

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import LEFT_OUT_BY_RULE, DirectoryEntry, Files
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import escape_for_model, escape_name
from tools.files.lines import describe_non_text
from tools.fs.definitions import LISTED, PAGE, FsInfoArguments, FsListArguments, FsReadFileArguments


async def read_file(ctx: Context, args: FsReadFileArguments) -> Ending:
    return await to_thread.run_sync(_read_file, ctx.files, args)


def _read_file(files: Files, args: FsReadFileArguments) -> Ending:
    head, tail, offset = args.get("head"), args.get("tail"), args.get("offset", 0)
    if tail is not None and (head is not None or offset):
        return Problem(
            Code.INVALID_ARGUMENTS, "`tail` cannot be combined with `head` or `offset`.", "Pass one of them."
        )
    if args.get("encoding") == "base64":
        return _read_base64(files, args["path"], head, tail, offset)
    if tail is not None:
        return _read_last_lines(files, args["path"], tail)
    return _read_text(files, args["path"], head, offset)


def _read_base64(files: Files, path: str, head: int | None, tail: int | None, offset: int) -> Ending:
    limit = PAGE * 3 // 4
    count = min(head or tail or limit, limit)
    snapshot = files.read(path, count, -count if tail else offset)
    text, size = b64encode(snapshot.data).decode(), snapshot.stamp.size
    if tail:
        return Done(text if tail <= limit or snapshot.whole else f"[Only the last {count:,} bytes are shown.]\n{text}")
    end = offset + len(snapshot.data)
    return Done(text + ("" if head and head <= limit else _format_rest_note(path, end, size, ', encoding="base64"')))


def _read_text(files: Files, path: str, head: int | None, offset: int) -> Ending:
    snapshot = files.read(path, PAGE, offset)
    data, size = snapshot.data, snapshot.stamp.size
    if offset and offset >= size:
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"Byte {offset:,} is past the end of `{escape_name(path)}`, which has {size:,} bytes.",
            "Pass a smaller `offset`.",
        )
    while offset and data[:1] and data[0] & 0xC0 == 0x80 and len(snapshot.data) - len(data) < 3:
        data = data[1:]  # the rest of a character that begins before the offset
    start = offset + len(snapshot.data) - len(data)
    lines = data.split(b"\n")
    if head is not None and len(lines) > head:
        return _build_text_answer(path, b"\n".join(lines[:head]) + b"\n", start == 0, size)
    if start + len(data) < size:
        data = _cut_to_whole_lines(data)
    return _build_text_answer(path, data, start == 0, size, _format_rest_note(path, start + len(data), size))


def _cut_to_whole_lines(data: bytes) -> bytes:
    """Drop the last line if it is cut, or at least its last character."""
    line = data.rfind(b"\n") + 1
    if line:
        return data[:line]
    cut = next((back for back in range(1, 5) if data[-back] & 0xC0 != 0x80), 0)
    return data[:-cut] if cut and data[-cut] >= 0xC0 else data


def _read_last_lines(files: Files, path: str, tail: int) -> Ending:
    snapshot = files.read(path, PAGE, -PAGE)
    lines = snapshot.data.split(b"\n")
    ends_with_newline = lines[-1] == b""
    too_few = len(lines) - ends_with_newline <= tail and not snapshot.whole
    if too_few and len(lines) > 2:
        lines = lines[1:]  # cut, so only its end is here
    last_lines = lines[-(tail + ends_with_newline) :]
    count = len(last_lines) - ends_with_newline
    note = f"[Only the last {count} lines: more do not fit in one answer.]\n" if too_few else ""
    ending = _build_text_answer(path, b"\n".join(last_lines), snapshot.whole, snapshot.stamp.size)
    return Done(note + ending.text) if note and isinstance(ending, Done) else ending


def _build_text_answer(path: str, data: bytes, from_start: bool, size: int, rest_note: str = "") -> Done | Problem:
    # Signatures of file types count only at the start of the file.
    problem = describe_non_text(data if from_start else b"." + data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text, problem = "", problem or "not UTF-8 text"
    if problem:
        return Problem(Code.NOT_TEXT, f"`{escape_name(path)}` is {problem}.", "Read it with `encoding` base64.")
    if size == 0:
        return Done(f"[`{escape_name(path)}` is empty.]")
    text = text.replace("\r\n", "\n")
    visible = escape_for_model(text)
    note = "" if visible == text else "\n[Control characters are shown as \\xNN.]"
    return Done(visible + note + rest_note, verbatim=True)


def _format_rest_note(path: str, end: int, size: int, more_arguments: str = "") -> str:
    if end >= size:
        return ""
    call = f'fs_read_file(path="{escape_name(path)}", offset={end}{more_arguments})'
    return f"\n[{end:,} of {size:,} bytes shown. Next: {call}]"


async def list_directory(ctx: Context, args: FsListArguments) -> Ending:
    return await to_thread.run_sync(_list_entries, ctx.files, ctx.hides, args)


def _list_entries(files: Files, hides: Callable[[str], bool] | None, args: FsListArguments) -> Ending:
    path, offset, limit = args.get("path", "."), args.get("offset", 0), args.get("limit", LISTED)
    entries = files.list_folder(path, args.get("depth", 1))
    entries = [entry for entry in entries if hides is None or not hides(entry.path)]
    name, total, rule_note = (
        escape_name(path),
        len(entries),
        f"\n{LEFT_OUT_BY_RULE}" if hides else "",
    )
    if not entries:
        return Done(f"[The folder `{name}` {'shows no entries' if hides else 'is empty'}.]{rule_note}")
    if offset >= total:
        message = f"`{name}` has {total:,} entries, so none after the first {offset:,}."
        return Problem(Code.INVALID_ARGUMENTS, message, "Pass a smaller `offset`.")
    page = entries[offset : offset + limit]
    note = _format_entries_note(args, name, offset + len(page), total)
    return Done("\n".join(map(_format_entry, page)) + note + rule_note)


def _format_entries_note(args: FsListArguments, name: str, end: int, total: int) -> str:
    if end >= total:
        return f"\n[The last of {total:,} entries.]" if args.get("offset") else f"\n[{total:,} entries.]"
    depth = f", depth={args['depth']}" if "depth" in args else ""
    call = f'fs_list_directory(path="{name}"{depth}, offset={end})'
    return f"\n[Entries {args.get('offset', 0) + 1}-{end} of {total:,}. Next: {call}]"


def _format_entry(entry: DirectoryEntry) -> str:
    name = escape_name(entry.path)
    if entry.kind == "directory":
        return f"{name}/"
    return f"{name}\t{entry.size:,} bytes" if entry.kind == "file" else f"{name}\t{entry.kind}"


async def get_file_info(ctx: Context, args: FsInfoArguments) -> Ending:
    entry = await to_thread.run_sync(ctx.files.get_info, args["path"])
    data: dict[str, Any] = {
        "path": escape_name(entry.path),
        "kind": entry.kind,
        "size": entry.size,
        "modified": datetime.fromtimestamp(entry.mtime_ns // 1_000_000_000, UTC).isoformat(),
        "mode": f"{entry.mode:04o}",
    }
    return Done("\n".join(f"{key}: {value}" for key, value in data.items()), data)
