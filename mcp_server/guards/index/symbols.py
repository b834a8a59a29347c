"""What does a source file define, and on which lines? Read line by line in a dozen languages, without a parser.

Parsers would mean a dozen C dependencies that parse hostile files inside the server's process while holding its lock.
Python's own gives up at the first syntax error of a half-written file and can exhaust the stack. Scanning lines, with
comments and strings removed, finds every definition in its usual place, in time linear in the file's length. For Python
the result is compared with what `ast` finds.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from mcp_server.guards.index.languages import SourceLanguage, find_language
from mcp_server.model.index import Symbol

# What of this text is code? Returns text of the same length and lines, with comments and strings masked.
#
# Comments become spaces. A string keeps its first character and is filled with a mark, which shows when a line begins
# inside a string. Every pattern consumes what it scanned, to the end of the text if nothing closes it, so time grows
# linearly with the text.

INSIDE = "\x01"
NOT_A_LINE_END = re.compile(r"[^\n]")

COMMENTS = {
    "#": r"#[^\n]*+",
    "shell #": r"(?:(?<=\s)|(?<![\s\S]))#[^\n]*+",
    "//": r"//[^\n]*+",
    "--": r"--[^\n]*+",
    "/*": r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?",
    "=begin": r"(?m:^)=begin\b(?:[^\n]|\n(?!=end\b))*+(?:\n=end\b[^\n]*+)?",
    "```": r"(?m:^) {0,3}```(?:[^\n]|\n(?! {0,3}```))*+(?:\n {0,3}```[^\n]*+)?",
    "--[[": r"--\[\[(?:[^\]]|\](?!\]))*+(?:\]\])?",
}
STRINGS = {
    '"""': r'"""(?:[^"\\]|\\(?:.|\Z)|"(?!""))*+(?:""")?',
    "'''": r"'''(?:[^'\\]|\\(?:.|\Z)|'(?!''))*+(?:''')?",
    '"': r'"(?:[^"\\\n]|\\(?:.|\Z))*+"?',
    "'": r"'(?:[^'\\\n]|\\(?:.|\Z))*+'?",
    'long "': r'"(?:[^"\\]|\\(?:.|\Z))*+"?',
    "long '": r"'(?:[^'\\]|\\(?:.|\Z))*+'?",
    "plain '": r"'[^']*+'?",
    "`": r"`(?:[^`\\]|\\(?:.|\Z))*+`?",
    "raw `": r"`[^`]*+`?",
    "sign '": r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,8}+)'",
    "r#": r'r(?P<signs>#{1,8}+)"(?:[^"]|"(?!(?P=signs)))*+(?:"(?P=signs))?',
}


@lru_cache(maxsize=64)
def compile_hidden_pattern(comments: tuple[str, ...], strings: tuple[str, ...]) -> re.Pattern[str]:
    noted = "|".join(COMMENTS[one] for one in comments)
    quoted = "|".join(STRINGS[one] for one in strings)
    return re.compile(f"(?s)(?P<comment>{noted or '(?!)'})|(?P<string>{quoted or '(?!)'})")


def mask_non_code(text: str, comments: tuple[str, ...], strings: tuple[str, ...]) -> str:
    return compile_hidden_pattern(comments, strings).sub(_mask, text.replace(INSIDE, " "))


def _mask(found: re.Match[str]) -> str:
    if found["comment"] is not None:
        return NOT_A_LINE_END.sub(" ", found[0])
    return found[0][0] + NOT_A_LINE_END.sub(INSIDE, found[0][1:])


# On which line does a definition end? By indentation, by braces, by `end`, or by the next heading.

BRACKETS = re.compile(r"[()\[\]{}]")
BRACES = re.compile(r"[(){};]")
OPENS_ANEW = re.compile(r"[ \t]*+(?:async[ \t]++def|def|class)[ \t]")
"""Never occurs inside brackets: a bracket still open here is taken as closed."""
CLOSES = re.compile(r"^([ \t]*+)end\b", re.MULTILINE)
LEVEL = re.compile(r"#{1,6}")


