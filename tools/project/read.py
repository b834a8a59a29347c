"""What is the text of this definition, or of this part of a file?"""

from collections.abc import Sequence

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.index import Index, Symbol
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import escape_name
from tools.files.lines import build_line_page, count_lines, decode_text, describe_non_text
from tools.project.definitions import LINES, ProjectReadArguments
from tools.project.search import format_symbol

MAX_FILE_BYTES = 1 << 20
PAGE_CHARS = 25_000


async def read(ctx: Context, args: ProjectReadArguments) -> Ending:
    return await to_thread.run_sync(_read, ctx.files, ctx.index, args)


def _read(files: Files, index: Index, args: ProjectReadArguments) -> Ending:
    snapshot = files.read(args["path"], MAX_FILE_BYTES)
    name = escape_name(snapshot.path)
    if content_type := describe_non_text(snapshot.data):
        way_out = "Read its bytes with `fs_read_file` and `encoding` base64."
        return Problem(Code.NOT_TEXT, f"`{name}` is {content_type}.", way_out)
    if not snapshot.whole:
        return Problem(
            Code.TOO_LARGE,
            f"`{name}` has {snapshot.stamp.size:,} bytes; the index covers files of up to {MAX_FILE_BYTES:,}.",
            "Read a part of it with `Read`, or search it with `grep`.",
        )
    if not snapshot.data:
        return Done(f"[`{name}` is empty.]")
    first, last = args.get("line", 1), None
    if "symbol" in args:
        symbols = index.outline_text(snapshot.path, decode_text(snapshot.data).replace("\r\n", "\n"))
        matches = find_definitions(symbols, args["symbol"])
        if len(matches) != 1:
            return _build_choice_problem(name, args["symbol"], matches, symbols)
        first, last = matches[0].line, matches[0].last
    return _build_page_answer(
        name, snapshot.data, first, min(args.get("limit", LINES), (last or 1 << 60) - first + 1), last
    )


def find_definitions(symbols: Sequence[Symbol], name: str) -> list[Symbol]:
    """Find the symbols whose full name is this, or else ends with it, or else does so in another case."""
    name = name.strip().replace("::", ".").replace("#", ".")
    exact = [symbol for symbol in symbols if symbol.full_name == name]
    ending = [symbol for symbol in symbols if symbol.full_name.endswith(f".{name}")]
    folded = f".{name.casefold()}"
    return exact or ending or [symbol for symbol in symbols if f".{symbol.full_name}".casefold().endswith(folded)]


def _build_choice_problem(file: str, name: str, matches: Sequence[Symbol], symbols: Sequence[Symbol]) -> Problem:
    if matches:
        lines = "\n".join(map(format_symbol, matches[:20]))
        return Problem(
            Code.AMBIGUOUS_MATCH,
            f"`{file}` defines `{name}` {len(matches)} times.",
            f"Pass the `line` instead, and the number of lines as `limit`:\n{lines}",
        )
    from difflib import get_close_matches

    names = [symbol.full_name for symbol in symbols]
    nearest = ", ".join(f"`{each}`" for each in get_close_matches(name, names, 3, 0.4) or names[:10])
    hint = f"It defines {nearest}." if nearest else "It has no definitions that the index knows."
    return Problem(Code.NO_MATCH, f"`{file}` does not define `{name}`.", f"{hint} `index_symbols` lists all.")


def _build_page_answer(name: str, data: bytes, first: int, lines: int, last: int | None) -> Ending:
    total = count_lines(data)
    if first > total:
        return Problem(Code.INVALID_ARGUMENTS, f"`{name}` has {total:,} lines.", f"Pass a `line` from 1 to {total}.")
    page = build_line_page(data, first, lines, PAGE_CHARS)
    note = f"[`{name}`, lines {page.first}-{page.last} of {total}."
    if page.last < min(last or total, total):
        note += f' Continue with index_read {{"path": "{name}", "line": {page.last + 1}}}'
    return Done(f"{page.text}\n{note}]", verbatim=True)
