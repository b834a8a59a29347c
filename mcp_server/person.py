"""How does the person act on the server? What both the server and the command line need for it.

Opening the state, changing the posture, slash commands and the response to faults; nothing that only a server needs.
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
from mcp_server.state.account import NO_KEY_FOLDER
from mcp_server.state.engine.rows import Clock, WallClock
from mcp_server.state.locks import find_unseen_server
from mcp_server.state.processes import find_ancestors, get_own_pid, read_server_mark, read_start_time
from mcp_server.state.servers import load_servers
from mcp_server.state.store import Store

MAX_COMMAND_CHARS = 500


@asynccontextmanager
async def open_store_for_person(settings: Settings) -> AsyncGenerator[Store]:
    """The state, for what the person types at a terminal. A program that a server started is not the person, even at a
    terminal: a background shell has one, too. So the ancestors of this process decide, with a mark in the environment;
    if they cannot be seen, the answer is no."""
    barred = find_barring_server(settings)
    if settings.secrets is None:
        raise barred[1] if barred else Refusal(NO_KEY_FOLDER)
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
    """The server because of which this process may not act for the person, and the refusal."""
    if server := find_starting_server(settings, quick):
        return server, build_started_program_refusal(server)
    hidden = find_unseen_server(settings.state)
    return None if hidden is None else (hidden, build_hidden_server_refusal(hidden))


def find_starting_server(settings: Settings, quick: bool = False) -> int:
    """The server that this process descends from, or 0. The ledger knows the process of every server here and when it
    started. `quick` looks only at the servers of this folder and does nothing slow."""
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
    """Record the attempt and raise, if a server started this process."""

    async def raise_refusal() -> None:
        async with open_store_for_person(settings):
            return

    if find_barring_server(settings, quick):
        asyncio.run(raise_refusal())


def build_started_program_refusal(server: int) -> Refusal:
    message = f"this command was started by a menugate server (process {server}), so it cannot act for you."
    way_out = "Nothing was changed, and the attempt was recorded. Type it in a terminal of your own."
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def build_hidden_server_refusal(server: int) -> Refusal:
    message = (
        f"a menugate server of this folder is running (process {server or 'unknown'}) that cannot be seen from here. "
        "It may have started this command, so this command cannot act for you."
    )
    way_out = (
        "Nothing was changed, and the attempt was recorded. Type commands for the user where the server runs, not in a "
        "container or namespace inside it."
    )
    return Refusal(Problem(Code.BLOCKED, message, way_out))


def read_command_line() -> str:
    """What was typed, shortened; if a program called us, that program."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    with suppress(OSError):
        words = Path("/proc/self/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return " ".join(" ".join(words).split())[:MAX_COMMAND_CHARS].replace("`", "'")


@asynccontextmanager
async def open_posture_changes(found: Configuration, settings: Settings) -> AsyncGenerator[PostureChanges]:
    """The way to change the posture from a process that does not serve."""
    async with open_store_for_person(settings) as store:
        yield build_posture_changes(found, settings, store)


def build_posture_changes(found: Configuration, settings: Settings, store: Store) -> PostureChanges:
    ceilings = {token.principal: token.max_profile for token in found.library.config.tokens}
    postures = CurrentPostures(store, found.posture, found.policy.ceiling, ceilings)
    return PostureChanges(store, postures, make_short_id, describe_ceiling_source(found, settings))


def build_health_response(found: Configuration, settings: Settings, changes: PostureChanges) -> HealthResponse:
    people = (settings.person, *(token.principal for token in found.library.config.tokens))
    return HealthResponse(changes, found.library.config.health, tuple(dict.fromkeys(people)))


def build_slash_commands(
    changes: PostureChanges, halting: StopCommand, examine: Callable[[bool], Awaitable[str]], clock: Clock
) -> tuple[SlashCommand, ...]:
    """The commands that hosts show with a slash."""
    return (*SlashCommands(changes, halting.raising, examine, clock).build_commands(), *halting.build_commands())


def build_profile_raise(found: Configuration, store: Store, clock: Clock) -> ProfileRaise:
    return ProfileRaise(store, clock, found.library.config.approvals is ApprovalChannel.OUT_OF_BAND)


def recover_state(settings: Settings) -> None:
    """Do what every start does: check the state, move damaged files aside, anchor the rest."""

    async def use_store() -> None:
        store = Store.open(settings.url, secrets=settings.secrets, clock=WallClock(), new_id=make_id_generator())
        try:
            await store.wait_until_ready()
        finally:
            await store.close()

    asyncio.run(use_store())


def make_id_generator() -> Callable[[], str]:
    """Ids unique across processes: a random name of this process and a number. Knowing one gives no access."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def make_short_id() -> str:
    """Short enough for the person to type; guessing one gives no access."""
    return secrets.token_hex(3)
