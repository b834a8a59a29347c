"""How is somebody else's text shown? Every character that cannot be seen is written out, long lines are cut."""

from mcp_server.model.text import to_plain_text

LINE_CHARS = 2000


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
