"""`menugate doctor`: is everything in order here, and what can be fixed? The health check, by hand."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_prose, show_progress
from mcp_server.cli.parser import CommandGroup, add_json, add_place, settings_from_arguments
from mcp_server.cli.servers import find_judging_server, settings_from_server

if TYPE_CHECKING:
    from mcp_server.policy.health import HealthFinding
    from mcp_server.settings import Settings

EXAMPLES = """
menugate doctor           check everything and change nothing; exits 1 if something is wrong
menugate doctor fix       fix what can be fixed safely, then check again
menugate doctor --json    the findings, for a program
"""
COLOURS = {"good": "green", "fixed": "green", "note": "yellow", "fault": "red"}


def add(commands: CommandGroup) -> None:
    one = commands.add("doctor", EXAMPLES, run)
    one.add_argument("action", nargs="?", metavar="fix", choices=("fix",), help="fix what can be fixed safely")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    from mcp_server.health import examine, may_open_state, mend
    from mcp_server.policy.health import list_faults

    settings = settings_from_arguments(arguments)
    if (server := find_judging_server(arguments, settings)) is not None:
        settings = settings_from_server(settings, server)
    with show_progress("rows checked") as print_progress:
        findings = examine(settings, arguments.packs, print_progress)
    fixed: list[HealthFinding] = []
    if arguments.action == "fix":
        require_person(settings)
        fixed = mend(findings)
        findings = examine(settings, arguments.packs)
    ill = list_faults(findings)
    fixing = arguments.action == "fix"
    followed = run_health_gate(arguments, settings, ill) if fixing and ill and may_open_state(findings) else ""
    if arguments.json:
        print_json(
            {
                "ok": not ill,
                "findings": [to_json(one) for one in findings],
                "mended": [to_json(one) for one in fixed],
                "followed": followed or None,
            }
        )
    else:
        show_findings(findings, fixed)
        if followed:
            note(followed)
    return 1 if ill else 0


def require_person(settings: "Settings") -> None:
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.model.results import Refusal

    try:
        refuse_inside_server(settings)
    except Refusal as refused:
        raise CliError(refused.problem.text) from None


def to_json(one: "HealthFinding") -> dict[str, object]:
    return {
        "what": one.what,
        "grade": one.grade,
        "says": one.says,
        "mendable": one.mend is not None,
        "commands": one.commands,
    }


def show_findings(findings: "Sequence[HealthFinding]", fixed: "Sequence[HealthFinding]") -> None:
    from mcp_server.policy.health import Grade, format_verdict, list_faults

    if fixed:
        print_table(
            [("fixed" if one.grade is Grade.GOOD else "fault", one.what, one.says) for one in fixed], paint=COLOURS
        )
        say()
    print_table([(str(one.grade), one.what, one.says) for one in findings], paint=COLOURS)
    ill, fixable = len(list_faults(findings)), sum(one.mend is not None for one in findings)
    say()
    narrow = any(one.commands for one in findings)
    say_prose((format_verdict(findings), "red" if ill else "yellow" if narrow else "green"))
    if fixable:
        say_prose(f"`menugate doctor fix` can fix {fixable} of these." if ill else "`menugate doctor fix` cleans up.")


def run_health_gate(arguments: argparse.Namespace, settings: "Settings", ill: "Sequence[HealthFinding]") -> str:
    """Do what the operator wants done about faults. If nothing can be read or written, the findings say so already."""
    import asyncio

    from mcp_server.calls.terminal import open_store_for_person
    from mcp_server.compose import build_health_response, build_posture_changes
    from mcp_server.config.load import Configuration, load_configuration
    from mcp_server.model.results import Refusal
    from mcp_server.settings import BuildError

    try:
        found = load_configuration(settings, arguments.packs)
    except BuildError:
        return ""
    if not isinstance(found, Configuration) or not settings.database.exists():
        return ""

    async def respond() -> str:
        async with open_store_for_person(settings) as store:
            changes = build_posture_changes(found, settings, store)
            return await build_health_response(found, settings, changes).respond_to_faults(
                [f"{one.what}: {one.says}" for one in ill]
            )

    try:
        return asyncio.run(respond())
    except Refusal as refused:
        print(refused.problem.message, file=sys.stderr)
        return ""
