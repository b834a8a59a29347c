"""How are times, text from elsewhere and errors shown to the user?"""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

from mcp_server.model.text import escape_for_person


class ViewError(Exception):
    """A view cannot be shown; the message says why, and what to do."""


@contextmanager
def explain_refusals() -> Generator[None, None, None]:
    """Show a refusal to the user: what was refused, and what to do."""
    from mcp_server.model.results import Refusal

    try:
        yield
    except Refusal as refused:
        raise ViewError(f"{refused.problem.message} {refused.problem.way_out}") from None


def format_one_line(text: str) -> str:
    """Put text from elsewhere on one line, with line breaks escaped so that it cannot fake another line."""
    return escape_for_person(text, one_line=True)


def format_time(at_ns: int) -> str:
    """Format a time of the ledger in this machine's time zone."""
    return datetime.fromtimestamp(at_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
