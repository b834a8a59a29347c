"""How is an argument written in a question, so that every character of it is seen and it can be read back exactly?

As JSON, with everything escaped that a screen would not show or would obey. Nothing is left out or cut short: what
somebody wants to hide is what the person has to see. What is marked as a secret stands outside the quotes, where no
argument can write.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from unicodedata import category, combining

from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sanitizer import UNSEEN

BLANK = frozenset("\u2800\ufe0e\ufe0f\u200d\U00016fe4\U0001d159")
"""Printable by name, and shown as nothing or as a space."""
OVERLAY = 1
"""The combining class of what is drawn over the character before it."""
MOST_MARKS = 2
"""More of them on one letter are there to cover its neighbours."""
LINE = re.compile(r"[^\n]*\n|[^\n]+")
MEANT = re.compile(r'["\\]')
"""What would be read as the end of the text, or as an escape."""
SHORT = {"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape(text: str) -> str:
    """On one line, and with nothing in it that is not seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if seen else _code(char) for char, seen in _visibility(text))


def quote(text: str) -> str:
    return '"' + escape(MEANT.sub(r"\\\g<0>", text)) + '"'


def argument_lines(name: str, value: Any, redactor: Redactor, quoted: bool = True) -> Iterator[str]:
    """Its line in the question, or several, where it is a text of several lines: each in quotes of its own. A name of
    ours needs no quotes."""
    head = f"  {spell(name, redactor) if quoted else name}:"
    lines = list(_lines(value, redactor)) if isinstance(value, str) else []
    if len(lines) > 1:
        yield head
        yield from (f"    {line}" for line in lines)
    else:
        yield f"{head} {spell(value, redactor)}"


def spell(value: Any, redactor: Redactor) -> str:
    if isinstance(value, str):
        return " ".join(_lines(value, redactor))
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, Any], value).items()
        return f"{{{', '.join(f'{spell(key, redactor)}: {spell(one, redactor)}' for key, one in entries)}}}"
    if isinstance(value, list):
        return f"[{', '.join(spell(one, redactor) for one in cast(list[Any], value))}]"
    return json.dumps(value)


def _lines(text: str, redactor: Redactor) -> Iterator[str]:
    """Line by line, as texts in quotes and marks between them."""
    line: list[str] = []
    for piece, secret in redactor.pieces(text):
        if secret:
            line.append(mark(piece))
            continue
        for part in LINE.findall(piece):
            line.append(quote(part))
            if part.endswith("\n"):
                yield " ".join(line)
                line.clear()
    if line or not text:
        yield " ".join(line) or '""'


def mark_secrets(text: str, redactor: Redactor) -> str:
    """A sentence of ours that quotes arguments: on one line, the known secrets in it marked."""
    return "".join(mark(piece) if secret else escape(piece) for piece, secret in redactor.pieces(text))


def mark(secret: str) -> str:
    return f"[secret, {len(secret)} characters]"


def _visibility(text: str) -> Iterator[tuple[str, bool]]:
    """Each character, and whether it may stand for itself."""
    letter, marks = False, 0
    for char in text:
        if char.isascii():
            letter, marks = False, 0
            yield char, char.isprintable()
            continue
        seen = char.isprintable() and char not in BLANK and not UNSEEN.match(char)
        if category(char).startswith("M"):
            # After a letter that takes marks, as scripts need them; elsewhere one hides what is before it.
            marks += 1
            yield char, seen and letter and marks <= MOST_MARKS and combining(char) != OVERLAY
        else:
            letter, marks = seen and char.isalpha(), 0
            yield char, seen


def _code(char: str) -> str:
    if char in SHORT:
        return SHORT[char]
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    # As JSON has it: two halves.
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
