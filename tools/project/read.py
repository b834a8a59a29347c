"""What does this definition say, or this part of a file?"""

from collections.abc import Sequence

from anyio import to_thread

from mcp_server.model.context import Context
from mcp_server.model.files import Files
from mcp_server.model.index import Index, Symbol
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.text import make_visible
from tools.files.lines import build_line_page, count_lines, decode_text, describe_non_text
from tools.project.definitions import LINES, ProjectReadArguments
from tools.project.search import format_symbol

MOST_BYTES = 1 << 20
CHARS = 25_000


async def read(ctx: Context, args: ProjectReadArguments) -> Ending:
    return await to_thread.run_sync(_read, ctx.files, ctx.index, args)


def _read(files: Files, index: Index, args: ProjectReadArguments) -> Ending:
    snapshot = files.read(args["path"], MOST_BYTES)
    name = make_visible(snapshot.path)
    if what := describe_non_text(snapshot.data):
        return Problem(Code.NOT_TEXT, f"`{name}` is {what}.", "`fs_read_file` with `encoding` base64 gives its bytes.")
    if not snapshot.whole:
        return Problem(
            Code.TOO_LARGE,
            f"`{name}` has {snapshot.stamp.size:,} bytes; files of up to {MOST_BYTES:,} are in the index.",
            "Read a part of it with `Read`, or find lines in it with `grep`.",
        )
    if not snapshot.data:
        return Done(f"[`{name}` is empty.]")
    first, last = args.get("line", 1), None
    if "symbol" in args:
        every = index.outline_text(snapshot.path, decode_text(snapshot.data).replace("\r\n", "\n"))
        chosen = find_definitions(every, args["symbol"])
        if len(chosen) != 1:
            return _build_choice_problem(name, args["symbol"], chosen, every)
        first, last = chosen[0].line, chosen[0].last
    return _build_page_answer(
        name, snapshot.data, first, min(args.get("limit", LINES), (last or 1 << 60) - first + 1), last
    )


def find_definitions(every: Sequence[Symbol], wish: str) -> list[Symbol]:
    """The definitions of that name: by their full names where one has it, else by the end of those, else by case."""
    wish = wish.strip().replace("::", ".").replace("#", ".")
    exact = [one for one in every if one.full_name == wish]
    ending = [one for one in every if one.full_name.endswith(f".{wish}")]
    return exact or ending or [one for one in every if f".{one.full_name}".casefold().endswith(f".{wish.casefold()}")]


def _build_choice_problem(name: str, wish: str, chosen: Sequence[Symbol], every: Sequence[Symbol]) -> Problem:
    if chosen:
        lines = "\n".join(map(format_symbol, chosen[:20]))
        return Problem(
            Code.AMBIGUOUS_MATCH,
            f"`{name}` defines `{wish}` {len(chosen)} times.",
            f"Give the `line` instead, and how many with `limit`:\n{lines}",
        )
    from difflib import get_close_matches

    near = get_close_matches(wish, [one.full_name for one in every], 3, 0.4) or [one.full_name for one in every[:10]]
    hint = f"It defines {', '.join(f'`{one}`' for one in near)}." if near else "Nothing in it is known as a definition."
    return Problem(Code.NO_MATCH, f"`{name}` does not define `{wish}`.", f"{hint} `index_symbols` shows all.")


def _build_page_answer(name: str, data: bytes, first: int, lines: int, last: int | None) -> Ending:
    total = count_lines(data)
    if first > total:
        return Problem(Code.INVALID_ARGUMENTS, f"`{name}` has {total:,} lines.", f"Give a `line` from 1 to {total}.")
    found = build_line_page(data, first, lines, CHARS)
    rest = min(last or total, total)
    note = f"[`{name}`, lines {found.first}-{found.last} of {total}."
    if found.last < rest:
        note += f' Go on with index_read {{"path": "{name}", "line": {found.last + 1}}}'
    return Done(f"{found.text}\n{note}]", verbatim=True)
