"""On which line does a definition end? By indentation, by braces, by `end`, or by the next heading."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from mcp_server.guards.index.masking import INSIDE

BRACKETS = re.compile(r"[()\[\]{}]")
BRACES = re.compile(r"[(){};]")
OPENS_ANEW = re.compile(r"[ \t]*+(?:async[ \t]++def|def|class)[ \t]")
"""Stands inside no bracket: where one was left open, it is taken for closed here."""
CLOSES = re.compile(r"^([ \t]*+)end\b", re.MULTILINE)
LEVEL = re.compile(r"#{1,6}")


class Announced(Protocol):
    """Where a definition is announced."""

    @property
    def at(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def indent(self) -> int: ...
    @property
    def kind(self) -> str: ...


Lasts: TypeAlias = dict[int, int]
"""Where a name begins -> the last line of what it names; one that is missing is no definition after all."""


class SourceLines:
    """A text from which comments and strings are hidden, line by line."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.all = code.split("\n")
        self.starts = [0]
        for line in self.all:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def of(self, at: int) -> int:
        """Counted from 1."""
        return bisect_right(self.starts, at)

    def indent(self, line: int) -> int:
        text = self.all[line - 1]
        return len(text) - len(text.lstrip(" \t"))


def by_indent(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    starting = {one.line: one for one in found}
    ended: Lasts = {}
    open_ones: list[Announced] = []
    written, depth, goes_on = 0, 0, False
    for number, text in enumerate(lines.all, 1):
        bare = text.strip()
        if not bare:
            continue
        depth = 0 if OPENS_ANEW.match(text) else depth
        if not (depth or goes_on or text.startswith(INSIDE)):
            indent = lines.indent(number)
            while open_ones and indent <= open_ones[-1].indent:
                ended[open_ones.pop().at] = written
            if number in starting:
                open_ones.append(starting[number])
        for bracket in BRACKETS.findall(text):
            depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        written, goes_on = number, text.endswith("\\")
    return ended | {one.at: written for one in open_ones}


def by_braces(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    places = [(one.start(), one[0]) for one in BRACES.finditer(lines.code)]
    closing = _pairs(places)
    starts = [at for at, _ in places]
    ended: Lasts = {}
    for number, one in enumerate(found):
        beyond = found[number + 1].at if number + 1 < len(found) else len(lines.code)
        ended[one.at] = one.line
        index = bisect_left(starts, one.at)
        while index < len(places) and places[index][0] < beyond:
            sign = places[index][1]
            if sign == "(":
                index = closing.get(index, len(places))
            elif sign == "{":
                ended[one.at] = lines.of(starts[closing[index]]) if index in closing else len(lines.all)
                break
            elif sign in ";}":
                break
            index += 1
    return ended


def _pairs(places: Sequence[tuple[int, str]]) -> dict[int, int]:
    """Which bracket is closed by which, by their numbers."""
    closing: dict[int, int] = {}
    opened: dict[str, list[int]] = {")": [], "}": []}
    for index, (_, sign) in enumerate(places):
        if sign in "({":
            opened[")" if sign == "(" else "}"].append(index)
        elif sign in ")}" and opened[sign]:
            closing[opened[sign].pop()] = index
    return closing


def by_end(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    ends: dict[int, list[int]] = {}
    for one in CLOSES.finditer(lines.code):
        ends.setdefault(len(one[1]), []).append(lines.of(one.start()))
    ended: Lasts = {}
    for one in found:
        same = ends.get(one.indent, [])
        index = bisect_right(same, one.line)
        ended[one.at] = same[index] if index < len(same) and one.kind != "constant" else one.line
    return ended


def by_heading(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    ended: Lasts = {}
    open_ones: list[tuple[int, Announced]] = []
    for one in found:
        level = len((LEVEL.match(lines.all[one.line - 1]) or [""])[0])
        while open_ones and open_ones[-1][0] >= level:
            ended[open_ones.pop()[1].at] = one.line - 1
        open_ones.append((level, one))
    last = len(lines.all) - (not lines.all[-1])
    return ended | {one.at: last for _, one in open_ones}


def by_nothing(_lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    return {one.at: one.line for one in found}


LASTS: dict[str, Callable[[SourceLines, Sequence[Announced]], Lasts]] = {
    "indent": by_indent,
    "brace": by_braces,
    "end": by_end,
    "heading": by_heading,
    "none": by_nothing,
}
