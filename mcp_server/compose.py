"""Who builds the house? This module, which knows every room; nobody imports it but the command line.

Everything is built here and handed down by constructor; no other module makes what it does not own.
"""

import asyncio
import gc
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

import mcp_server
from mcp_server.calls.keeping.belongings import Keeping
from mcp_server.calls.pipeline import Pipeline
from mcp_server.calls.postures import Postures
from mcp_server.calls.recording import unwatched
from mcp_server.calls.running.holding import Holds
from mcp_server.calls.running.reporting import reports
from mcp_server.calls.sessions import Sessions
from mcp_server.calls.steering.gate import HealthGate
from mcp_server.calls.steering.halting import Halting
from mcp_server.gate import Rooms, failed, gate, ground
from mcp_server.guards.jail import Jail
from mcp_server.guards.network import for_programs
from mcp_server.guards.processes import Workshop, workshop
from mcp_server.guards.redaction import Redactor
from mcp_server.health import examined
from mcp_server.law import Law, Unbuildable, law
from mcp_server.library import Faults
from mcp_server.library.words import Unspeakable
from mcp_server.model.ending import Refusal
from mcp_server.model.pack import Pack
from mcp_server.person import Wall, doors_of, health_gate, numbered, slash
from mcp_server.settings import Settings, variable
from mcp_server.state import Clock, Store, glimpse
from mcp_server.wire.instructions import instructions
from mcp_server.wire.listings import Listings
from mcp_server.wire.notices import Notices
from mcp_server.wire.offers import Offers
from mcp_server.wire.own.prompts import Sayings
from mcp_server.wire.own.summaries import summaries
from mcp_server.wire.server import Front, MenuServer, build_server, mirrored, stamp
from mcp_server.wire.telemetry import Unstartable, Wish, asked_for
from mcp_server.wire.transports.keys import kept
from mcp_server.wire.transports.keys import token as shared

if TYPE_CHECKING:
    from mcp_server.wire.telemetry import Running

AFTER_FIRST_LIST = 0.3
"""Seconds; hosts list at once, and what they call first waits for the state in any case."""
log = logging.getLogger("menugate")


@dataclass
class House:
    """Everything, built and connected; `running()` opens what has to be open while it is used."""

    law: Law
    settings: Settings
    store: Store
    sessions: Sessions
    postures: Postures
    pipeline: Pipeline
    notices: Notices
    keeping: Keeping
    shop: Workshop
    server: MenuServer
    gate: HealthGate
    token: str | None
    """What a client has to show over HTTP; None where nobody is asked."""
    last_words: Callable[[], None] | None = None
    """What telemetry hands over at the end, where it is on."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        self.store.on_change(changed.set)
        if self.settings.http is None:
            # A host over stdio waits for its first list; the state's engine is loaded when it has got it.
            person = self.settings.person
            self.postures.assume(person, glimpse(self.settings.database, self.settings.secrets, person))
            loop.call_later(AFTER_FIRST_LIST, self.store.wake)
        else:
            await self.store.ready()
        tasks = [loop.create_task(self._follow(changed)), loop.create_task(self.keeping.tend())]
        self.shop.ladder.missing = lambda: tasks.append(loop.create_task(self._unsheltered()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await self.keeping.close()
            await self.shop.close()
            self.notices.close()
            await self.store.close()
            if self.last_words is not None:
                await to_thread.run_sync(self.last_words)

    async def _unsheltered(self) -> None:
        """No sandbox holds here, which was hoped until it was tried: some lists are others now."""
        await self.notices.elsewhere((), self.postures.everybody())

    async def _follow(self, changed: asyncio.Event) -> None:
        """Something changed, maybe in another process: take it over, and tell whoever looks at it."""
        await changed.wait()
        settle()
        await self._health()
        while await changed.wait():
            changed.clear()
            await self.pipeline.course.holds.refresh()
            moved = await self.sessions.refresh()
            await self.postures.refresh()
            await self.notices.elsewhere(moved, self.postures.moved())

    async def _health(self) -> None:
        """The state that was opened says whether it was as it was left; one that cannot be opened, every call says."""
        with suppress(Refusal):
            condition = await self.store.ready()
            if ill := [*condition.alarms, *([condition.lost] if condition.lost else [])]:
                await self.gate.failed(ill)


def settle() -> None:
    """The house and its engine stand, and stay for good: the collector takes the rubble away and looks at them no more.

    Once they are among what it looks at, it stops everything for tens of milliseconds at moments of its choosing.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)


