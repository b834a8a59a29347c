"""`menugate audit`: what happened, and is the record of it intact?"""

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mcp_server.cli import why
from mcp_server.cli.export import FORMATS, export
from mcp_server.cli.ledger import (
    add_filters,
    build_ledger_filter,
    find_partner_row,
    format_json_line,
    format_short_row,
    parse_whole_number,
    row_to_json,
    show_row,
)
from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_prose, show_progress
from mcp_server.cli.parser import CommandGroup, add_actions, add_json, add_place, settings_from_arguments
from mcp_server.cli.why import load_call_history, show_call_history
from mcp_server.model.text import format_count

if TYPE_CHECKING:
    from mcp_server.settings import Settings
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader
    from mcp_server.state.verify import VerifyReport

EXAMPLES = """
menugate audit tail -n 50                      the last fifty rows
menugate audit show 117                        one call, and how it ended
menugate audit why 117                         why it was refused, or who allowed it
menugate audit verify                          exits 1 if the record was tampered with
menugate audit export --output ledger.jsonl    everything, one line per row
"""
TAIL = """
menugate audit tail                                the last twenty rows
menugate audit tail --follow                       and new ones as they arrive, until Ctrl-C
menugate audit tail --kind refusal --since 2h      what was refused in the last two hours
menugate audit tail --verdict deny --layer rules   what your rules refused
menugate audit tail --tool Write --json            for a program, one line per row
"""
SHOW = """
menugate audit show 117           everything recorded in row 117, and the outcome of its call
menugate audit show 117 --json    for a program
"""
WHY = """
menugate audit why 117           which layer, rule and posture decided this call, and who chose them
menugate audit why 117 --json    for a program, with the rows behind the answer
"""
VERIFY = """
menugate audit verify           check every row against the chain, and the chain against its anchor and checkpoints
menugate audit verify --json    the faults, for a program
"""
EXPORT = """
menugate audit export > ledger.jsonl           one line per row, oldest first
menugate audit export --output ledger.jsonl    into a new file that only you can read
menugate audit export --since 2026-11-01       rows from that day on
menugate audit export --format ocsf            as events of the Open Cybersecurity Schema Framework
"""

FORMAT_HELP = "one JSON object per row, or one event per call for a SIEM"


def add(commands: CommandGroup) -> None:
    actions = add_actions(commands.add("audit", EXAMPLES, None))
    tail = actions.add("tail", TAIL, run_tail, "show the newest rows")
    tail.add_argument(
        "-n", type=parse_whole_number, default=20, metavar="N", dest="count", help="how many rows (default: 20)"
    )
    tail.add_argument("-f", "--follow", action="store_true", help="then print new rows as they arrive, until Ctrl-C")
    add_filters(tail)
    show = actions.add("show", SHOW, run_show, "show one row in full, with the matching call or outcome")
    show.add_argument("seq", type=parse_whole_number, metavar="SEQ", help="the number of the row")
    why_action = actions.add("why", WHY, run_why, "say why a call was refused, or who allowed it")
    why_action.add_argument(
        "seq",
        type=parse_whole_number,
        metavar="SEQ",
        help="the number of any row of the call, from `menugate audit tail`",
    )
    verify = actions.add("verify", VERIFY, run_verify, "check every row; exits 1 if the record was tampered with")
    export_action = actions.add("export", EXPORT, run_export, "write rows to stdout or a file, each with its hash")
    export_action.add_argument("--format", choices=FORMATS, default="jsonl", help=FORMAT_HELP)
    export_action.add_argument("--output", metavar="FILE", help="a new file, instead of stdout")
    add_filters(export_action)
    for action in (tail, show, why_action, verify, export_action):
        add_place(action)
    add_json(tail, "print one JSON object per line")
    add_json(show)
    add_json(why_action)
    add_json(verify)


