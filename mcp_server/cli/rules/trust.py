"""`menugate trust` and `menugate untrust`: does what this folder says about itself count?"""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_server.cli.command import Commands, add_json, add_place, law_of, settings_of
from mcp_server.cli.paper import Trouble, as_json, note, say, table

if TYPE_CHECKING:
    from mcp_server.law import Law
    from mcp_server.settings import Settings

TRUST = """
menugate trust --show    what would count if you trusted this folder; nothing is changed
menugate trust           from the next start on its allow rules and its prompts count, as they are now
"""
UNTRUST = """
menugate untrust    its allow rules and its prompts are set aside again; what narrows goes on to hold
"""


def add(commands: Commands) -> None:
    one = commands.add("trust", "let what this folder says about itself count, as it is now", TRUST, run)
    one.add_argument("--show", action="store_true", help="only show what would count")
    add_place(one)
    add_json(one)
    other = commands.add("untrust", "set aside again what this folder allows itself", UNTRUST, run_untrust)
    add_place(other)


def run(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    found = law_of(arguments, settings)
    if arguments.show:
        show(arguments, found, settings)
        return 0
    if not found.own.texts:
        raise Trouble("there is nothing to trust: this folder says nothing about itself.")
    from mcp_server.model.ending import Refusal
    from mcp_server.state.trust import Trusted

    try:
        Trusted(settings.secrets).give(settings.workspace, found.own.digest)
    except Refusal as refused:
        raise Trouble(f"{refused.problem.message} {refused.problem.way_out}") from None
    show(arguments, replace(found, trusted=True), settings)
    recorded(settings, True, found.own.digest)
    note("Trusted as it is now. A byte that changes ends it; running servers take it up at their next start.")
    return 0


def run_untrust(arguments: argparse.Namespace) -> int:
    from mcp_server.state.trust import Trusted

    settings = settings_of(arguments)
    if not Trusted(settings.secrets).take(settings.workspace):
        say("This folder was not trusted.")
        return 0
    recorded(settings, False, "")
    say("Not trusted any more. Running servers take it up at their next start.")
    return 0


def show(arguments: argparse.Namespace, found: "Law", settings: "Settings") -> None:
    if arguments.json:
        as_json(facts(found, settings))
    else:
        tell(found, settings)


def facts(found: "Law", settings: "Settings") -> dict[str, object]:
    own = found.own
    return {
        "folder": settings.workspace,
        "trusted": found.trusted,
        "sha256": own.digest,
        "files": list(own.texts),
        "allow": [rule.text for rule in own.widening],
        "narrowing": [f"{rule.kind}: {rule.text}" for rule in own.narrowing],
        "prompts": list(own.prompts),
    }


def tell(found: "Law", settings: "Settings") -> None:
    own = found.own
    state = ("trusted", "green") if found.trusted else ("not trusted", "yellow")
    say(f"{settings.workspace}: ", state)
    if not own.texts:
        say("This folder says nothing about itself: it has no menugate.yaml and no menugate.prompts/.")
        return
    rows = [("files", name) for name in own.texts]
    rows += [("holds in any case", f"{rule.kind}: {rule.text}  ({rule.source})") for rule in own.narrowing]
    by_trust = "counts by trust" if found.trusted else "counts if trusted"
    rows += [(by_trust, f"allow: {rule.text}  ({rule.source})") for rule in own.widening]
    rows += [(by_trust, f"prompt: {key}") for key in own.prompts]
    table(rows)


def recorded(settings: "Settings", trusted: bool, digest: str) -> None:
    """Put on record who changed it and to what; the ledger is where a person looks it up later."""
    import asyncio

    from mcp_server.compose import Wall, numbered
    from mcp_server.model.ending import Refusal
    from mcp_server.state import Store, deeds

    async def put() -> None:
        store = Store.open(settings.url, secrets=settings.secrets, clock=Wall(), new_id=numbered())
        try:
            await store.write(lambda tx: deeds.trust(tx, str(settings.workspace), settings.person, trusted, digest))
        finally:
            await store.close()

    try:
        asyncio.run(put())
    except Refusal as refused:
        raise Trouble(f"it is done, and could not be put on record: {refused.problem.message}") from None
