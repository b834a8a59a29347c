"""Which place in the file is meant? A symbol's name, on a line or by where it is declared; nobody counts columns."""

from dataclasses import dataclass
from typing import Any

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import make_visible
from tools.lsp import protocol
from tools.lsp.locations import uri_from_path
from tools.lsp.pool import RunningServer
from tools.lsp.text import DocumentText, find_name_start, find_occurrences, format_shown_line

MOST_LINES = 10


@dataclass(frozen=True, slots=True)
class SymbolPosition:
    """What is asked about: a file, and what in it."""

    running: RunningServer
    root: str
    path: str
    text: DocumentText
    symbol: str = ""
    line: int | None = None

    @property
    def document(self) -> dict[str, Any]:
        return {"textDocument": {"uri": uri_from_path(self.root, self.path)}}

    async def build_position_params(self) -> dict[str, Any]:
        """The document and the position in it, as most questions want them."""
        return {**self.document, "position": await self._find_position()}

    async def _find_position(self) -> dict[str, Any]:
        if not self.symbol:
            raise _build_refusal(
                "This command needs `symbol`, the name it is about" + self._describe_line(),
                "Give the name as it stands in the line; its column is found for you.",
            )
        if self.line is None:
            return await self._find_declaration()
        offset = find_on_line(self.text, self.line, self.symbol, make_visible(self.path))
        return self.text.to_server_position(offset, self.running.encoding)

    def _describe_line(self) -> str:
        if self.line is None or not 0 < self.line <= self.text.line_count:
            return "."
        return f"; line {self.line} reads `{format_shown_line(self.text.get_line(self.line)).strip()}`."

    async def _find_declaration(self) -> dict[str, Any]:
        answer = await self.running.request("textDocument/documentSymbol", self.document)
        every = protocol.parse_symbols(answer, self.document["textDocument"]["uri"])
        wanted = self.symbol.replace("::", "/").replace(".", "/").strip("/")
        found = [one for one in every if f"/{one.path}".endswith(f"/{wanted}")]
        if len(found) == 1:
            return dict(found[0].range.start)
        if found:
            where = ", ".join(f"{protocol.to_number(one.range.start.get('line')) + 1} (`{one.path}`)" for one in found)
            raise Refusal(
                Problem(
                    Code.AMBIGUOUS_MATCH,
                    f"`{make_visible(self.path)}` declares `{self.symbol}` {len(found)} times, on lines {where}.",
                    "Give the `line` too, or the whole name, such as `Class/method`.",
                )
            )
        raise Refusal(
            Problem(
                Code.NO_MATCH,
                f"`{make_visible(self.path)}` declares no `{self.symbol}`."
                + describe_other_lines(self.text, self.symbol),
                "Give the `line` on which it stands.",
            )
        )


def find_on_line(text: DocumentText, line: int, symbol: str, path: str) -> int:
    """Where in the text the name begins that the symbol means on that line."""
    if line > text.line_count:
        raise _build_refusal(
            f"`{path}` has {text.line_count:,} lines, and no line {line:,}.", "Look at it with `Read`."
        )
    at = next(find_occurrences(text.get_line(line), symbol), None)
    if at is None:
        reads = format_shown_line(text.get_line(line)).strip()
        raise Refusal(
            Problem(
                Code.NO_MATCH,
                f"There is no `{symbol}` on line {line:,} of `{path}`, which reads `{reads}`."
                + describe_other_lines(text, symbol, line),
                "Call again with the line it is on.",
            )
        )
    return text.get_line_bounds(line)[0] + at + find_name_start(symbol)


def describe_other_lines(text: DocumentText, symbol: str, near: int = 1) -> str:
    """The lines on which it does stand, the nearest first."""
    lines = sorted(
        {text.to_line_column(at)[0] for at in find_occurrences(text.text, symbol)}, key=lambda line: abs(line - near)
    )
    if not lines:
        return " It is nowhere in the file."
    more = f" and {len(lines) - MOST_LINES:,} more" if len(lines) > MOST_LINES else ""
    return f" It is on line {', '.join(map(str, lines[:MOST_LINES]))}{more}."


def _build_refusal(message: str, way_out: str) -> Refusal:
    return Refusal(Problem(Code.INVALID_ARGUMENTS, message, way_out))
