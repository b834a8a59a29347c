"""`menugate version`: which version of menugate and Python is this, and where is it installed?"""

import argparse
import platform
import sys
from pathlib import Path

import mcp_server
from mcp_server.cli.output import print_json, print_table
from mcp_server.cli.parser import CommandGroup, add_json

EXAMPLES = """
menugate version           the version, for a bug report
menugate version --json    for a program
"""


def add(commands: CommandGroup) -> None:
    add_json(commands.add("version", EXAMPLES, run))


def run(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json(collect_version())
    else:
        show_version()
    return 0


def collect_version() -> dict[str, str]:
    return {
        "version": mcp_server.__version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "interpreter": sys.executable,
        "installed": str(Path(mcp_server.__file__).parents[1]),
    }


def show_version() -> None:
    facts = collect_version()
    print(f"menugate {facts['version']}")
    print_table(
        [
            ("  Python", f"{facts['python']} ({facts['implementation']}), {facts['interpreter']}"),
            ("  platform", facts["platform"]),
            ("  installed in", facts["installed"]),
        ]
    )
