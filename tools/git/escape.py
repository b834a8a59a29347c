"""How is text from a repository shown? What harms a terminal is escaped, and long lines are cut."""

from collections.abc import Sequence

from mcp_server.model.text import escape_for_model

LINE_CHARS = 2000
MAX_NAMES = 5


def to_content_line(data: bytes) -> str:
    """Make one line of a file's content printable."""
    text = escape_for_model(data[: 4 * LINE_CHARS + 4])
    if len(text) <= LINE_CHARS:
        return text
    return f"{text[:LINE_CHARS]}… [this line has {len(data):,} bytes]"


def to_visible_path(data: bytes) -> str:
    """Make a path printable, as the file tools take it. One that is not UTF-8 can be shown, but not passed back."""
    return escape_for_model(data, one_line=True)


def format_names(names: Sequence[str]) -> str:
    """List the first names in backticks."""
    return ", ".join(f"`{name}`" for name in names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