@contextmanager
def open_ledger(settings: "Settings") -> Generator["Reader", None, None]:
    from mcp_server.model.results import Refusal
    from mcp_server.state.reader import Reader

    url = settings.url
    if settings.foreign_state_file and settings.foreign_state_file.exists() and not settings.database.exists():
        note("Your account has not used menugate in this workspace; this record is another account's.")
        url = f"sqlite:///{settings.foreign_state_file}"
    try:
        with Reader.open(url, secrets=settings.secrets) as state:
            yield state
    except Refusal as refused:
        if is_ledger_taken_away(settings):
            raise CliError("the state file is gone but its anchor is still there: the ledger was removed.") from None
        raise CliError(f"{refused.problem.message} {refused.problem.way_out}") from None


def is_ledger_taken_away(settings: "Settings") -> bool:
    return not (settings.state / "state.db").exists() and (settings.state / "ledger.anchor").exists()


def run_tail(arguments: argparse.Namespace) -> int:
    with open_ledger(settings_from_arguments(arguments)) as state:
        row_filter, is_empty = build_ledger_filter(arguments, tail=arguments.count), True
        for row in state.follow_rows(row_filter) if arguments.follow else state.read_rows(row_filter):
            glance, is_empty = state.find_row_glance(row), False
            if arguments.json:
                print(format_json_line(row, glance))
            else:
                say(*format_short_row(row, glance))
            if arguments.follow:
                sys.stdout.flush()
    if is_empty and not arguments.json:
        note("No row matches.")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    with open_ledger(settings_from_arguments(arguments)) as state:
        row = find_row(state, arguments.seq)
        partner = find_partner_row(state, row)
        shown, other = state.find_row_glance(row), state.find_row_glance(partner) if partner else ""
    if arguments.json:
        print_json({"row": row_to_json(row, shown), "other": row_to_json(partner, other) if partner else None})
        return 0
    show_row(row, shown)
    if partner:
        say()
        show_row(partner, other)
    elif row.kind == "intent":
        say()
        say_prose("No outcome: the call is still running, or its process ended first.")
    return 0


def run_why(arguments: argparse.Namespace) -> int:
    with open_ledger(settings_from_arguments(arguments)) as state:
        row = find_row(state, arguments.seq)
        history = load_call_history(state, row)
    if history is None:
        raise CliError(
            f"row {row.seq} has the kind `{row.kind}` and is not about a call; see `menugate audit show {row.seq}`."
        )
    if arguments.json:
        print_json(why.to_json(history))
    else:
        show_call_history(history)
    return 0


def find_row(state: "Reader", seq: int) -> "Row":
    row = state.find_row(seq)
    if row is None:
        raise CliError(f"there is no row {seq}; the newest is {state.get_head()}.")
    return row


def run_verify(arguments: argparse.Namespace) -> int:
    with open_ledger(settings_from_arguments(arguments)) as state, show_progress("rows checked") as print_progress:
        report = state.verify(print_progress)
    if arguments.json:
        print_json(to_json(report))
    else:
        show_verification(report)
    return 0 if report.ok else 1


def show_verification(report: "VerifyReport") -> None:
    if report.ok:
        rows, checkpoints = format_count(report.rows, "row"), format_count(report.checkpoints, "signed checkpoint")
        say_prose(("The record is intact: ", "green"), f"{rows}, {checkpoints}.")
        if report.unanchored:
            say_prose(
                f"Not anchored yet: {format_count(report.unanchored, 'row')} at the end, as happens after a kill. "
                "The next server to start anchors the rest."
            )
        for line in report.notes:
            say_prose((line, "yellow"))
        return
    faults = format_count(len(report.faults), "fault")
    say_prose((f"The record was tampered with, or is damaged: {faults}.", "red"))
    print_table([(f"row {seq}" if seq else "", message) for seq, message in report.faults])
    for line in report.notes:
        say_prose((line, "yellow"))


def to_json(report: "VerifyReport") -> dict[str, Any]:
    return {
        "ok": report.ok,
        "rows": report.rows,
        "checkpoints": report.checkpoints,
        "not_anchored": report.unanchored,
        "notes": report.notes,
        "faults": [{"row": seq or None, "message": message} for seq, message in report.faults],
    }


def run_export(arguments: argparse.Namespace) -> int:
    with open_ledger(settings_from_arguments(arguments)) as state:
        return export(state, arguments)
