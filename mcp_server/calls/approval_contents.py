"""How does a question show a long text that a call would write to a file? Shortened, as no other argument ever is."""

import base64
import difflib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_server.calls.approval_arguments import format_quoted_lines
from mcp_server.guards.redaction import Redactor
from mcp_server.model.text import format_count, quote_as_json
from mcp_server.model.tools import Tool

CONTENTS = frozenset({"content", "old_string", "new_string", "edits"})
"""The arguments of our own file tools that are contents of files and decide nothing else."""
LONG_CHARS = 2_000
PART_CHARS = 600
"""How much is shown of the beginning and of the end."""
MOST_COMPARED = 3_000
"""Lines of a text that is compared with the file as it is: longer ones take too much time."""


def is_content(tool: Tool, name: str) -> bool:
    return tool.rehearsed and name in CONTENTS


def is_long_content(value: Any) -> bool:
    return sum(map(len, find_texts(value))) > LONG_CHARS


def format_content_lines(
    name: str, value: Any, redactor: Redactor, before: str | None, whole: bool = False
) -> Iterator[str]:
    """Format a long content. `before`: the text of the file that it replaces as a whole, if that is known. `whole`:
    leave nothing out but what stays as it is."""
    head = f"  {quote_as_json(name)}:"
    if isinstance(value, str):
        yield from _format_text(head, value, redactor, before, whole)
    else:
        yield head
        for number, edit in enumerate(cast(list[Any], value), 1):
            entries = cast(Mapping[str, Any], edit).items() if isinstance(edit, Mapping) else [("", edit)]
            for key, one in entries:
                label = f"    {number}, {quote_as_json(key)}:"
                yield from _format_text(label, one if isinstance(one, str) else str(one), redactor, None, whole)


def _format_text(head: str, text: str, redactor: Redactor, before: str | None, whole: bool) -> Iterator[str]:
    size = format_count(len(text), "character")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    start = f"{head} {size}, SHA-256 {digest}"
    changes = None if before is None else _compare_texts(before, text)
    # A secret that is cut in two is no longer recognized, so such a text is shown whole.
    if any(secret for one in (text, before or "") for _, secret in redactor.split_at_secrets(one)):
        yield f"{head} {size}"
        yield from format_text_lines(text, redactor)
    elif changes is not None and sum(map(len, changes)) <= max(LONG_CHARS, len(text)):
        yield f"{start}; what would change in the file:"
        yield from (f"    {quote_as_json(line)}" for line in changes)
    elif whole or len(text) <= LONG_CHARS:
        yield f"{start}:"
        yield from format_text_lines(text, redactor)
    else:
        yield f"{start}; how it begins and ends:"
        yield from format_text_lines(text[:PART_CHARS], redactor)
        yield f"    ({format_count(len(text) - 2 * PART_CHARS, 'character')} not shown here)"
        yield from format_text_lines(text[-PART_CHARS:], redactor)


def format_decoded_lines(content: Any, redactor: Redactor, whole: bool) -> Iterator[str]:
    """Show the text that base64 stands for, which nobody can read. Nothing if it is no text."""
    try:
        text = base64.b64decode(content).decode()
    except (ValueError, TypeError):
        return
    yield from _format_text("    (decoded, this is a text)", text, redactor, None, whole)


def format_text_lines(text: str, redactor: Redactor) -> Iterator[str]:
    yield from (f"    {line}" for line in format_quoted_lines(text, redactor))


def _compare_texts(before: str, after: str) -> list[str] | None:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MOST_COMPARED:
        return None
    return list(difflib.unified_diff(old, new, "now", "then"))


def find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        entries = cast(Mapping[str, Any], value).values() if isinstance(value, Mapping) else cast(list[Any], value)
        for one in entries:
            yield from find_texts(one)
