"""What does this text define, on which lines, and inside what?"""

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_server.guards.index.languages import SourceLanguage, named
from mcp_server.guards.index.masking import INSIDE, masked
from mcp_server.guards.index.symbols import LASTS, SourceLines
from mcp_server.model.index import Symbol

MOST_SYMBOLS = 5_000
"""In one file; one with more is made by a program."""
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
    """What the line itself says it belongs to."""


def defined(path: str, text: str) -> list[Symbol]:
    tongue = named(path)
    if tongue is None:
        return []
    code = masked(text, tongue.comments, tongue.strings)
    lines = SourceLines(code)
    found = sorted(_definitions(tongue, code, lines), key=lambda one: one.at)[:MOST_SYMBOLS]
    ended = LASTS[tongue.blocks](lines, found)
    return list(_nested(path, [one for one in found if one.at in ended], ended, text.split("\n")))


def _definitions(tongue: SourceLanguage, code: str, lines: SourceLines) -> Iterator[Definition]:
    seen: set[int] = set()
    for kind, pattern in tongue.looks:
        for found in pattern.finditer(code):
            at, name = found.start("name"), found["name"]
            if at in seen or INSIDE in name:
                continue
            seen.add(at)
            line = lines.of(at)
            within = found.groupdict().get("within") or ""
            yield Definition(at, _kind(tongue, kind, name), name, line, lines.indent(line), within)
            if len(seen) > 2 * MOST_SYMBOLS:
                return


def _kind(tongue: SourceLanguage, kind: str, name: str) -> str:
    return "constant" if tongue.name == "python" and kind == "variable" and name.isupper() else kind


def _nested(path: str, found: list[Definition], ended: dict[int, int], source: list[str]) -> Iterator[Symbol]:
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
