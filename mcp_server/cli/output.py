"""How is something shown to a person? Text, tables and JSON; colour and progress only on a terminal."""

import json
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol, TextIO

from mcp_server.model.text import escape_unprintable
from mcp_server.settings import may_use_colours

COLOURS = {"dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1}
TOLD_EVERY = 0.1
KINDS = (
    *("start", "stop", "intent", "outcome", "refusal", "question", "answer", "redeemed"),
    *("transition", "delivery", "report", "record", "summary", "trust", "health", "attempt", "rules", "alarm"),
    *("segment", "adoption"),
)
"""Of the ledger's rows, as a person may ask for them."""


class CliError(Exception):
    """What went wrong, in words for the person, with the way out.

    Ends the command with exit code 1, or with 2 where the command line was not understood.
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class ProgressPrinter(Protocol):
    def __call__(self, done: int, total: int = 0, /) -> None: ...


def colour(text: str, name: str, stream: TextIO | None = None) -> str:
    plain = not (stream or sys.stdout).isatty() or not may_use_colours()
    return text if plain else f"\x1b[{COLOURS[name]}m{text}\x1b[0m"


def format_one_line(text: str) -> str:
    """Somebody else's words within a line of ours: whatever they hold, no other line begins there."""
    return escape_unprintable(text).replace("\n", r"\n").replace("\t", r"\t")


def say(*parts: str | tuple[str, str]) -> None:
    """One line or more; a pair is a text and its colour.

    At once, also into a pipe: whoever waits for the line that says `ready` gets it when it is true.
    """
    shown = (
        escape_unprintable(part) if isinstance(part, str) else colour(escape_unprintable(part[0]), part[1])
        for part in parts
    )
    print("".join(shown), flush=True)


def note(text: str) -> None:
    """Beside the result, and so not in its way when that is piped on."""
    print(colour(escape_unprintable(text), "dim", sys.stderr), file=sys.stderr)


def complain(text: str) -> None:
    print(f"{colour('menugate:', 'red', sys.stderr)} {escape_unprintable(text)}", file=sys.stderr)


def print_json(value: Any, indent: int | None = 2) -> None:
    # Half a surrogate pair is written as its escape, which is JSON again.
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(value, indent=indent, ensure_ascii=not utf8, default=str))


def print_table(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    right: Sequence[int] = (),
    paint: Mapping[str, str] | None = None,
) -> None:
    """Columns as wide as what is in them; the last one runs on. The columns in `right` hold numbers, and a cell whose
    word is in `paint` gets that colour."""
    lines = [[format_one_line(cell) for cell in line] for line in ([head] if head else []) + list(rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width if column + 1 < len(widths) else 0)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        if head and number == 0:
            print(colour("  ".join(cells).rstrip(), "dim"))
        else:
            painted = [colour(cell, name) if (name := (paint or {}).get(cell.strip())) else cell for cell in cells]
            print("  ".join(painted).rstrip())


def format_time(at_ns: int) -> str:
    """A moment of the ledger, in this machine's time."""
    return datetime.fromtimestamp(at_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")


@contextmanager
def show_progress(what: str) -> Generator[ProgressPrinter, None, None]:
    """How far something long is: one line on stderr that goes away again, and only where a person looks on."""
    stream, last = sys.stderr, 0.0

    def show_progress(done: int, total: int = 0, /) -> None:
        nonlocal last
        now = time.monotonic()
        if stream.isatty() and now - last >= TOLD_EVERY:
            last = now
            of = f" of {total:,} ({min(done * 100 // total, 100)} %)" if total else ""
            print(f"\r{what}: {done:,}{of}\x1b[K", end="", file=stream, flush=True)

    try:
        yield show_progress
    finally:
        if last:
            print("\r\x1b[K", end="", file=stream, flush=True)
