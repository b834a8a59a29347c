"""How does a command print? Text, tables and JSON; colours, wrapping and progress only where they help."""

import json
import os
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from textwrap import fill
from typing import Any, Protocol, TextIO
from unicodedata import east_asian_width

from mcp_server.model.text import escape_for_person
from mcp_server.settings import may_use_colours, read_columns
from mcp_server.views.text import ViewError, format_one_line

COLOURS = {"dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1}
PROGRESS_SECONDS = 0.1
PLAIN_WIDTH = 80
MIN_CELL = 16
"""With fewer columns left for a table's last cell, the terminal wraps it."""
KINDS = (
    *("start", "stop", "intent", "outcome", "refusal", "question", "answer", "redeemed"),
    *("transition", "delivery", "report", "record", "summary", "trust", "health", "attempt", "rules", "alarm"),
    *("segment", "adoption"),
)
"""The kinds of ledger rows that you can ask for."""


class CliError(ViewError):
    """What went wrong, and what you can do about it.

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
    """Wrap each line between words, and indent what follows like the line itself. `indent` goes before every line; a
    width of 0 wraps nothing."""
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


def ask_at_terminal(prompt: str) -> str:
    """Ask, and return the line that was typed. What was typed before the prompt stood there is no answer to it."""
    import termios

    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    print(escape_for_person(prompt), end="", flush=True)
    return sys.stdin.readline().strip()


def say_foreign(text: str, lead: str, more: str) -> None:
    """Print text that is not menugate's own. No part of it may begin a row of the terminal, where it could look like a
    line of ours: `lead` goes before each line, and `more` before the rest of a line that is too long. Where a word goes
    on in the next row, a `+` stands in place of the `>`, so that one path does not look like two."""
    width = get_width(sys.stdout) - max(len(lead), len(more))
    for line in escape_for_person(text).split("\n"):
        margin = lead
        for part, is_broken in cut_to_width(line.expandtabs(), width):
            print(margin + part)
            margin = more.replace(">", "+") if is_broken else more
    sys.stdout.flush()


def cut_to_width(line: str, width: int) -> Iterator[tuple[str, bool]]:
    """Cut it into the terminal's rows, at spaces if possible, and say after which row a word goes on. Not at all if the
    terminal is too narrow, or none."""
    start = space = columns = since_space = 0
    for at, character in enumerate(line if width >= MIN_CELL else ""):
        needs = 2 if east_asian_width(character) in "WF" else 1
        while columns + needs > width:
            # Blanks in front are no place to cut: the word behind them would be cut all the same.
            is_cut = not line[start:space].strip(" ")
            end = at if is_cut else space
            yield line[start:end], is_cut and " " not in (line[at - 1], character)
            start, columns = end, 0 if is_cut else since_space
        columns, since_space = columns + needs, since_space + needs
        if character == " ":
            space, since_space = at + 1, 0
    yield line[start:], False


def say_prose(*parts: str | tuple[str, str], indent: str = "") -> None:
    """Print sentences, wrapped at the width of the terminal; a pair is a text and its colour."""
    pieces = [
        (escape_for_person(part), "") if isinstance(part, str) else (escape_for_person(part[0]), part[1])
        for part in parts
    ]
    wrapped = wrap_text("".join(text for text, _ in pieces), get_width(sys.stdout), indent)
    # Wrapping only changes white space, so the other characters keep their colours, in order.
    names = iter([name for text, name in pieces for character in text if not character.isspace()])
    painted = [(character, "" if character.isspace() else next(names)) for character in wrapped]
    for name, run in groupby(painted, key=lambda pair: pair[1]):
        text = "".join(character for character, _ in run)
        print(colour(text, name) if name else text, end="")
    print(flush=True)


def note(text: str) -> None:
    """Print to stderr, so that it stays out of a pipe that takes the result."""
    for line in wrap_text(escape_for_person(text), get_width(sys.stderr)).split("\n"):
        print(colour(line, "dim", sys.stderr), file=sys.stderr)


def complain(text: str) -> None:
    head = "menugate:"
    wrapped = wrap_text(f"{head} {escape_for_person(text)}", get_width(sys.stderr)).removeprefix(head)
    print(f"{colour(head, 'red', sys.stderr)}{wrapped}", file=sys.stderr)


def print_json(value: Any, indent: int | None = 2) -> None:
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    # What a screen would not show, or would obey, is written as an escape of JSON: the value is the same.
    print(escape_for_person(json.dumps(value, indent=indent, ensure_ascii=not utf8, default=str)))


def print_table(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    right: Sequence[int] = (),
    paint: Mapping[str, str] | None = None,
) -> None:
    """Print columns as wide as their content; the last one wraps in the rest of the terminal's width. `right`: columns
    of numbers. `paint`: the colours of cells with these words."""
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
    """Show how far a long job is, in one line on stderr that disappears at the end; only on a terminal."""
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