def build(settings: Settings, packs: Sequence[Pack] = (), clock: Clock | None = None) -> House:
    found = law(settings, packs)
    if isinstance(found, Faults):
        raise Unbuildable(str(found))
    if settings.mode is not None and found.policy.menus.get(settings.mode) is None:
        names = ", ".join(mode.name for mode in found.policy.menus)
        raise Unbuildable(f"there is no mode `{settings.mode}`; there are {names}.")
    prepare_folders(settings)
    try:
        return connected(found, settings, clock)
    except (Unspeakable, Unstartable) as wrong:
        raise Unbuildable(str(wrong)) from None
    except OSError as wrong:
        raise Unbuildable(f"{wrong.filename} cannot be written ({wrong.strerror}); menugate needs it.") from wrong


def connected(found: Law, settings: Settings, clock: Clock | None) -> House:
    jail = Jail(settings.workspace, private=(settings.state,), readable=(settings.state / "spill",))
    config = found.library.config
    shop = workshop(ground(settings), jail, config.sandbox, config.limits, for_programs(config.network))
    found = replace(found, policy=replace(found.policy, shelter=shop.ladder.shelter))
    new_id, wall = numbered(), clock or Wall()
    store = Store.open(settings.url, secrets=settings.secrets, clock=wall, new_id=new_id)
    keeping, holds = Keeping(failed), Holds(store)
    sessions = Sessions(store, holds, new_id, new_handle, keeping.left)
    doors = doors_of(found, settings, store)
    postures = doors.postures
    token = token_of(settings)
    key = variable(config.review.key) if config.review else ""
    redactor = Redactor(one for one in (*settings.secret_values, token, key) if one)
    sayings = Sayings(found.words, str(settings.workspace), postures.seen)
    typed = slash(found, doors, Halting(store, holds, new_id), partial(examined, found, settings, doors), wall)
    offers = Offers((sayings.pack(), *found.packs), typed, (*reports(store, redactor), *summaries(store)))
    watching = watched(found, settings, offers)
    noticed, last_words = (watching.telemetry.noticed, watching.stop) if watching else (unwatched, None)
    rooms = Rooms(store, sessions, holds, postures, redactor, wall, jail, shop, keeping, noticed)
    pipeline = gate(found, settings, rooms, new_id())
    front = front_of(found, settings, pipeline, sessions, offers)
    seal = kept(settings.secrets / "request-state.key").encode()
    server = build_server(front, mcp_server.__version__, seal, watching.telemetry.watched if watching else None)
    front.listings.stamp.update(stamp(server))
    ill, heard = health_gate(found, settings, doors), front.notices
    return House(
        found, settings, store, sessions, postures, pipeline, heard, keeping, shop, server, ill, token, last_words
    )


def watched(found: Law, settings: Settings, offers: Offers) -> "Running | None":
    wish = Wish(settings.traces, settings.metrics, settings.workspace.name)
    return asked_for(wish, frozenset(found.policy.tools), offers.names, settings.person)


def token_of(settings: Settings) -> str | None:
    asked = settings.http is not None and settings.auth
    return shared(settings.secrets, settings.workspace, settings.state / "http.token") if asked else None


def front_of(found: Law, settings: Settings, pipeline: Pipeline, sessions: Sessions, offers: Offers) -> Front:
    listings = Listings(found.policy, found.library.hosts, settings.listing or found.library.config.listing)
    return Front(
        pipeline=pipeline,
        sessions=sessions,
        listings=listings,
        notices=Notices(listings, pipeline.postures.known, settings.settle_seconds),
        offers=offers,
        owner=settings.person,
        pinned=settings.mode,
        instructions=partial(spoken, found),
        schema_of=mirrored(found.policy.tools),
        patience=settings.answer_seconds,
    )


def spoken(found: Law, pinned: str | None) -> str:
    head, tail = found.words.say("instructions/head"), found.words.say("instructions/tail")
    return instructions(head, tail, found.policy.menus, found.policy.menus.get(pinned))


def prepare_folders(settings: Settings) -> None:
    if settings.state.is_symlink():
        # It may have come with the workspace, and lead to where a tool reads and writes.
        raise Unbuildable(
            f"{settings.state} is a link, and menugate keeps its state in a folder that is really there; take it away."
        )
    for folder in (settings.state, settings.secrets):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as wrong:
            raise Unbuildable(f"{folder} cannot be made ({wrong.strerror}); menugate keeps its state there.") from wrong
    ignore = settings.state / ".gitignore"
    # A courtesy to the person's repository, which must not keep a server from reading what lies there.
    with suppress(OSError):
        if not ignore.exists():
            ignore.write_text("*\n")


def new_handle() -> str:
    return "menu_" + secrets.token_urlsafe(16)
