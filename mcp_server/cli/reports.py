"""`menugate report`: what did the checks at the end of a run find?"""

import argparse

from mcp_server.cli.output import CliError, print_json, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.views.posture import open_state_reader
from mcp_server.views.text import format_time

EXAMPLES = """
menugate report           the last run that ended
menugate report RUN       another run; `menugate summary --list` lists them
menugate report --json    for a program
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("report", EXAMPLES, run)
    command.add_argument("of", nargs="?", metavar="RUN", help="the run (default: the last one that ended)")
    add_place(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    with open_state_reader(settings) as state:
        report = state.find_report(arguments.of) if state else None
    if report is None:
        problem = f"there is no report on the run `{arguments.of}`" if arguments.of else "no run has ended here yet"
        raise CliError(f"{problem}; a run ends when `complete` is called.")
    if arguments.json:
        from mcp_server.model.parts import asdict

        print_json(asdict(report) | {"at": format_time(report.at)})
        return 0
    say((f"run {report.run}", "bold"), f"  {report.status}, {format_time(report.at)}")
    say(report.format_text())
    return 0
