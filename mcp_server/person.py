"""How does the person reach the house? Doors, slash commands and the health gate, put together.

What the server and the command line both have of it, without what only a server needs.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count

from mcp_server.calls.postures import Postures
from mcp_server.calls.steering.commands import Slash
from mcp_server.calls.steering.doors import Doors
from mcp_server.calls.steering.gate import HealthGate
from mcp_server.calls.steering.halting import Halting
from mcp_server.law import Law, ceiling_set_by
from mcp_server.model.ending import Refusal
from mcp_server.model.pack import Command
from mcp_server.model.runs.approval import Approvals
from mcp_server.settings import Settings
from mcp_server.state import Clock, Store
from mcp_server.state.trust.account import HOMELESS


@asynccontextmanager
async def doors_open(found: Law, settings: Settings) -> AsyncGenerator[Doors]:
    """The doors from a process that does not serve."""
    if settings.secrets is None:
        raise Refusal(HOMELESS)
    store = Store.open(settings.url, secrets=settings.secrets, clock=Wall(), new_id=numbered())
    try:
        yield doors_of(found, settings, store)
    finally:
        await store.close()


def doors_of(found: Law, settings: Settings, store: Store) -> Doors:
    ceilings = {token.principal: token.max_profile for token in found.library.config.tokens}
    postures = Postures(store, found.posture, found.policy.ceiling, ceilings)
    return Doors(store, postures, short_id, ceiling_set_by(found, settings))


def health_gate(found: Law, settings: Settings, doors: Doors) -> HealthGate:
    people = (settings.person, *(token.principal for token in found.library.config.tokens))
    return HealthGate(doors, found.library.config.health, tuple(dict.fromkeys(people)))


def slash(
    found: Law, doors: Doors, halting: Halting, examine: Callable[[bool], Awaitable[str]], clock: Clock
) -> tuple[Command, ...]:
    """Every command that hosts show with a slash."""
    out_of_band = found.library.config.approvals is Approvals.OUT_OF_BAND
    return (*Slash(doors, out_of_band, examine, clock).commands(), *halting.commands())


def opened(settings: Settings) -> None:
    """What every start does: it looks closer, puts aside what is damaged, and anchors what is not."""

    async def once() -> None:
        store = Store.open(settings.url, secrets=settings.secrets, clock=Wall(), new_id=numbered())
        try:
            await store.ready()
        finally:
            await store.close()

    asyncio.run(once())


class Wall:
    """The clock on the wall."""

    def now_ns(self) -> int:
        return time.time_ns()


def numbered() -> Callable[[], str]:
    """Names that no other process gives: what this one is called, and a number. Nobody is let in by knowing one."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def short_id() -> str:
    """For the person to type; it opens nothing to whoever guesses it elsewhere."""
    return secrets.token_hex(3)
