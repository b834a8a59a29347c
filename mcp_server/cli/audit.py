"""`menugate audit`: what happened, and is the record of it what it was?"""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mcp_server.cli.command import Commands, Mixed, add_json, add_place, settings_of
from mcp_server.cli.paper import KINDS, Trouble, as_json, note, progress, say, table, when
from mcp_server.cli.record.rows import in_short

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state import Row, Wanted
    from mcp_server.state.reader import Reader
    from mcp_server.state.verify import Report

EXAMPLES = """
menugate audit tail -n 50                     the last fifty rows
menugate audit show 117                       one call, with how it ended
menugate audit verify                         exits 1 where a row was changed, taken away or added
menugate audit export --output ledger.jsonl   all of it, a line per row
"""
TAIL = """
menugate audit tail                                the last twenty rows
menugate audit tail --follow                       and what comes, until Ctrl-C
menugate audit tail --kind refusal --since 2h      what was refused in the last two hours
menugate audit tail --tool Write --json            for a program, a line per row
"""
SHOW = """
menugate audit show 117           everything on record about row 117, with the outcome of the call
menugate audit show 117 --json    for a program
"""
VERIFY = """
menugate audit verify           every row against the chain, the chain against anchor and checkpoints
menugate audit verify --json    the faults for a program
"""
EXPORT = """
menugate audit export > ledger.jsonl            a line per row, oldest first
menugate audit export --output ledger.jsonl     into a new file that only you can read
menugate audit export --since 2026-11-01        from that day on
"""
FOREVER = 2**63 - 1
"""The last moment that the ledger could hold."""
AGE = re.compile(r"(\d{1,6})\s*(s|m|h|d|w)")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def add(commands: Commands) -> None:
    one = commands.add("audit", "read the ledger of every decision, and check that nobody changed it", EXAMPLES, None)
    deeds = Commands(
        one.add_subparsers(title="what to do", metavar="DEED", required=True, parser_class=Mixed).add_parser
    )
    tail = deeds.add("tail", "show the newest rows", TAIL, run_tail)
    tail.add_argument("-n", type=whole, default=20, metavar="N", dest="count", help="so many rows (default: 20)")
    tail.add_argument("-f", "--follow", action="store_true", help="and then what comes, until Ctrl-C")
    add_filters(tail)
    show = deeds.add("show", "show one row whole, and the other row of its call", SHOW, run_show)
    show.add_argument("seq", type=whole, metavar="SEQ", help="the row's number")
    verify = deeds.add("verify", "check every row; exits 1 where the record was tampered with", VERIFY, run_verify)
    export = deeds.add("export", "write rows out, each with its hash", EXPORT, run_export)
    export.add_argument("--format", choices=("jsonl",), default="jsonl", help="jsonl: one JSON object per line")
    export.add_argument("--output", metavar="FILE", help="a file that is not there yet, instead of stdout")
    add_filters(export)
    for deed in (tail, show, verify, export):
        add_place(deed)
    add_json(tail, "one JSON object per line")
    add_json(show)
    add_json(verify)


def add_filters(one: argparse.ArgumentParser) -> None:
    one.add_argument("--tool", metavar="TOOL", help="only calls of this tool")
    one.add_argument("--session", metavar="ID", help="only this session")
    one.add_argument("--code", metavar="CODE", help="only what ended with this code, such as WRONG_MODE")
    one.add_argument("--since", type=moment, metavar="WHEN", help="only from then on: 10m, 2h, 3d, or 2026-11-18 12:00")
    one.add_argument("--kind", action="append", choices=KINDS, help="only rows of this kind; may be given again")


def whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not a whole number")
    return int(text)


def moment(text: str) -> int:
    """A moment in nanoseconds: so long ago, or a date with or without a time."""
    if age := AGE.fullmatch(text.strip()):
        return time.time_ns() - int(age[1]) * SECONDS[age[2]] * 10**9
    try:
        return min(int(datetime.fromisoformat(text).astimezone().timestamp() * 10**9), FOREVER)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is no time; write 10m, 2h, 3d, or 2026-11-18 12:00") from None


def wanted(arguments: argparse.Namespace, tail: int | None = None) -> "Wanted":
    from mcp_server.state import Wanted

    return Wanted(
        session=arguments.session,
        tool=arguments.tool,
        code=arguments.code,
        since_ns=arguments.since,
        kinds=tuple(arguments.kind or ()),
        tail=tail,
    )


