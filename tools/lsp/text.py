"""Where in a text is a position? Converts between the server's way of counting and the reader's.

A server counts lines and columns from 0, columns in the units of an encoding that it chooses, and ends a line at a
lone carriage return too. The reader counts both from 1, columns in characters, and lines as `Read` shows them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from mcp_server.model.text import escape_for_model

ENCODINGS = ("utf-8", "utf-16", "utf-32")
LINE_END = re.compile(r"\r\n|\n|\r")
MAX_LINE_CHARS = 300
Position: TypeAlias = Mapping[str, Any]


class DocumentText:
    """A file's text. An offset counts characters from its start."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _server_line_starts(self) -> list[int]:
        return [0, *(match.end() for match in LINE_END.finditer(self.text))]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @property
    def line_count(self) -> int:
        return len(self._line_starts) - (1 if self.text.endswith("\n") else 0) if self.text else 0

    def get_line(self, number: int) -> str:
        """Return the line, counted from 1, without its end."""
        return self.text[slice(*self.get_line_bounds(number))]

    def get_line_bounds(self, number: int) -> tuple[int, int]:
        """Return the offsets at which the line, counted from 1, starts and stops; its end is left out."""
        start = self._line_starts[number - 1]
        stop = self.text.find("\n", start)
        stop = len(self.text) if stop < 0 else stop
        return start, stop - 1 if self.text[start:stop].endswith("\r") else stop

    def to_line_column(self, offset: int) -> tuple[int, int]:
        """Return line and column, both counted from 1."""
        number = bisect_right(self._line_starts, offset)
        return number, offset - self._line_starts[number - 1] + 1

    def to_server_position(self, offset: int, encoding: str) -> dict[str, int]:
        number = bisect_right(self._server_line_starts, offset) - 1
        return {
            "line": number,
            "character": count_units(self.text[self._server_line_starts[number] : offset], encoding),
        }

    def offset_from_position(self, position: Position, encoding: str) -> int | None:
        """Return the offset; None past the last line. Past a line's end is its end, as the protocol says."""
        number, character = position.get("line"), position.get("character")
        if type(number) is not int or type(character) is not int or not 0 <= number < len(self._server_line_starts):
            return None
        start = self._server_line_starts[number]
        stop = self._server_line_starts[number + 1] if number + 1 < len(self._server_line_starts) else len(self.text)
        line = self.text[start:stop].rstrip("\r\n")
        return start + _count_characters(line, max(character, 0), encoding)


def count_units(text: str, encoding: str) -> int:
    """Count the text's length in units of the encoding."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


def _count_characters(line: str, length: int, encoding: str) -> int:
    """Convert a length in units to characters; a length that ends inside a character leaves that character out."""
    if encoding == "utf-32" or line.isascii():
        return min(length, len(line))
    if encoding == "utf-8":
        return len(line.encode("utf-8")[:length].decode("utf-8", "ignore"))
    return len(line.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "ignore"))


def find_occurrences(line: str, symbol: str) -> Iterator[int]:
    """Find the symbol in the line as a whole word, or else as part of one."""
    pattern = re.escape(symbol)
    whole_words = [match.start() for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", line)]
    yield from whole_words or [match.start() for match in re.finditer(pattern, line)]


def find_name_start(symbol: str) -> int:
    """Return where the symbol's last name begins, such as `total` in `order.total`."""
    return max((match.start() for match in re.finditer(r"\w+", symbol)), default=0)


def format_shown_line(line: str) -> str:
    """Make a line printable, and cut it if it is long."""
    line = escape_for_model(line.rstrip("\r\n"))
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}… [this line has {len(line):,} characters]"
