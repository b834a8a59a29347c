"""What does a source file define, and on which lines? Read line by line in a dozen languages, without a parser.

Parsers would mean a dozen C dependencies that read hostile files inside the server's process while holding its lock.
Python's own gives up at the first syntax error of a half-written file and can exhaust the stack. We mask comments and
strings and scan the lines instead, in time linear in the file's length, which finds every definition written in the
usual way. A test compares the result for Python with what `ast` finds.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from mcp_server.guards.index.languages import SourceLanguage, find_language
from mcp_server.model.index import Symbol

# Which part of this text is code? Masks comments and strings without changing the length or the lines.
#
# Comments become spaces. A string keeps its first character, and the rest becomes STRING_FILL, which shows when a line
# begins inside a string. Every pattern consumes all that it scans, to the end of the text if nothing closes it, so the
# time grows linearly with the text.

STRING_FILL = "\x01"
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
    comment_patterns = "|".join(COMMENTS[style] for style in comments)
    string_patterns = "|".join(STRINGS[style] for style in strings)
    return re.compile(f"(?s)(?P<comment>{comment_patterns or '(?!)'})|(?P<string>{string_patterns or '(?!)'})")


def mask_non_code(text: str, comments: tuple[str, ...], strings: tuple[str, ...]) -> str:
    return compile_hidden_pattern(comments, strings).sub(_mask, text.replace(STRING_FILL, " "))


def _mask(match: re.Match[str]) -> str:
    if match["comment"] is not None:
        return NOT_A_LINE_END.sub(" ", match[0])
    return match[0][0] + NOT_A_LINE_END.sub(STRING_FILL, match[0][1:])


# On which line does a definition end? By indentation, by braces, by `end`, or by the next heading.

BRACKETS = re.compile(r"[()\[\]{}]")
BRACES_AND_ENDS = re.compile(r"[(){};]")
DEFINITION_START = re.compile(r"[ \t]*+(?:async[ \t]++def|def|class)[ \t]")
"""Cannot occur inside brackets, so we take a bracket that is still open here as closed."""
END_KEYWORD = re.compile(r"^([ \t]*+)end\b", re.MULTILINE)
HEADING_MARKS = re.compile(r"#{1,6}")


class Definition(Struct, frozen=True):
    offset: int
    """Where its name begins."""
    kind: str
    name: str
    line: int
    indent: int
    container: str = ""
    """The container that the line itself names."""


LastLines: TypeAlias = dict[int, int]
"""Where a name begins -> the last line of its definition. A name left out is not a definition after all."""


class SourceLines:
    """A text, with comments and strings masked, by line."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.all = code.split("\n")
        self.starts = [0]
        for line in self.all:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def find_line(self, offset: int) -> int:
        """Return the line number, counted from 1."""
        return bisect_right(self.starts, offset)

    def measure_indent(self, line: int) -> int:
        text = self.all[line - 1]
        return len(text) - len(text.lstrip(" \t"))


def find_ends_by_indent(lines: SourceLines, definitions: Sequence[Definition]) -> LastLines:
    by_line = {definition.line: definition for definition in definitions}
    last_lines: LastLines = {}
    open_definitions: list[Definition] = []
    last_code_line, depth, continues = 0, 0, False
    for number, text in enumerate(lines.all, 1):
        stripped = text.strip()
        if not stripped:
            continue
        depth = 0 if DEFINITION_START.match(text) else depth
        if not (depth or continues or text.startswith(STRING_FILL)):
            indent = lines.measure_indent(number)
            while open_definitions and indent <= open_definitions[-1].indent:
                last_lines[open_definitions.pop().offset] = last_code_line
            if number in by_line:
                open_definitions.append(by_line[number])
        for bracket in BRACKETS.findall(text):
            depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        last_code_line, continues = number, text.endswith("\\")
    return last_lines | {definition.offset: last_code_line for definition in open_definitions}


def find_ends_by_braces(lines: SourceLines, definitions: Sequence[Definition]) -> LastLines:
    signs = [(match.start(), match[0]) for match in BRACES_AND_ENDS.finditer(lines.code)]
    closing = _pair_brackets(signs)
    starts = [offset for offset, _ in signs]
    last_lines: LastLines = {}
    for number, definition in enumerate(definitions):
        limit = definitions[number + 1].offset if number + 1 < len(definitions) else len(lines.code)
        last_lines[definition.offset] = definition.line
        index = bisect_left(starts, definition.offset)
        while index < len(signs) and signs[index][0] < limit:
            sign = signs[index][1]
            if sign == "(":
                index = closing.get(index, len(signs))
            elif sign == "{":
                end = closing.get(index)
                last_lines[definition.offset] = len(lines.all) if end is None else lines.find_line(starts[end])
                break
            elif sign in ";}":
                break
            index += 1
    return last_lines


