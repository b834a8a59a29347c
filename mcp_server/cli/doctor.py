"""`menugate doctor`: is everything in order here, and what can be fixed? It runs the health check."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_server.cli.output import note, print_json, print_table, say, say_prose, show_progress
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
    command = commands.add("doctor", EXAMPLES, run)
    command.add_argument("action", nargs="?", metavar="fix", choices=("fix",), help="fix what can be fixed safely")
    add_place(command)
    add_json(command)


def run(arguments: argparse.Namespace) -> int:
    from mcp_server.calls.terminal import refuse_inside_server
    from mcp_server.health import examine, may_open_state, mend
    from mcp_server.policy.health import list_faults, list_general_faults

    settings = settings_from_arguments(arguments)
    if arguments.action == "fix":
        refuse_inside_server(settings)
    if (server := find_judging_server(arguments, settings)) is not None:
        settings = settings_from_server(settings, server)
    with show_progress("rows checked") as print_progress:
        findings = examine(settings, arguments.packs, print_progress)
    fixed: list[HealthFinding] = []
    if arguments.action == "fix":
        fixed = mend(findings)
        findings = examine(settings, arguments.packs)
    faults = list_faults(findings)
    general = list_general_faults(findings) if arguments.action == "fix" else []
    response = run_health_gate(arguments, settings, general) if general and may_open_state(findings) else ""
    if arguments.json:
        print_json(
            {
                "ok": not faults,
                "findings": [to_json(finding) for finding in findings],
                "mended": [to_json(finding) for finding in fixed],
                "followed": response or None,
            }
        )
    else:
        show_findings(findings, fixed)
        if response:
            note(response)
    return 1 if faults else 0


def to_json(finding: "HealthFinding") -> dict[str, object]:
    return {
        "what": finding.what,
        "grade": finding.grade,
        "says": finding.says,
        "mendable": finding.mend is not None,
        "commands": finding.commands,
    }


def show_findings(findings: "Sequence[HealthFinding]", fixed: "Sequence[HealthFinding]") -> None:
    from mcp_server.policy.health import Grade, format_verdict, list_faults

    if fixed:
        print_table(
            [("fixed" if finding.grade is Grade.GOOD else "fault", finding.what, finding.says) for finding in fixed],
            paint=COLOURS,
        )
        say()
    print_table([(str(finding.grade), finding.what, finding.says) for finding in findings], paint=COLOURS)
    fault_count, fixable = len(list_faults(findings)), sum(finding.mend is not None for finding in findings)
    say()
    is_narrowed = any(finding.commands for finding in findings)
    say_prose((format_verdict(findings), "red" if fault_count else "yellow" if is_narrowed else "green"))
    if fixable:
        say_prose(
            f"`menugate doctor fix` can fix {fixable} of these." if fault_count else "`menugate doctor fix` cleans up."
        )


def run_health_gate(arguments: argparse.Namespace, settings: "Settings", faults: "Sequence[HealthFinding]") -> str:
    """Respond to faults as the operator set it. If the state cannot be used, the findings already say so."""
    import asyncio

    from mcp_server.calls.health import build_health_response
    from mcp_server.calls.terminal import open_store_for_person
    from mcp_server.compose import build_posture_changes
    from mcp_server.config.load import Configuration, load_configuration
    from mcp_server.model.results import Refusal
    from mcp_server.settings import BuildError

    try:
        configuration = load_configuration(settings, arguments.packs)
    except BuildError:
        return ""
    if not isinstance(configuration, Configuration) or not settings.database.exists():
        return ""

    async def respond() -> str:
        async with open_store_for_person(settings) as store:
            changes = build_posture_changes(configuration, settings, store)
            response = build_health_response(changes, configuration.library.config, settings.person)
            return await response.respond_to_faults([f"{finding.what}: {finding.says}" for finding in faults])

    try:
        return asyncio.run(respond())
    except Refusal as refused:
        note(refused.problem.message)
        return ""
