"""How is a file's text shown? Numbered lines, cut where they would flood, with what hurts a terminal made visible.

Nothing else about the text is changed: `Edit` must find again exactly what is shown.
"""

from msgspec import Struct

from mcp_server.model.text import escape_for_model
from tools.files.definitions import LINES

MOST_BYTES = 32 << 20
"""The most that is read of one file; `grep` searches larger ones."""
LINE_CHARS = 2000
PAGE_CHARS = 100_000
TEXT_PROBE = 8192

BOM = "\ufeff"


def decode_text(data: bytes) -> str:
    """Decode to text that encodes to the same bytes, whatever they are."""
    return data.decode("utf-8", "surrogateescape")


def encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def describe_non_text(data: bytes) -> str | None:
    """Describe what it is instead; None if it is text."""
    if data.startswith(b"%PDF-"):
        return "a PDF document"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text, not UTF-8"
    if data.startswith((b"PK\x03\x04", b"\x1f\x8b", b"7z\xbc\xaf", b"\xfd7zXZ")):
        return "an archive"
    return "binary data" if b"\0" in data[:TEXT_PROBE] else None


class LinePage(Struct, frozen=True):
    """Some lines of a text, numbered, ready to be shown."""

    text: str
    first: int
    last: int
    total: int
    bytes: int
    """How many of the file's bytes these lines take."""
    cut: int = 0
    """How many of the lines are longer than shown."""
    changed: bool = False
    """Some characters are shown as escapes that the file does not contain."""


def count_lines(data: bytes) -> int:
    return data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)


def build_line_page(data: bytes, first: int = 1, lines: int = LINES, chars: int = PAGE_CHARS) -> LinePage:
    """Number the lines from that one on, until the lines or the characters are used up; at least one line."""
    start, total = 0, count_lines(data)
    for _ in range(first - 1):
        start = data.find(b"\n", start) + 1
    shown: list[str] = []
    size, cut, end, changed = 0, 0, start, False
    for number in range(first, min(first + lines, total + 1)):
        stop = data.find(b"\n", end)
        stop = len(data) if stop < 0 else stop
        text, short = _decode_line(data[end:stop])
        visible = escape_for_model(text)
        line = f"{number}\t{visible}"
        if shown and size + len(line) > chars:
            break
        changed, cut, size = changed or visible != text, cut + short, size + len(line) + 1
        shown.append(line + (f"… [this line has {stop - end:,} bytes]" if short else ""))
        end = stop + 1
    return LinePage("\n".join(shown), first, first + len(shown) - 1, total, min(end, len(data)) - start, cut, changed)


def _decode_line(line: bytes) -> tuple[str, bool]:
    # No character takes more than four bytes, so this is enough to fill what is shown.
    text = decode_text(line[: 4 * LINE_CHARS + 4].removesuffix(b"\r"))
    return text[:LINE_CHARS], len(text) > LINE_CHARS


def format_numbered_lines(text: str, first: int, last: int) -> str:
    """Format these lines as `Read` shows them; they are counted from 1 and limited to the text."""
    found = build_line_page(encode_text(text), max(first, 1), max(last - max(first, 1) + 1, 1))
    return found.text