def _pair_brackets(signs: Sequence[tuple[int, str]]) -> dict[int, int]:
    """Map each opening bracket's index to that of its closing one."""
    closing: dict[int, int] = {}
    open_indexes: dict[str, list[int]] = {")": [], "}": []}
    for index, (_, sign) in enumerate(signs):
        if sign in "({":
            open_indexes[")" if sign == "(" else "}"].append(index)
        elif sign in ")}" and open_indexes[sign]:
            closing[open_indexes[sign].pop()] = index
    return closing


def find_ends_by_keyword(lines: SourceLines, definitions: Sequence[Definition]) -> LastLines:
    lines_by_indent: dict[int, list[int]] = {}
    for match in END_KEYWORD.finditer(lines.code):
        lines_by_indent.setdefault(len(match[1]), []).append(lines.find_line(match.start()))
    last_lines: LastLines = {}
    for definition in definitions:
        end_lines = lines_by_indent.get(definition.indent, [])
        index = bisect_right(end_lines, definition.line)
        is_block = index < len(end_lines) and definition.kind != "constant"
        last_lines[definition.offset] = end_lines[index] if is_block else definition.line
    return last_lines


def find_ends_by_heading(lines: SourceLines, definitions: Sequence[Definition]) -> LastLines:
    last_lines: LastLines = {}
    open_headings: list[tuple[int, Definition]] = []
    for definition in definitions:
        level = len((HEADING_MARKS.match(lines.all[definition.line - 1]) or [""])[0])
        while open_headings and open_headings[-1][0] >= level:
            last_lines[open_headings.pop()[1].offset] = definition.line - 1
        open_headings.append((level, definition))
    last = len(lines.all) - (not lines.all[-1])
    return last_lines | {definition.offset: last for _, definition in open_headings}


def find_ends_on_line(_lines: SourceLines, definitions: Sequence[Definition]) -> LastLines:
    return {definition.offset: definition.line for definition in definitions}


END_FINDERS: dict[str, Callable[[SourceLines, Sequence[Definition]], LastLines]] = {
    "indent": find_ends_by_indent,
    "brace": find_ends_by_braces,
    "end": find_ends_by_keyword,
    "heading": find_ends_by_heading,
    "none": find_ends_on_line,
}


# Which symbols does this text define, on which lines, and inside which others?

MAX_SYMBOLS = 5_000
"""A file that defines more is generated."""
MAX_TEXT_CHARS = 200
CONTAINERS = frozenset(("class", "interface", "struct", "enum", "module"))
"""A function inside one of these is a method."""


def find_defined_symbols(path: str, text: str) -> list[Symbol]:
    language = find_language(path)
    if language is None:
        return []
    code = mask_non_code(text, language.comments, language.strings)
    lines = SourceLines(code)
    definitions = sorted(_find_definitions(language, code, lines), key=attrgetter("offset"))[:MAX_SYMBOLS]
    last_lines = END_FINDERS[language.blocks](lines, definitions)
    complete = [definition for definition in definitions if definition.offset in last_lines]
    return list(_nest_symbols(path, complete, last_lines, text.split("\n")))


def _find_definitions(language: SourceLanguage, code: str, lines: SourceLines) -> Iterator[Definition]:
    offsets: set[int] = set()
    for kind, pattern in language.compiled_patterns:
        for match in pattern.finditer(code):
            offset, name = match.start("name"), match["name"]
            if offset in offsets or STRING_FILL in name:
                continue
            offsets.add(offset)
            line = lines.find_line(offset)
            container = match.groupdict().get("within") or ""
            yield Definition(
                offset, _refine_kind(language, kind, name), name, line, lines.measure_indent(line), container
            )
            if len(offsets) > 2 * MAX_SYMBOLS:
                return


def _refine_kind(language: SourceLanguage, kind: str, name: str) -> str:
    return "constant" if language.name == "python" and kind == "variable" and name.isupper() else kind


def _nest_symbols(
    path: str, definitions: list[Definition], last_lines: dict[int, int], source: list[str]
) -> Iterator[Symbol]:
    containers: list[tuple[int, str, str]] = []
    for definition in definitions:
        while containers and definition.line > containers[-1][0]:
            containers.pop()
        _, outer_name, outer_kind = containers[-1] if containers else (0, "", "")
        last = max(last_lines[definition.offset], definition.line)
        method = definition.kind == "function" and (outer_kind in CONTAINERS or definition.container)
        container = definition.container or outer_name
        text = source[definition.line - 1].strip()[:MAX_TEXT_CHARS]
        yield Symbol(
            definition.name, "method" if method else definition.kind, path, definition.line, last, container, text
        )
        containers.append((last, f"{container}.{definition.name}" if container else definition.name, definition.kind))
