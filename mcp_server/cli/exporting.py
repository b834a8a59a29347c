"""How do rows leave the house? As JSON Lines, which the chain can check, or as OCSF, which a SIEM reads."""

import argparse
import json
import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from mcp_server.cli.choosing import wanted
from mcp_server.cli.export import event
from mcp_server.cli.ledger import line_of
from mcp_server.cli.output import CliError, note, progress

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader

FORMATS = ("jsonl", "ocsf")


def export(state: "Reader", arguments: argparse.Namespace) -> int:
    if arguments.output is None:
        written(state, arguments, sys.stdout)
        return 0
    path = Path(arguments.output)
    with new_file(path) as file:
        count = written(state, arguments, file)
    note(f"{count:,} {'rows' if arguments.format == 'jsonl' else 'events'} written to {path}")
    return 0


def written(state: "Reader", arguments: argparse.Namespace, file: TextIO) -> int:
    count, total = 0, state.head()
    rows = state.rows(wanted(arguments))
    lines = map(line_of, rows) if arguments.format == "jsonl" else ocsf_lines(rows, state)
    with progress("rows written") as told:
        for count, line in enumerate(lines, 1):
            file.write(line + "\n")
            told(count, total)
    return count


def ocsf_lines(rows: Iterable["Row"], state: "Reader") -> Iterator[str]:
    """A call is one event, told when it is over; those of which no end is among the rows come last, in their order."""
    begun: dict[int, Row] = {}
    for row in rows:
        if row.kind == "intent":
            begun[row.seq] = row
            continue
        number = row.fields.get("intent")
        call = begun.pop(number, None) or state.row(number) if isinstance(number, int) else None
        yield json.dumps(event(row, call), separators=(",", ":"))
    for row in begun.values():
        yield json.dumps(event(row), separators=(",", ":"))


@contextmanager
def new_file(path: Path) -> Generator[TextIO, None, None]:
    """A file that was not there, readable by its owner alone; gone again where it could not be finished."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise CliError(f"`{path}` is there already and is not written over; name another file.") from None
    except OSError as wrong:
        raise CliError(f"`{path}` cannot be made: {wrong.strerror}.") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file
    except OSError as wrong:
        path.unlink(missing_ok=True)
        raise CliError(f"`{path}` could not be written: {wrong.strerror}.") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
