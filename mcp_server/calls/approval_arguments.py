"""How does a question show an argument, so that every character is visible and it can be read back exactly?

As JSON, with everything escaped that a screen would not show or would obey. Nothing is left out or cut short: whatever
someone wants to hide is what the person must see. The mark for a secret stands outside the quotes, where no argument
can write. `to_field` gives the same to programs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_server.guards.redaction import Redactor
from mcp_server.model.look_alikes import find_look_alikes
from mcp_server.model.text import escape_for_person, quote_as_json, quote_text

QUOTE = re.compile("`([^`]*)`")
PLAIN_QUOTE = re.compile(r"[\w./+=@%,-]{1,60}(?: -{1,2}\w[\w-]{0,19})?(?: [\w./-]{1,20})?|[!-'*-_a-~]{1,40}")
"""A name, or two, or with an option between them, or signs without a space, such as `"$x"*`: nobody takes it for a
sentence. Parentheses are left to our own numbers."""
LINE = re.compile(r"(?:[ \t]*\n){2,}|[^\n]*\n|[^\n]+")
"""Lines without a character stand together: many of them would push what is above them off the screen."""
SPACES = re.compile(r" {2,}")
WIDEST_GAP = 40
"""More spaces in one row, together, could make a screen begin its next row with what follows, so that it looks like a
line of ours."""


def format_argument_lines(name: str, value: Any, redactor: Redactor, quoted: bool = True) -> Iterator[str]:
    """Format an argument as its line in the question, or as several if it is a text of several lines, each quoted by
    itself. A name of ours needs no quotes."""
    head = f"  {format_value(name, redactor) if quoted else name}:"
    lines = list(format_quoted_lines(value, redactor)) if isinstance(value, str) else []
    if len(lines) > 1:
        yield head
        yield from (f"    {line}" for line in lines)
    else:
        yield f"{head} {format_value(value, redactor)}"


def format_look_alike_lines(value: Any) -> Iterator[str]:
    """Say which characters of an argument can be taken for others: a `с` that is Cyrillic."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if found := find_look_alikes(text):
        each = ", ".join(f"{quote_as_json(character)} {what}" for character, what in found)
        yield f"    (mixes alphabets: {each})"


def format_value(value: Any, redactor: Redactor) -> str:
    if isinstance(value, str):
        return " ".join(format_quoted_lines(value, redactor))
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, Any], value).items()
        return (
            f"{{{', '.join(f'{format_value(key, redactor)}: {format_value(one, redactor)}' for key, one in entries)}}}"
        )
    if isinstance(value, list):
        return f"[{', '.join(format_value(one, redactor) for one in cast(list[Any], value))}]"
    return json.dumps(value)


def format_quoted_lines(text: str, redactor: Redactor) -> Iterator[str]:
    """Yield line by line: quoted texts, with the marks for secrets between them. A line ends at a gap, too."""
    line: list[str] = []
    for piece, secret in redactor.split_at_secrets(text):
        if secret:
            line.append(format_secret_mark(piece))
            continue
        for part in LINE.findall(piece):
            *before_gaps, last = _split_at_gaps(part)
            for one in before_gaps:
                yield " ".join([*line, quote_as_json(one)])
                line.clear()
            line.append(quote_as_json(last))
            if part.endswith("\n"):
                yield " ".join(line)
                line.clear()
    if line or not text:
        yield " ".join(line) or '""'


def _split_at_gaps(line: str) -> Iterator[str]:
    start = spaces = 0
    for gap in SPACES.finditer(line) if line.strip() else ():
        spaces += gap.end() - gap.start()
        if spaces > WIDEST_GAP and line[gap.end() :] not in ("", "\n"):
            yield line[start : gap.end()]
            start, spaces = gap.end(), 0
    yield line[start:]


def lift_quotes(text: str, rule: str | None = None) -> tuple[str, list[str]]:
    """Take what a sentence of ours quotes of a call out of it, if that could pass for more of the sentence. Return the
    sentence with numbers in its place, and the quotes in that order. `rule`: what the sentence may quote as well."""
    own = quote_text(rule) if rule else ""
    lifted: list[str] = []

    def replace_quote(match: re.Match[str]) -> str:
        if PLAIN_QUOTE.fullmatch(match[1]) or match[0] == own:
            return match[0]
        lifted.append(match[1])
        return f"({len(lifted)})"

    return QUOTE.sub(replace_quote, text), lifted


def mark_secrets(text: str, redactor: Redactor) -> str:
    """Format a sentence of ours that quotes arguments: on one line, with known secrets marked."""
    return "".join(
        format_secret_mark(piece) if secret else escape_for_person(piece, one_line=True)
        for piece, secret in redactor.split_at_secrets(text)
    )


def format_secret_mark(secret: str) -> str:
    return f"[secret, {len(secret)} characters]"


def to_field(name: str, value: Any, redactor: Redactor) -> dict[str, Any]:
    """Return the argument for a program. Where it held a known secret, its mark stands there instead, and `masked` says
    where: the keys and positions that lead to the text, and the span of the mark in it."""
    masked: list[dict[str, Any]] = []
    field: dict[str, Any] = {"name": _mask_text(name, ["name"], redactor, masked)}
    field["value"] = _mask_value(value, ["value"], redactor, masked)
    return {**field, "masked": masked} if masked else field


def _mask_value(value: Any, at: list[str | int], redactor: Redactor, masked: list[dict[str, Any]]) -> Any:
    if isinstance(value, str):
        return _mask_text(value, at, redactor, masked)
    if isinstance(value, Mapping):
        copy: dict[str, Any] = {}
        for key, one in cast(Mapping[str, Any], value).items():
            shown = _mask_text(key, [*at, "keys"], redactor, masked)
            # Two keys that differ in a secret alone stay two.
            while shown in copy:
                shown += " "
            copy[shown] = _mask_value(one, [*at, shown], redactor, masked)
        return copy
    if isinstance(value, list):
        items = enumerate(cast(list[Any], value))
        return [_mask_value(one, [*at, number], redactor, masked) for number, one in items]
    return value


def _mask_text(text: str, at: list[str | int], redactor: Redactor, masked: list[dict[str, Any]]) -> str:
    shown = ""
    for piece, secret in redactor.split_at_secrets(text):
        start = len(shown)
        shown += format_secret_mark(piece) if secret else piece
        if secret:
            masked.append({"at": at, "start": start, "end": len(shown)})
    return shown
