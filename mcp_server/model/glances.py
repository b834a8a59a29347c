"""What was a call about, on one line for the person who looks back?

The line names the tool and what it works on: `bash "make test" exec_dir="web"`. Everything that a model wrote stands in
quotes, with what a screen would not show escaped, so that none of it passes for menugate's own words. The marks for
what was left out stand where no argument can write them, or count as left out even if one did.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from mcp_server.model.text import escape_for_person, quote_as_json
from mcp_server.model.tools import Arguments, Tool

MAX_CHARS = 200
CUT = "…"
MASKED = "[redacted]"
TOPICS = frozenset({"pattern", "query", "url", "address"})
"""Arguments that say what a call is about, in tools whose subject is another one, or that have none."""
STRING = r'"(?:[^"\\]|\\.)*"'
VALUE = rf"(?:{STRING}|\[{STRING}(?:, {STRING})*\]?)"
LINE = re.compile(rf'(?:[^\s"\\]+|{STRING})(?: (?:[^\s"\\=]+=)?{VALUE})*{CUT}?')
PART = re.compile(rf' (?:([^\s"\\=]+)=)?({VALUE})')
PARTIAL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-f]{0,3})?)$")

Mask = Callable[[str, int], str]
"""Returns the beginning of a text, without secrets and without half a secret at the cut."""


def format_glance(tool: Tool, arguments: Arguments, mask: Mask) -> str:
    """Describe the call by its subject, then the other arguments that say what it is about, with their names."""
    subject = tool.subject[0] if tool.subject else ""
    line, is_whole = tool.name, True
    for name in _find_shown_names(tool):
        value = arguments.get(name)
        if not value or not isinstance(value, str | list):
            continue
        text, is_complete = _format_value(cast("str | list[Any]", value), mask)
        line += f" {text}" if name == subject else f" {name}={text}"
        is_whole = is_whole and is_complete
        if len(line) > MAX_CHARS:
            break
    return _cut_line(line, is_whole)


def format_unknown_glance(tool: str, mask: Mask) -> str:
    """Describe a call that named no tool of ours: its name is the caller's text."""
    text, is_whole = _format_value(tool, mask)
    return _cut_line(text, is_whole)


_shown: dict[str, tuple[Tool, tuple[str, ...]]] = {}
"""Every call asks for the names of its tool. A tool that was replaced is another object."""


def _find_shown_names(tool: Tool) -> tuple[str, ...]:
    known = _shown.get(tool.name)
    if known is None or known[0] is not tool:
        known = _shown[tool.name] = (tool, tuple(list_shown_names(tool)))
    return known[1]


def list_shown_names(tool: Tool) -> Iterator[str]:
    """List the arguments that a line shows, the subject first."""
    subject = tool.subject[0] if tool.subject else ""
    if subject:
        yield subject
    for name in tool.arguments.get("properties", ()):
        if name != subject and (name in TOPICS or name in tool.places):
            yield name


def _format_value(value: str | list[Any], mask: Mask) -> tuple[str, bool]:
    """Return the value in quotes, and whether it is all of it."""
    if isinstance(value, str):
        return quote_as_json(mask(value, MAX_CHARS)), len(value) <= MAX_CHARS
    texts = [one for one in value[:MAX_CHARS] if isinstance(one, str)]
    shown = [_format_value(one, mask) for one in texts]
    return f"[{', '.join(text for text, _ in shown)}]", len(texts) == len(value) and all(whole for _, whole in shown)


def _cut_line(line: str, is_whole: bool) -> str:
    if len(line) <= MAX_CHARS and (is_whole or len(line) < MAX_CHARS):
        return line if is_whole else line + CUT
    kept = line[: MAX_CHARS - 2]
    if partial := PARTIAL_ESCAPE.search(kept):
        kept = kept[: partial.start(1)]
    is_quote_open = re.sub(r"\\.", "", kept).count('"') % 2 == 1
    # Between two arguments, nothing of the next one is worth showing.
    kept = f'{kept}"' if is_quote_open else re.sub(r'(?:,? [^\s"]*|,|\[)$', "", kept)
    return kept + CUT


def is_glance(line: str) -> bool:
    """True if `format_glance` could have written it: anyone may have written in the state file."""
    return (
        len(line) <= MAX_CHARS and escape_for_person(line, one_line=True) == line and LINE.fullmatch(line) is not None
    )


def parse_glance(line: str, tools: Mapping[str, Tool]) -> tuple[Tool, Arguments] | None:
    """Return the call that a line describes, with the arguments shown in it; None if it does not show all of them."""
    name, _, _ = line.partition(" ")
    tool = tools.get(name)
    if tool is None or line.endswith(CUT) or MASKED in line or not is_glance(line):
        return None
    subject = tool.subject[0] if tool.subject else ""
    return tool, {part[1] or subject: json.loads(part[2]) for part in PART.finditer(line, len(name))}
