"""`menugate trust` and `menugate untrust`: do this folder's own allow rules and prompts apply?"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcp_server.cli.output import CliError, note, print_json, print_table, say, say_prose
from mcp_server.cli.parser import CommandGroup, add_json, add_place, load_valid_configuration, settings_from_arguments
from mcp_server.cli.servers import load_judgement, note_servers
from mcp_server.views.text import explain_refusals

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.settings import Settings

TRUST = """
menugate trust --show    show what would apply, and change nothing
menugate trust           its allow rules apply at once, its prompts when a server next starts
"""
UNTRUST = """
menugate untrust    its allow rules and prompts no longer apply; rules that narrow still do
"""


def add(commands: CommandGroup) -> None:
    command = commands.add("trust", TRUST, run)
    command.add_argument("--show", action="store_true", help="only show what would apply")
    add_place(command)
    add_json(command)
    other = commands.add("untrust", UNTRUST, run_untrust)
    add_place(other)


def run(arguments: argparse.Namespace) -> int:
    if arguments.show:
        judgement = load_judgement(arguments)
        show(arguments, judgement.configuration, judgement.settings)
        note_servers(judgement)
        return 0
    settings = settings_from_arguments(arguments)
    # Trust applies to the files as they are on disk, so they must be valid.
    configuration = load_valid_configuration(arguments, settings)
    if not configuration.own.texts:
        raise CliError("there is nothing to trust: this folder has no menugate.yaml and no menugate.prompts/.")
    from mcp_server.state.trust import Trusted

    trusted, digest = Trusted(settings.secrets), configuration.own.digest
    change_and_record(settings, True, digest, lambda: trusted.give_trust(settings.workspace, digest))
    show(arguments, replace(configuration, trusted=True), settings)
    note(
        "Trusted until one of these files changes. Running servers apply the rules at once, and the prompts when they "
        "restart."
    )
    return 0


def run_untrust(arguments: argparse.Namespace) -> int:
    from mcp_server.state.trust import Trusted

    settings = settings_from_arguments(arguments)
    trusted = Trusted(settings.secrets)
    if trusted.find_trusted_digest(settings.workspace) is None:
        say("This folder was not trusted.")
        return 0
    change_and_record(settings, False, "", lambda: trusted.withdraw_trust(settings.workspace))
    say_prose("No longer trusted. Running servers follow within half a second.")
    return 0


def show(arguments: argparse.Namespace, configuration: "Configuration", settings: "Settings") -> None:
    if arguments.json:
        print_json(to_json(configuration, settings))
    else:
        show_trust(configuration, settings)


def to_json(configuration: "Configuration", settings: "Settings") -> dict[str, object]:
    own = configuration.own
    return {
        "folder": settings.workspace,
        "trusted": configuration.trusted,
        "sha256": own.digest,
        "files": list(own.texts),
        "allow": [rule.text for rule in own.widening_rules],
        "narrowing": [f"{rule.kind}: {rule.text}" for rule in own.narrowing_rules],
        "prompts": list(own.prompts),
    }


def show_trust(configuration: "Configuration", settings: "Settings") -> None:
    own = configuration.own
    state = ("trusted", "green") if configuration.trusted else ("not trusted", "yellow")
    say(f"{settings.workspace}: ", state)
    if not own.texts:
        say_prose("This folder has no menugate.yaml and no menugate.prompts/.")
        return
    rows = [("files", name) for name in own.texts]
    rows += [("applies anyway", f"{rule.kind}: {rule.text}  ({rule.source})") for rule in own.narrowing_rules]
    by_trust = "applies" if configuration.trusted else "applies if trusted"
    rows += [(by_trust, f"allow: {rule.text}  ({rule.source})") for rule in own.widening_rules]
    rows += [(by_trust, f"prompt: {key}") for key in own.prompts]
    print_table(rows)


def change_and_record(settings: "Settings", trusted: bool, digest: str, change: "Callable[[], object]") -> None:
    """Make the change, and record who made it and what it was."""
    import asyncio

    from mcp_server.calls.terminal import open_store_for_person
    from mcp_server.model.results import Refusal
    from mcp_server.state import ledger

    done = False

    async def put() -> None:
        nonlocal done
        async with open_store_for_person(settings) as store:
            change()
            done = True
            await store.write(
                lambda tx: ledger.record_trust(tx, str(settings.workspace), settings.person, trusted, digest)
            )

    with explain_refusals():
        try:
            asyncio.run(put())
        except Refusal as refused:
            if done:
                raise CliError(f"done, but it could not be recorded: {refused.problem.message}") from None
            raise
