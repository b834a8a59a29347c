"""`menugate report`: what was found when a run ended?"""

import argparse

from mcp_server.cli.output import CliError, print_json, say
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.views.posture import open_state_reader
from mcp_server.views.text import format_time

EXAMPLES = """
menugate report           the run that ended last
menugate report RUN       this run; `menugate summary --list` lists them
menugate report --json    for a program
"""


def add(commands: CommandGroup) -> None:
    one = commands.add("report", EXAMPLES, run)
    one.add_argument("of", nargs="?", metavar="RUN", help="the run (default: the one that ended last)")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_from_arguments(arguments)
    with open_state_reader(settings) as state:
        found = state.find_report(arguments.of) if state else None
    if found is None:
        which = f"there is no report on the run `{arguments.of}`" if arguments.of else "no run has ended here yet"
        raise CliError(f"{which}; a run ends when `complete` is called.")
    if arguments.json:
        from dataclasses import asdict

        print_json(asdict(found) | {"at": format_time(found.at)})
        return 0
    say((f"run {found.run}", "bold"), f"  {found.status}, {format_time(found.at)}")
    say(found.format_text())
    return 0
