"""How is something shown to a person? Text, tables and JSON; colour, wrapping and progress only where they help."""

import json
import os
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from textwrap import fill
from typing import Any, Protocol, TextIO

from mcp_server.model.text import escape_for_person
from mcp_server.settings import may_use_colours, read_columns
from mcp_server.views.text import ViewError, format_one_line

COLOURS = {"dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1}
PROGRESS_SECONDS = 0.1
PLAIN_WIDTH = 80
MIN_CELL = 16
"""Columns. With less room than this, the last cell of a table runs on and the terminal breaks it."""
KINDS = (
    *("start", "stop", "intent", "outcome", "refusal", "question", "answer", "redeemed"),
    *("transition", "delivery", "report", "record", "summary", "trust", "health", "attempt", "rules", "alarm"),
    *("segment", "adoption"),
)
"""The kinds of ledger rows, by the names a person can ask for."""


class CliError(ViewError):
    """What went wrong and what to do about it, in words for the person.

    Ends the command with exit code 1, or 2 if the command line itself was wrong.
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class ProgressPrinter(Protocol):
    def __call__(self, done: int, total: int = 0, /) -> None: ...


def colour(text: str, name: str, stream: TextIO | None = None) -> str:
    plain = not (stream or sys.stdout).isatty() or not may_use_colours()
    return text if plain else f"\x1b[{COLOURS[name]}m{text}\x1b[0m"


def get_width(stream: TextIO) -> int:
    """The columns to wrap at: `COLUMNS`, else the terminal's; 0 for a pipe, where a program may read the lines."""
    if columns := read_columns():
        return columns
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def wrap_text(text: str, width: int, indent: str = "") -> str:
    """Each line broken between words, never inside one, and continued below its own first word. `indent` opens every
    line; a width of 0 breaks nothing."""
    if width <= 0:
        return "\n".join(indent + line for line in text.split("\n"))
    return "\n".join(_wrap_line(line, width, indent) for line in text.split("\n"))


def _wrap_line(line: str, width: int, indent: str) -> str:
    continuation = indent + line[: len(line) - len(line.lstrip())]
    return fill(
        line,
        width,
        initial_indent=indent,
        subsequent_indent=continuation,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(*parts: str | tuple[str, str]) -> None:
    """Print one or more lines as they are; a pair is a text and its colour.

    Flushed even into a pipe: a program that waits for the line `ready` must see it as soon as it is true.
    """
    pieces = (
        escape_for_person(part) if isinstance(part, str) else colour(escape_for_person(part[0]), part[1])
        for part in parts
    )
    print("".join(pieces), flush=True)


def say_prose(*parts: str | tuple[str, str], indent: str = "") -> None:
    """Print sentences, wrapped at the width of the terminal; a pair is a text and its colour."""
    pieces = [
        (escape_for_person(part), "") if isinstance(part, str) else (escape_for_person(part[0]), part[1])
        for part in parts
    ]
    wrapped = wrap_text("".join(text for text, _ in pieces), get_width(sys.stdout), indent)
    # Wrapping moves white space alone, so the colours are dealt out to the other signs in turn.
    names = iter([name for text, name in pieces for sign in text if not sign.isspace()])
    painted = [(sign, "" if sign.isspace() else next(names)) for sign in wrapped]
    for name, run in groupby(painted, key=lambda pair: pair[1]):
        text = "".join(sign for sign, _ in run)
        print(colour(text, name) if name else text, end="")
    print(flush=True)


def note(text: str) -> None:
    """Beside the result, on stderr, so that it does not get into a pipe."""
    for line in wrap_text(escape_for_person(text), get_width(sys.stderr)).split("\n"):
        print(colour(line, "dim", sys.stderr), file=sys.stderr)


def complain(text: str) -> None:
    head = "menugate:"
    wrapped = wrap_text(f"{head} {escape_for_person(text)}", get_width(sys.stderr)).removeprefix(head)
    print(f"{colour(head, 'red', sys.stderr)}{wrapped}", file=sys.stderr)


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
    """Columns as wide as their content. The last one takes what is left of the terminal and wraps inside it; the
    columns in `right` hold numbers, and a cell whose word is in `paint` gets that colour."""
    lines = [[format_one_line(cell) for cell in line] for line in ([head] if head else []) + list(rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = get_width(sys.stdout) - sum(widths[:-1]) - 2 * len(widths[:-1])
    for number, line in enumerate(lines):
        *first, last = line
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(first, widths, strict=False))
        ]
        last = last.rjust(widths[-1]) if len(first) in right else last
        last, *continued = wrap_text(last, room if room >= MIN_CELL else 0).split("\n")
        cells.append(last)
        if head and number == 0:
            print(colour("  ".join(cells).rstrip(), "dim"))
        else:
            painted = [colour(cell, name) if (name := (paint or {}).get(cell.strip())) else cell for cell in cells]
            print("  ".join(painted).rstrip())
        for more in continued:
            print(" " * sum(len(cell) + 2 for cell in cells[:-1]) + more)


@contextmanager
def show_progress(what: str) -> Generator[ProgressPrinter, None, None]:
    """How far a long job has come: one line on stderr, on a terminal only, and gone when the job is done."""
    stream, last = sys.stderr, 0.0

    def print_progress(done: int, total: int = 0, /) -> None:
        nonlocal last
        now = time.monotonic()
        if stream.isatty() and now - last >= PROGRESS_SECONDS:
            last = now
            of = f" of {total:,} ({min(done * 100 // total, 100)} %)" if total else ""
            print(f"\r{what}: {done:,}{of}\x1b[K", end="", file=stream, flush=True)

    try:
        yield print_progress
    finally:
        if last:
            print("\r\x1b[K", end="", file=stream, flush=True)
