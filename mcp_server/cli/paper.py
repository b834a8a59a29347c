"""How is something shown to a person? Text, tables and JSON; colour only on a terminal."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

COLOURS = {"dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1}


class Trouble(Exception):
    """What went wrong, in words for the person, with the way out. Ends the command with exit code 1."""


def colour(text: str, name: str, stream: TextIO | None = None) -> str:
    plain = not (stream or sys.stdout).isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{COLOURS[name]}m{text}\x1b[0m"


def say(text: str = "") -> None:
    """At once, also into a pipe: whoever waits for the line that says `ready` gets it when it is true."""
    print(text, flush=True)


def complain(text: str) -> None:
    print(f"{colour('menugate:', 'red', sys.stderr)} {text}", file=sys.stderr)


def as_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> None:
    """Columns as wide as what is in them; the last one runs on."""
    lines = [tuple(head)] * bool(head) + [tuple(row) for row in rows]
    if not lines:
        return
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        text = "  ".join(cells).rstrip()
        print(colour(text, "dim") if head and number == 0 else text)
