"""Where in a text is that? Places as a language server counts them, as the reader counts them, and back.

A server counts lines and columns from 0, columns in the units of an encoding that it chooses, and ends a line at a
lone carriage return too. The reader counts both from 1, columns in characters, and lines as `Read` shows them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from mcp_server.model.text import make_visible

ENCODINGS = ("utf-8", "utf-16", "utf-32")
LINE_END = re.compile(r"\r\n|\n|\r")
MOST_SHOWN = 300
Position: TypeAlias = Mapping[str, Any]


class DocumentText:
    """A file's text; everything is an offset in it, counted in characters."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _server_line_starts(self) -> list[int]:
        """Where lines begin as the server counts them."""
        return [0, *(found.end() for found in LINE_END.finditer(self.text))]

    @cached_property
    def _line_starts(self) -> list[int]:
        """Where lines begin as `Read` counts them."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    @property
    def line_count(self) -> int:
        return len(self._line_starts) - (1 if self.text.endswith("\n") else 0) if self.text else 0

    def get_line(self, number: int) -> str:
        """The line, counted from 1, without its end."""
        return self.text[slice(*self.get_line_bounds(number))]

    def get_line_bounds(self, number: int) -> tuple[int, int]:
        """From where to where that line goes, counted from 1, its end left out."""
        start = self._line_starts[number - 1]
        stop = self.text.find("\n", start)
        stop = len(self.text) if stop < 0 else stop
        return start, stop - 1 if self.text[start:stop].endswith("\r") else stop

    def to_line_column(self, offset: int) -> tuple[int, int]:
        """Line and column, both counted from 1."""
        number = bisect_right(self._line_starts, offset)
        return number, offset - self._line_starts[number - 1] + 1

    def to_server_position(self, offset: int, encoding: str) -> dict[str, int]:
        number = bisect_right(self._server_line_starts, offset) - 1
        return {
            "line": number,
            "character": count_units(self.text[self._server_line_starts[number] : offset], encoding),
        }

    def offset_from_position(self, position: Position, encoding: str) -> int | None:
        """Beyond a line's end is its end, as the protocol has it; beyond the last line is nowhere."""
        number, character = position.get("line"), position.get("character")
        if type(number) is not int or type(character) is not int or not 0 <= number < len(self._server_line_starts):
            return None
        start = self._server_line_starts[number]
        stop = self._server_line_starts[number + 1] if number + 1 < len(self._server_line_starts) else len(self.text)
        line = self.text[start:stop].rstrip("\r\n")
        return start + count_characters(line, max(character, 0), encoding)


def count_units(text: str, encoding: str) -> int:
    """How long the text is, as the encoding counts."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


def count_characters(line: str, length: int, encoding: str) -> int:
    """How many characters so many units are; a unit in the middle of a character is that character's beginning."""
    if encoding == "utf-32" or line.isascii():
        return min(length, len(line))
    if encoding == "utf-8":
        return len(line.encode("utf-8")[:length].decode("utf-8", "ignore"))
    return len(line.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "ignore"))


def find_occurrences(line: str, symbol: str) -> Iterator[int]:
    """Where the symbol stands in the line: as a whole word, or else wherever it is part of one."""
    pattern = re.escape(symbol)
    whole = [found.start() for found in re.finditer(rf"(?<!\w){pattern}(?!\w)", line)]
    yield from whole or [found.start() for found in re.finditer(pattern, line)]


def find_name_start(symbol: str) -> int:
    """How far into the symbol the name begins that is meant: of `order.total` it is `total`."""
    return max((found.start() for found in re.finditer(r"\w+", symbol)), default=0)


def format_shown_line(line: str) -> str:
    """A line as it is shown: cut where it would flood, with what hurts a terminal made visible."""
    line = make_visible(line.rstrip("\r\n"))
    return line if len(line) <= MOST_SHOWN else f"{line[:MOST_SHOWN]}… [this line has {len(line):,} characters]"
