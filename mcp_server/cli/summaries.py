"""`menugate summary`: what did a run do?"""

import argparse
from typing import TYPE_CHECKING

from mcp_server.cli.audit import open_ledger
from mcp_server.cli.ledger import parse_whole_number
from mcp_server.cli.output import CliError, note, print_json, print_table, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments

if TYPE_CHECKING:
    from mcp_server.state.reader import Reader

EXAMPLES = """
menugate summary                      the newest run: goals, decisions, plan, open issues, outputs
menugate summary --list               every run on record, newest first
menugate summary 4f1c-2 --upto 117    as it was after row 117
menugate summary --json               for a program
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("summary", EXAMPLES, run)
    command.add_argument(
        "run_id", nargs="?", metavar="RUN", help="the id of the run, from `--list` (default: the newest run)"
    )
    command.add_argument("--list", action="store_true", help="list every run on record")
    command.add_argument("--upto", type=parse_whole_number, metavar="SEQ", help="ignore calls after this row")
    add_place(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    with open_ledger(settings_from_arguments(arguments)) as state:
        return show_runs(state, arguments.json) if arguments.list else show_summary(state, arguments)


def show_runs(state: "Reader", for_programs: bool) -> int:
    summaries = [summary for summary in map(state.build_summary, state.find_runs()) if summary is not None]
    if for_programs:
        print_json([{"run": summary.run, "principal": summary.principal, **summary.facts} for summary in summaries])
    elif not summaries:
        say("No runs on record.")
    else:
        rows = [
            (summary.run, str(summary.facts.get("from", "")), str(summary.facts["calls"]), summary.principal)
            for summary in summaries
        ]
        print_table(rows, head=("run", "from", "calls", "whose"), right=(2,))
    return 0


def show_summary(state: "Reader", arguments: argparse.Namespace) -> int:
    run = arguments.run_id or next(iter(state.find_runs()), None)
    if run is None:
        raise CliError("no run is on record yet.")
    summary = state.build_summary(run, arguments.upto)
    if summary is None:
        raise CliError(f"there is no run `{run}` on record; `menugate summary --list` lists them.")
    if arguments.json:
        print_json(summary.data)
    else:
        say(summary.text.rstrip("\n"))
        if arguments.run_id is None:
            note(
                f"The newest run; `menugate summary --list` lists all. Clients read it at menugate://run/{run}/summary"
            )
    return 0
