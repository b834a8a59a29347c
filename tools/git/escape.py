"""How is text from a repository shown? What harms a terminal is escaped, and long lines are cut."""

from collections.abc import Sequence

from mcp_server.model.text import escape_for_model

LINE_CHARS = 2000


def to_content_line(data: bytes) -> str:
    """Make one line of a file's content printable."""
    text = escape_for_model(data[: 4 * LINE_CHARS + 4])
    if len(text) <= LINE_CHARS:
        return text
    return f"{text[:LINE_CHARS]}… [this line has {len(data):,} bytes]"


def to_visible_path(data: bytes) -> str:
    """Make a path printable, as the file tools take it. One that is not UTF-8 can be shown, but not passed back."""
    return escape_for_model(data, one_line=True)


def format_count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_names(names: Sequence[str], limit: int = 5) -> str:
    """List the first names in backticks."""
    return ", ".join(f"`{name}`" for name in names[:limit]) + (", ..." if len(names) > limit else "")
