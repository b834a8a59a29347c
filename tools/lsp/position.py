"""Which place in the file is meant? A symbol's name, on a line or by its declaration; no caller counts columns."""

from typing import Any

from msgspec import Struct

from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import escape_name
from tools.lsp import protocol
from tools.lsp.locations import uri_from_path
from tools.lsp.pool import RunningServer
from tools.lsp.text import DocumentText, find_name_start, find_occurrences, format_shown_line

MAX_SHOWN_LINES = 10


class SymbolPosition(Struct, frozen=True):
    """What a call is about: a file, and a symbol in it."""

    server: RunningServer
    root: str
    path: str
    text: DocumentText
    symbol: str = ""
    line: int | None = None

    @property
    def document(self) -> dict[str, Any]:
        return {"textDocument": {"uri": uri_from_path(self.root, self.path)}}

    async def build_position_params(self) -> dict[str, Any]:
        """Build the parameters that most requests take: the document and the position in it."""
        return {**self.document, "position": await self._find_position()}

    async def _find_position(self) -> dict[str, Any]:
        if not self.symbol:
            raise _build_refusal(
                "This command needs `symbol`, the name to look up" + self._describe_line(),
                "Pass the name as it is on the line; menugate finds the column.",
            )
        if self.line is None:
            return await self._find_declaration()
        offset = _find_on_line(self.text, self.line, self.symbol, escape_name(self.path))
        return self.text.to_server_position(offset, self.server.encoding)

    def _describe_line(self) -> str:
        if self.line is None or not 0 < self.line <= self.text.line_count:
            return "."
        return f"; line {self.line} reads `{format_shown_line(self.text.get_line(self.line)).strip()}`."

    async def _find_declaration(self) -> dict[str, Any]:
        answer = await self.server.request("textDocument/documentSymbol", self.document)
        symbols = protocol.parse_symbols(answer, self.document["textDocument"]["uri"])
        suffix = "/" + self.symbol.replace("::", "/").replace(".", "/").strip("/")
        matches = [symbol for symbol in symbols if f"/{symbol.path}".endswith(suffix)]
        if len(matches) == 1:
            return dict(matches[0].range.start)
        if matches:
            lines = ", ".join(f"{match.range.order[0] + 1} (`{match.path}`)" for match in matches)
            raise Refusal.because(
                Code.AMBIGUOUS_MATCH,
                f"`{escape_name(self.path)}` declares `{self.symbol}` {len(matches)} times, on lines {lines}.",
                "Pass the `line` too, or the full name, such as `Class/method`.",
            )
        raise Refusal.because(
            Code.NO_MATCH,
            f"`{escape_name(self.path)}` declares no `{self.symbol}`." + _describe_other_lines(self.text, self.symbol),
            "Pass the `line` that it is on.",
        )


def _find_on_line(text: DocumentText, line: int, symbol: str, path: str) -> int:
    """Return the offset at which the symbol's name begins on that line."""
    if line > text.line_count:
        raise _build_refusal(f"`{path}` has only {text.line_count:,} lines, no line {line:,}.", "See it with `Read`.")
    column = next(find_occurrences(text.get_line(line), symbol), None)
    if column is None:
        raise Refusal.because(
            Code.NO_MATCH,
            f"There is no `{symbol}` on line {line:,} of `{path}`, which reads "
            f"`{format_shown_line(text.get_line(line)).strip()}`.{_describe_other_lines(text, symbol, line)}",
            "Call again with the line it is on.",
        )
    return text.get_line_bounds(line)[0] + column + find_name_start(symbol)


def _describe_other_lines(text: DocumentText, symbol: str, nearest_to: int = 1) -> str:
    """Name the lines that do have the symbol, the nearest first."""
    lines = sorted(
        {text.to_line_column(offset)[0] for offset in find_occurrences(text.text, symbol)},
        key=lambda line: abs(line - nearest_to),
    )
    if not lines:
        return " The file does not contain it."
    more = f" and {len(lines) - MAX_SHOWN_LINES:,} more" if len(lines) > MAX_SHOWN_LINES else ""
    return f" It is on line {', '.join(map(str, lines[:MAX_SHOWN_LINES]))}{more}."


def _build_refusal(message: str, way_out: str) -> Refusal:
    return Refusal.because(Code.INVALID_ARGUMENTS, message, way_out)