@contextmanager
def ledger(settings: "Settings") -> Generator["Reader", None, None]:
    from mcp_server.model.ending import Refusal
    from mcp_server.state.reader import Reader

    try:
        with Reader.open(settings.url, secrets=settings.secrets) as state:
            yield state
    except Refusal as refused:
        if taken_away(settings):
            raise Trouble("the state file is gone, and its anchor is still there: the ledger was taken away.") from None
        raise Trouble(f"{refused.problem.message} {refused.problem.way_out}") from None


def taken_away(settings: "Settings") -> bool:
    return not (settings.state / "state.db").exists() and (settings.state / "ledger.anchor").exists()


def run_tail(arguments: argparse.Namespace) -> int:
    with ledger(settings_of(arguments)) as state:
        chosen = wanted(arguments, tail=arguments.count)
        for row in state.follow(chosen) if arguments.follow else state.rows(chosen):
            if arguments.json:
                print(line_of(row))
            else:
                say(*in_short(row))
            if arguments.follow:
                sys.stdout.flush()
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    with ledger(settings_of(arguments)) as state:
        row = state.row(arguments.seq)
        if row is None:
            raise Trouble(f"there is no row {arguments.seq}; the newest is {state.head()}.")
        other = partner(state, row)
    if arguments.json:
        as_json({"row": flat(row), "other": flat(other) if other else None})
        return 0
    tell(row)
    if other:
        say()
        tell(other)
    elif row.kind == "intent":
        say("\nThere is no outcome: the call still runs, or its process ended before it did.")
    return 0


def partner(state: "Reader", row: "Row") -> "Row | None":
    """The outcome of an intent, the intent of an outcome."""
    from mcp_server.state import Wanted

    if row.kind == "outcome":
        intent = row.fields.get("intent")
        return state.row(intent) if isinstance(intent, int) else None
    if row.kind != "intent":
        return None
    outcomes = state.rows(Wanted(session=row.fields.get("session"), kinds=("outcome",)), after=row.seq)
    return next((one for one in outcomes if one.fields.get("intent") == row.seq), None)


def tell(row: "Row") -> None:
    say((f"{row.kind} {row.seq}", "bold"), f"  {when(row.at)}")
    rows = [
        (f"  {key}", value if isinstance(value, str) else json.dumps(value))
        for key, value in row.fields.items()
        if key not in ("kind", "at")
    ]
    table([*rows, ("  hash", row.hash)])


def flat(row: "Row") -> dict[str, Any]:
    return {"seq": row.seq, "hash": row.hash, **row.fields}


def line_of(row: "Row") -> str:
    return json.dumps(flat(row))


def run_verify(arguments: argparse.Namespace) -> int:
    with ledger(settings_of(arguments)) as state, progress("rows checked") as told:
        report = state.verify(told)
    if arguments.json:
        as_json(in_json(report))
    else:
        judged(report)
    return 0 if report.ok else 1


def judged(report: "Report") -> None:
    if report.ok:
        say(("The record is whole: ", "green"), f"{report.rows:,} rows, {report.checkpoints} signed checkpoints.")
        if report.unanchored:
            say(f"The last {report.unanchored} are not anchored yet, as after a kill; the next start does it.")
        return
    count = len(report.faults)
    say((f"The record was tampered with, or damaged: {count} fault{'s' if count != 1 else ''}.", "red"))
    table([(f"row {seq}" if seq else "", message) for seq, message in report.faults])


def in_json(report: "Report") -> dict[str, Any]:
    return {
        "ok": report.ok,
        "rows": report.rows,
        "checkpoints": report.checkpoints,
        "not_anchored": report.unanchored,
        "faults": [{"row": seq or None, "message": message} for seq, message in report.faults],
    }


def run_export(arguments: argparse.Namespace) -> int:
    with ledger(settings_of(arguments)) as state:
        if arguments.output is None:
            written(state, arguments, sys.stdout)
            return 0
        path = Path(arguments.output)
        with new_file(path) as file:
            count = written(state, arguments, file)
    note(f"{count:,} rows written to {path}")
    return 0


def written(state: "Reader", arguments: argparse.Namespace, file: TextIO) -> int:
    count, total = 0, state.head()
    with progress("rows written") as told:
        for count, row in enumerate(state.rows(wanted(arguments)), 1):
            file.write(line_of(row) + "\n")
            told(count, total)
    return count


@contextmanager
def new_file(path: Path) -> Generator[TextIO, None, None]:
    """A file that was not there, readable by its owner alone; gone again where it could not be finished."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise Trouble(f"`{path}` is there already and is not written over; name another file.") from None
    except OSError as wrong:
        raise Trouble(f"`{path}` cannot be made: {wrong.strerror}.") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file
    except OSError as wrong:
        path.unlink(missing_ok=True)
        raise Trouble(f"`{path}` could not be written: {wrong.strerror}.") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
