"""How is somebody else's text shown? Every character that cannot be seen is written out, long lines are cut."""

import re

LINE_CHARS = 2000

# What moves a cursor, turns the direction of reading, joins, hides or ends a line, but for tab and line end. The house
# takes such characters out of text from outside; written out they can be told from what was never there.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def to_plain_text(text: bytes | str) -> str:
    """As text that can be sent and seen: bytes that are no UTF-8 and unseen characters become escapes."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return UNSEEN.sub(_escape_character, text)


def _escape_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # how Python carries a byte that is no UTF-8
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"


def to_one_line(text: bytes | str, most: int = 200) -> str:
    """On one line, whatever it says."""
    shown = to_plain_text(text).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def to_content_line(data: bytes) -> str:
    """One line of a file's content."""
    text = to_plain_text(data[: 4 * LINE_CHARS + 4])
    if len(text) <= LINE_CHARS:
        return text
    return f"{text[:LINE_CHARS]}… [this line has {len(data):,} bytes]"


def to_visible_path(data: bytes) -> str:
    """A path as the file tools take it; one that is no text can be told but not typed."""
    return to_plain_text(data).replace("\n", "\\n").replace("\t", "\\t")


def format_count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
