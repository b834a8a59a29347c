"""How are a moment, somebody else's words and an error written for a person?"""

from datetime import datetime

from mcp_server.model.text import escape_for_person


class ViewError(Exception):
    """What the person asked to see cannot be shown; the message says why, and what to do."""


def format_one_line(text: str) -> str:
    """Somebody else's words inside a line of ours, with line breaks escaped so that they cannot fake another line."""
    return escape_for_person(text, one_line=True)


def format_time(at_ns: int) -> str:
    """A moment of the ledger, in this machine's time zone."""
    return datetime.fromtimestamp(at_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