class Announced(Protocol):
    """The place where a definition begins."""

    @property
    def at(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def indent(self) -> int: ...
    @property
    def kind(self) -> str: ...


Lasts: TypeAlias = dict[int, int]
"""Where a name begins -> the last line of its definition; a name that is missing is not a definition after all."""


class SourceLines:
    """A text with comments and strings masked, line by line."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.all = code.split("\n")
        self.starts = [0]
        for line in self.all:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def find_line(self, at: int) -> int:
        """Return the line number, counted from 1."""
        return bisect_right(self.starts, at)

    def measure_indent(self, line: int) -> int:
        text = self.all[line - 1]
        return len(text) - len(text.lstrip(" \t"))


def find_ends_by_indent(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
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
            indent = lines.measure_indent(number)
            while open_ones and indent <= open_ones[-1].indent:
                ended[open_ones.pop().at] = written
            if number in starting:
                open_ones.append(starting[number])
        for bracket in BRACKETS.findall(text):
            depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        written, goes_on = number, text.endswith("\\")
    return ended | {one.at: written for one in open_ones}


def find_ends_by_braces(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    places = [(one.start(), one[0]) for one in BRACES.finditer(lines.code)]
    closing = _pair_brackets(places)
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
                ended[one.at] = lines.find_line(starts[closing[index]]) if index in closing else len(lines.all)
                break
            elif sign in ";}":
                break
            index += 1
    return ended


def _pair_brackets(places: Sequence[tuple[int, str]]) -> dict[int, int]:
    """Map each opening bracket's index to that of its closing one."""
    closing: dict[int, int] = {}
    opened: dict[str, list[int]] = {")": [], "}": []}
    for index, (_, sign) in enumerate(places):
        if sign in "({":
            opened[")" if sign == "(" else "}"].append(index)
        elif sign in ")}" and opened[sign]:
            closing[opened[sign].pop()] = index
    return closing


def find_ends_by_keyword(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    ends: dict[int, list[int]] = {}
    for one in CLOSES.finditer(lines.code):
        ends.setdefault(len(one[1]), []).append(lines.find_line(one.start()))
    ended: Lasts = {}
    for one in found:
        same = ends.get(one.indent, [])
        index = bisect_right(same, one.line)
        ended[one.at] = same[index] if index < len(same) and one.kind != "constant" else one.line
    return ended


def find_ends_by_heading(lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    ended: Lasts = {}
    open_ones: list[tuple[int, Announced]] = []
    for one in found:
        level = len((LEVEL.match(lines.all[one.line - 1]) or [""])[0])
        while open_ones and open_ones[-1][0] >= level:
            ended[open_ones.pop()[1].at] = one.line - 1
        open_ones.append((level, one))
    last = len(lines.all) - (not lines.all[-1])
    return ended | {one.at: last for _, one in open_ones}


def find_ends_on_line(_lines: SourceLines, found: Sequence[Announced]) -> Lasts:
    return {one.at: one.line for one in found}


LASTS: dict[str, Callable[[SourceLines, Sequence[Announced]], Lasts]] = {
    "indent": find_ends_by_indent,
    "brace": find_ends_by_braces,
    "end": find_ends_by_keyword,
    "heading": find_ends_by_heading,
    "none": find_ends_on_line,
}


# What does this text define, on which lines, and inside what?

MOST_SYMBOLS = 5_000
"""In one file; a file with more is generated."""
LONGEST_TEXT = 200
HOLDS = frozenset(("class", "interface", "struct", "enum", "module"))
"""A function inside one of these is a method."""


@dataclass(frozen=True, slots=True)
class Definition:
    at: int
    """Where its name begins."""
    kind: str
    name: str
    line: int
    indent: int
    within: str = ""
    """The container that the line itself names."""


def find_defined_symbols(path: str, text: str) -> list[Symbol]:
    tongue = find_language(path)
    if tongue is None:
        return []
    code = mask_non_code(text, tongue.comments, tongue.strings)
    lines = SourceLines(code)
    found = sorted(_find_definitions(tongue, code, lines), key=lambda one: one.at)[:MOST_SYMBOLS]
    ended = LASTS[tongue.blocks](lines, found)
    return list(_nest_symbols(path, [one for one in found if one.at in ended], ended, text.split("\n")))


def _find_definitions(tongue: SourceLanguage, code: str, lines: SourceLines) -> Iterator[Definition]:
    seen: set[int] = set()
    for kind, pattern in tongue.compiled_patterns:
        for found in pattern.finditer(code):
            at, name = found.start("name"), found["name"]
            if at in seen or INSIDE in name:
                continue
            seen.add(at)
            line = lines.find_line(at)
            within = found.groupdict().get("within") or ""
            yield Definition(at, _refine_kind(tongue, kind, name), name, line, lines.measure_indent(line), within)
            if len(seen) > 2 * MOST_SYMBOLS:
                return


def _refine_kind(tongue: SourceLanguage, kind: str, name: str) -> str:
    return "constant" if tongue.name == "python" and kind == "variable" and name.isupper() else kind


def _nest_symbols(path: str, found: list[Definition], ended: dict[int, int], source: list[str]) -> Iterator[Symbol]:
    around: list[tuple[int, str, str]] = []
    for one in found:
        while around and one.line > around[-1][0]:
            around.pop()
        _, outer, kind = around[-1] if around else (0, "", "")
        last = max(ended[one.at], one.line)
        method = one.kind == "function" and (kind in HOLDS or one.within)
        within = one.within or outer
        text = source[one.line - 1].strip()[:LONGEST_TEXT]
        yield Symbol(one.name, "method" if method else one.kind, path, one.line, last, within, text)
        around.append((last, f"{within}.{one.name}" if within else one.name, one.kind))
