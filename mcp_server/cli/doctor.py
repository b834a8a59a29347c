"""`menugate doctor`: is everything in order here, and what can be mended? The health gate, by hand."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_server.cli.output import CliError, as_json, note, progress, say, table
from mcp_server.cli.parser import Commands, add_json, add_place, settings_of
from mcp_server.cli.servers import meant, settings_of_server

if TYPE_CHECKING:
    from mcp_server.policy.health import HealthFinding
    from mcp_server.settings import Settings

EXAMPLES = """
menugate doctor              examine everything and change nothing; exits 1 where something is wrong
menugate doctor fix          mend what has one certain cure, then examine again; what is left is the health gate's
menugate doctor --json       the findings for a program
"""
COLOURS = {"good": "green", "note": "yellow", "fault": "red"}


def add(commands: Commands) -> None:
    one = commands.add("doctor", "examine state, ledger, menus, rules, guards and leftovers", EXAMPLES, run)
    one.add_argument("deed", nargs="?", metavar="DEED", choices=("fix",), help="fix: mend what can be")
    add_place(one)
    add_json(one)


def run(arguments: argparse.Namespace) -> int:
    from mcp_server.health import examine, mend, usable
    from mcp_server.policy.health import faults

    settings = settings_of(arguments)
    if (server := meant(arguments, settings)) is not None:
        settings = settings_of_server(settings, server)
    with progress("rows checked") as told:
        findings = examine(settings, arguments.packs, told)
    mended: list[HealthFinding] = []
    if arguments.deed == "fix":
        by_person(settings)
        mended = mend(findings)
        findings = examine(settings, arguments.packs)
    ill = faults(findings)
    fixing = arguments.deed == "fix"
    followed = gate(arguments, settings, ill) if fixing and ill and usable(findings) else ""
    if arguments.json:
        as_json(
            {
                "ok": not ill,
                "findings": [in_json(one) for one in findings],
                "mended": [in_json(one) for one in mended],
                "followed": followed or None,
            }
        )
    else:
        tell(findings, mended)
        if followed:
            note(followed)
    return 1 if ill else 0


def by_person(settings: "Settings") -> None:
    from mcp_server.model.results import Refusal
    from mcp_server.person import refuse_inside

    try:
        refuse_inside(settings)
    except Refusal as refused:
        raise CliError(refused.problem.text) from None


def in_json(one: "HealthFinding") -> dict[str, object]:
    return {
        "what": one.what,
        "grade": one.grade,
        "says": one.says,
        "mendable": one.mend is not None,
        "commands": one.commands,
    }


def tell(findings: "Sequence[HealthFinding]", mended: "Sequence[HealthFinding]") -> None:
    from mcp_server.policy.health import Grade, faults, verdict

    if mended:
        table([("mended" if one.grade is Grade.GOOD else "fault", one.what, one.says) for one in mended], paint=COLOURS)
        say()
    table([(str(one.grade), one.what, one.says) for one in findings], paint=COLOURS)
    ill, mendable = len(faults(findings)), sum(one.mend is not None for one in findings)
    say()
    narrow = any(one.commands for one in findings)
    say((verdict(findings), "red" if ill else "yellow" if narrow else "green"))
    if mendable:
        say(f"`menugate doctor fix` mends {mendable} of them." if ill else "`menugate doctor fix` tidies up.")


def gate(arguments: argparse.Namespace, settings: "Settings", ill: "Sequence[HealthFinding]") -> str:
    """What follows from it, as the operator wants it. Where nothing can be read or written, that was said already."""
    import asyncio

    from mcp_server.config.load import BuildError, Configuration, law
    from mcp_server.model.results import Refusal
    from mcp_server.person import doors_open, health_gate

    try:
        found = law(settings, arguments.packs)
    except BuildError:
        return ""
    if not isinstance(found, Configuration) or not settings.database.exists():
        return ""

    async def followed() -> str:
        async with doors_open(found, settings) as doors:
            return await health_gate(found, settings, doors).failed([f"{one.what}: {one.says}" for one in ill])

    try:
        return asyncio.run(followed())
    except Refusal as refused:
        print(refused.problem.message, file=sys.stderr)
        return ""
