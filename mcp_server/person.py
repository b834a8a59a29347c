"""How does the person reach the house? Doors, slash commands and the health gate, put together.

What the server and the command line both have of it, without what only a server needs.
"""

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

from mcp_server.calls.health import HealthResponse
from mcp_server.calls.posture import CurrentPostures, PostureChanges
from mcp_server.calls.slash import ProfileRaise, SlashCommands, StopCommand
from mcp_server.config.load import Configuration, describe_ceiling_source
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tool_packs import SlashCommand
from mcp_server.settings import Settings
from mcp_server.state import ledger
from mcp_server.state.account import HOMELESS
from mcp_server.state.engine.rows import Clock, WallClock
from mcp_server.state.locks import find_unseen_server
from mcp_server.state.processes import find_ancestors, get_own_pid, read_server_mark, read_start_time
from mcp_server.state.servers import load_servers
from mcp_server.state.store import Store

LONGEST_COMMAND = 500


@asynccontextmanager
async def open_store_for_person(settings: Settings) -> AsyncGenerator[Store]:
    """The state, for what the person says at a terminal. What a server started is not the person, wherever it types:
    a background shell has a terminal too. So the ancestors decide, and a mark in the environment beside them; where
    they cannot be seen, nobody is the person."""
    barred = find_barring_server(settings)
    if settings.secrets is None:
        raise barred[1] if barred else Refusal(HOMELESS)
    store = Store.open(settings.url, secrets=settings.secrets, clock=WallClock(), new_id=make_id_generator())
    try:
        if barred:
            server, refused = barred
            attempt = partial(
                ledger.record_attempt, principal=settings.person, server=server, command=read_command_line()
            )
            await store.write(attempt)
            raise refused
        yield store
    finally:
        await store.close()


def find_barring_server(settings: Settings, quick: bool = False) -> tuple[int, Refusal] | None:
    """The server for whose sake nothing here speaks for the person, and what to say of it."""
    if server := find_starting_server(settings, quick):
        return server, build_started_program_refusal(server)
    hidden = find_unseen_server(settings.state)
    return None if hidden is None else (hidden, build_hidden_server_refusal(hidden))


def find_starting_server(settings: Settings, quick: bool = False) -> int:
    """The server below which this process runs; 0 where there is none to be seen. Of every server here the ledger knows
    its process and when that began. `quick`: nothing is asked that takes long, and none but the servers of here."""
    pid = get_own_pid()
    above = {(one, read_start_time(one)) for one in find_ancestors(pid)}
    serving = {(one.pid, one.born) for state in settings.state_folders for one in load_servers(state)}
    if quick:
        return next((one for one, _ in above & serving), 0)
    with suppress(Refusal):
        if settings.database.exists():
            from mcp_server.state.reader import Reader

            with Reader.open(settings.url, secrets=settings.secrets) as state:
                serving |= {(row.fields.get("pid"), row.fields.get("born")) for row in state.find_running_processes()}
    if below := above & serving:
        return next(iter(below))[0]
    return next(
        (int(mark) for one in (pid, *(one for one, _ in above)) if (mark := read_server_mark(one)).isdigit()), 0
    )


def refuse_inside_server(settings: Settings, quick: bool = False) -> None:
    """Raises, once that is on record, where a server started this process."""

    async def raise_refusal() -> None:
        async with open_store_for_person(settings):
            return

    if find_barring_server(settings, quick):
        asyncio.run(raise_refusal())


def build_started_program_refusal(server: int) -> Refusal:
    message = (
        f"this runs inside what a menugate server started (process {server}), and no program speaks for you there."
    )
    way_out = "Nothing was changed, and the attempt is on record. Type it in a terminal of your own."
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def build_hidden_server_refusal(server: int) -> Refusal:
    message = (
        f"a menugate server of this folder lives (process {server or 'unknown'}) and cannot be seen from here, so what "
        "runs here may be something that it started, and no program speaks for you there."
    )
    way_out = (
        "Nothing was changed, and the attempt is on record. Type commands for the user where the server runs, outside "
        "of a container or namespace made inside it."
    )
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def read_command_line() -> str:
    """As it was typed, in short; where a program called us, that program."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with suppress(OSError):
        words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return " ".join(" ".join(words).split())[:LONGEST_COMMAND].replace("`", "'")


@asynccontextmanager
async def open_posture_changes(found: Configuration, settings: Settings) -> AsyncGenerator[PostureChanges]:
    """The doors from a process that does not serve."""
    async with open_store_for_person(settings) as store:
        yield build_posture_changes(found, settings, store)


def build_posture_changes(found: Configuration, settings: Settings, store: Store) -> PostureChanges:
    ceilings = {token.principal: token.max_profile for token in found.library.config.tokens}
    postures = CurrentPostures(store, found.posture, found.policy.ceiling, ceilings)
    return PostureChanges(store, postures, make_short_id, describe_ceiling_source(found, settings))


def build_health_response(found: Configuration, settings: Settings, doors: PostureChanges) -> HealthResponse:
    people = (settings.person, *(token.principal for token in found.library.config.tokens))
    return HealthResponse(doors, found.library.config.health, tuple(dict.fromkeys(people)))


def build_slash_commands(
    doors: PostureChanges, halting: StopCommand, examine: Callable[[bool], Awaitable[str]], clock: Clock
) -> tuple[SlashCommand, ...]:
    """Every command that hosts show with a slash."""
    return (*SlashCommands(doors, halting.raising, examine, clock).build_commands(), *halting.build_commands())


def build_profile_raise(found: Configuration, store: Store, clock: Clock) -> ProfileRaise:
    return ProfileRaise(store, clock, found.library.config.approvals is ApprovalChannel.OUT_OF_BAND)


def recover_state(settings: Settings) -> None:
    """What every start does: it looks closer, puts aside what is damaged, and anchors what is not."""

    async def use_store() -> None:
        store = Store.open(settings.url, secrets=settings.secrets, clock=WallClock(), new_id=make_id_generator())
        try:
            await store.wait_until_ready()
        finally:
            await store.close()

    asyncio.run(use_store())


def make_id_generator() -> Callable[[], str]:
    """Names that no other process gives: what this one is called, and a number. Nobody is let in by knowing one."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def make_short_id() -> str:
    """For the person to type; it opens nothing to whoever guesses it elsewhere."""
    return secrets.token_hex(3)
