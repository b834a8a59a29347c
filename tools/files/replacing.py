"""Where in a text is this string, and what does the text become when it is replaced there?

Exactly that string: no case, space or indentation is forgiven. Only a line end is a line end, CRLF or LF, because
models write LF whatever the file has; what is put in takes the line ends of what it replaces.
"""

import re
from dataclasses import dataclass

LINE_END = r"(?:\r\n|(?<!\r)\n)"
NUMBERED = re.compile(r"\s*\d+\t")


@dataclass(frozen=True, slots=True)
class TextMatches:
    starts: tuple[int, ...]
    lines: tuple[int, ...]
    """The line each one starts in, from 1."""


def pattern_of(wanted: str) -> str:
    return LINE_END.join(re.escape(line) for line in wanted.replace("\r\n", "\n").split("\n"))


def matches(text: str, wanted: str) -> TextMatches:
    """Every place, overlapping ones too: `aa` is in `aaa` twice, and which one was meant is not for us to guess."""
    starts = tuple(match.start() for match in re.finditer(f"(?={pattern_of(wanted)})", text))
    lines: list[int] = []
    line, at = 1, 0
    for start in starts:
        line += text.count("\n", at, start)
        at = start
        lines.append(line)
    return TextMatches(starts, tuple(lines))


def replaced(text: str, wanted: str, by: str) -> str:
    usual = line_end(text)
    plain = by.replace("\r\n", "\n")

    def put(match: re.Match[str]) -> str:
        found = match.group()
        end = "\r\n" if "\r\n" in found else "\n" if "\n" in found else usual
        return plain.replace("\n", end)

    return re.sub(pattern_of(wanted), put, text)


def line_end(text: str) -> str:
    """The one most lines have."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def carries_numbers(wanted: str) -> bool:
    """Was it copied out of what `Read` shows, line numbers and all?"""
    return all(NUMBERED.match(line) for line in wanted.rstrip("\n").split("\n"))
