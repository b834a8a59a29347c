"""How does the person act on the server? What both the server and the command line need for it.

Opening the state, changing the posture, slash commands and the response to faults; nothing that only a server needs.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from mcp_server.calls.health import HealthResponse
from mcp_server.calls.posture import CurrentPostures, PostureChanges
from mcp_server.calls.slash import ProfileRaise, SlashCommands, StopCommand
from mcp_server.calls.terminal import open_store_for_person
from mcp_server.config.load import Configuration, get_limits
from mcp_server.model.approvals import ApprovalChannel
from mcp_server.model.tool_packs import SlashCommand
from mcp_server.settings import Settings
from mcp_server.state.engine.rows import Clock, WallClock
from mcp_server.state.ids import make_id_generator, make_short_id
from mcp_server.state.store import Store


@asynccontextmanager
async def open_posture_changes(found: Configuration, settings: Settings) -> AsyncGenerator[PostureChanges]:
    """The way to change the posture from a process that does not serve."""
    async with open_store_for_person(settings) as store:
        yield build_posture_changes(found, settings, store)


def build_posture_changes(found: Configuration, settings: Settings, store: Store) -> PostureChanges:
    return PostureChanges(store, CurrentPostures(store, get_limits(found, settings)), make_short_id)


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
