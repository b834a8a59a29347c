"""What is in this file?"""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any, cast

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files, Snapshot
from mcp_server.model.results import Code, Done, Ending, Picture, Problem, Refusal
from mcp_server.model.text import escape_name
from tools.files.definitions import LARGE_PAGE_CHARS, LINES, ReadArguments
from tools.files.lines import (
    MOST_BYTES,
    PAGE_CHARS,
    LinePage,
    build_line_page,
    count_lines,
    describe_non_text,
)

# What does a Jupyter notebook say, as text?


def render_notebook(data: bytes) -> bytes | None:
    """Render its cells and their outputs in order; None if it is not a notebook."""
    try:
        notebook = json.loads(data)
        cells = [_render_cell(number, cell) for number, cell in enumerate(notebook["cells"], 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n\n".join(cells).encode("utf-8", "backslashreplace")


def _render_cell(number: int, cell: dict[str, Any]) -> str:
    parts = [f"[cell {number}: {cell['cell_type']}]", _join_source(cell.get("source", ""))]
    for output in cell.get("outputs", ()):
        parts.extend(_render_output(output))
    return "\n".join(part.rstrip("\n") for part in parts if part)


def _render_output(output: dict[str, Any]) -> Iterator[str]:
    if "text" in output:
        yield f"[output: {output.get('name', 'text')}]\n{_join_source(output['text'])}"
    if "ename" in output:
        yield f"[output: error]\n{output['ename']}: {output.get('evalue', '')}"
    data: dict[str, Any] = output.get("data", {})
    if "text/plain" in data:
        yield f"[output]\n{_join_source(data['text/plain'])}"
    if others := [kind for kind in data if kind != "text/plain"]:
        yield f"[output not shown: {', '.join(others)}]"


def _join_source(source: object) -> str:
    return source if isinstance(source, str) else "".join(cast(list[str], source))


MOST_PICTURE_BYTES = 3_750_000
"""Becomes 5 MB on its way to a model, which is the limit of the large hosts."""
PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


async def read(ctx: Context, args: ReadArguments) -> Ending:
    return await to_thread.run_sync(_read, ctx.files, args)


def _read(files: Files, args: ReadArguments) -> Ending:
    path = args["file_path"]
    try:
        snapshot = files.read(path, MOST_BYTES)
    except Refusal as refusal:
        return add_path_suggestions(files, path, refusal.problem)
    if not snapshot.whole:
        return Problem(
            Code.TOO_LARGE,
            f"`{escape_name(path)}` has {snapshot.stamp.size:,} bytes; `Read` opens files of up to {MOST_BYTES:,}.",
            "Find lines in it with `grep`, or read a part with `fs_read_file` and `offset`, `head` or `tail`.",
        )
    kind = find_picture_type(snapshot.data)
    ending = _show_picture(snapshot, kind) if kind else _read_text(snapshot, args)
    if isinstance(ending, Done):
        files.remember(snapshot.path, snapshot.stamp)
    return ending


def add_path_suggestions(files: Files, path: str, problem: Problem) -> Problem:
    """Suggest what the caller may have meant by a path where nothing exists."""
    if problem.code is not Code.NOT_FOUND:
        return problem
    from difflib import get_close_matches

    folder, _, name = path.rpartition("/")
    try:
        names = {entry.path.rpartition("/")[2]: entry.path for entry in files.list_folder(folder or ".")}
    except Refusal:
        return problem
    near = [f"`{escape_name(names[match])}`" for match in get_close_matches(name, names, 3, 0.7)]
    if not near:
        return problem
    return Problem(problem.code, problem.message, f"Did you mean {' or '.join(near)}?")


def find_picture_type(data: bytes) -> str | None:
    """Return the kind of picture; None if it is not one."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in PICTURES if data.startswith(start)), None)


def _show_picture(snapshot: Snapshot, kind: str) -> Ending:
    data = snapshot.data
    said = f"`{escape_name(snapshot.path)}` is a picture: {kind}, {len(data):,} bytes."
    if len(data) > MOST_PICTURE_BYTES:
        return Problem(Code.TOO_LARGE, f"{said} The limit is {MOST_PICTURE_BYTES:,} bytes.", "Make it smaller first.")
    return Done(said, blocks=(Picture(data, kind),))


def _read_text(snapshot: Snapshot, args: ReadArguments) -> Ending:
    data, head = snapshot.data, ""
    if snapshot.path.endswith(".ipynb") and (cells := render_notebook(data)) is not None:
        data, head = cells, "[A notebook as text. `Edit` changes the JSON behind it, which `fs_read_file` shows.]\n"
    if what := describe_non_text(data):
        return Problem(
            Code.NOT_TEXT,
            f"`{escape_name(snapshot.path)}` is {what}; `Read` shows UTF-8 text, pictures and notebooks.",
            "`fs_read_file` with `encoding` base64 gives its bytes.",
        )
    data = data.removeprefix(BOM_UTF8)
    if not data:
        return Done(f"[`{escape_name(snapshot.path)}` is empty.]")
    first, total = args.get("offset", 1), count_lines(data)
    if first > total:
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"Line {first:,} is past the end of `{escape_name(snapshot.path)}`, which has {total:,} lines.",
            f"Give an `offset` from 1 to {total}.",
        )
    chars = LARGE_PAGE_CHARS if args.get("allow_large") else PAGE_CHARS
    found = build_line_page(data, first, args.get("limit", LINES), chars)
    return Done(head + found.text + _format_page_notes(found, args["file_path"], len(data)), verbatim=True)


def _format_page_notes(found: LinePage, path: str, size: int) -> str:
    notes: list[str] = []
    if found.last < found.total:
        notes.append(
            f"[Lines {found.first}-{found.last} of {found.total} shown, {found.bytes:,} of {size:,} bytes. "
            f'Next: Read(file_path="{escape_name(path)}", offset={found.last + 1})]'
        )
    if found.cut:
        notes.append(
            f"[{found.cut} of these lines are longer than shown; `grep` with `-o`, or `fs_read_file`, shows the rest.]"
        )
    if found.changed:
        notes.append("[Control characters and bytes that are not text are shown as \\xNN; the file has the real ones.]")
    return "".join(f"\n{note}" for note in notes)
