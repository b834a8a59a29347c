"""How are a moment, somebody else's words and an error written for a person?"""

from datetime import datetime


class ViewError(Exception):
    """What the person asked to see cannot be shown; the message says why, and what to do."""


def clean(text: str) -> str:
    """Escape control characters: a model or a client wrote some of this, and must not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in "\n\t" else _escape_character(sign) for sign in text)


def format_one_line(text: str) -> str:
    """Somebody else's words inside a line of ours, with line breaks escaped so that they cannot fake another line."""
    return clean(text).replace("\n", r"\n").replace("\t", r"\t")


def _escape_character(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def format_time(at_ns: int) -> str:
    """A moment of the ledger, in this machine's time zone."""
    return datetime.fromtimestamp(at_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
