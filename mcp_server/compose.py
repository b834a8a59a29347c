"""Who builds the house? This module, which knows every room; nobody imports it but the command line.

Everything is built here and handed down by constructor; no other module makes what it does not own.
"""

import asyncio
import gc
import logging
import os
import secrets
import sysconfig
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from anyio import to_thread

import mcp_server
from mcp_server.calls.approving.approvals import Approvals, trust
from mcp_server.calls.desk import MenuDesk
from mcp_server.calls.finding import Finding
from mcp_server.calls.folding import RunMemory
from mcp_server.calls.given.phases import PhaseLogs
from mcp_server.calls.given.records import remembered
from mcp_server.calls.keeping.belongings import Keeping
from mcp_server.calls.person import Reached
from mcp_server.calls.pipeline import Pipeline
from mcp_server.calls.postures import Postures
from mcp_server.calls.recording import Recorder, counting, unwatched
from mcp_server.calls.remembering import ProjectMemory
from mcp_server.calls.running.course import Course
from mcp_server.calls.running.holding import Holds
from mcp_server.calls.running.reporting import reports
from mcp_server.calls.running.reviewing import Review
from mcp_server.calls.sessions import Seat, SeenBy, Sessions
from mcp_server.calls.showing import Showing
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.index import WorkspaceIndex
from mcp_server.guards.jail import Jail
from mcp_server.guards.network import for_programs, for_tools
from mcp_server.guards.placing import Trash
from mcp_server.guards.processes import Ground, Workshop, signature, workshop
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.search import Finder, find_ripgrep
from mcp_server.guards.spill import ONE_DAY_NS, Spill
from mcp_server.law import Law, Unbuildable, law
from mcp_server.library import Faults
from mcp_server.library.words import Unspeakable
from mcp_server.model.pack import Pack
from mcp_server.model.session import Session
from mcp_server.model.tool import Demand
from mcp_server.settings import Settings
from mcp_server.state import Clock, Store, glimpse
from mcp_server.state.record import Judged
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
        while await changed.wait():
            changed.clear()
            await self.pipeline.course.holds.refresh()
            moved = await self.sessions.refresh()
            await self.postures.refresh()
            await self.notices.elsewhere(moved, self.postures.moved())


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
    policy = replace(found.policy, shelter=shop.ladder.shelter)
    found = replace(found, policy=policy)
    new_id = numbered()
    store = Store.open(settings.url, secrets=settings.secrets, clock=clock or Wall(), new_id=new_id)
    keeping, holds = Keeping(failed), Holds(store)
    sessions = Sessions(store, holds, new_id, new_handle, keeping.left)
    ceilings = {token.principal: token.max_profile for token in found.library.config.tokens}
    postures = Postures(store, found.posture, policy.ceiling, ceilings)
    asked = settings.http is not None and settings.auth
    token = shared(settings.secrets, settings.workspace, settings.state / "http.token") if asked else None
    redactor = Redactor((*settings.secret_values, token) if token else settings.secret_values)
    sayings = Sayings(found.words, str(settings.workspace), postures.seen)
    offers = Offers((sayings.pack(), *found.packs), (*reports(store, redactor), *summaries(store)))
    wish = Wish(settings.traces, settings.metrics, settings.workspace.name)
    watching = asked_for(wish, frozenset(policy.tools), offers.names, settings.person)
    noticed, last_words = (watching.telemetry.noticed, watching.stop) if watching else (unwatched, None)
    rooms = Rooms(store, sessions, holds, postures, redactor, clock or Wall(), jail, shop, keeping, noticed)
    pipeline = gate(found, settings, rooms, new_id())
    listings = Listings(policy, found.library.hosts, settings.listing or found.library.config.listing)
    notices = Notices(listings, postures.known, settings.settle_seconds)
    front = Front(
        pipeline=pipeline,
        sessions=sessions,
        listings=listings,
        notices=notices,
        offers=offers,
        owner=settings.person,
        pinned=settings.mode,
        instructions=partial(spoken, found),
        schema_of=mirrored(policy.tools),
        patience=settings.answer_seconds,
    )
    seal = kept(settings.secrets / "request-state.key").encode()
    server = build_server(front, mcp_server.__version__, seal, watching.telemetry.watched if watching else None)
    listings.stamp.update(stamp(server))
    return House(
        found, settings, store, sessions, postures, pipeline, notices, keeping, shop, server, token, last_words
    )


@dataclass(frozen=True)
class Rooms:
    """What the gate stands between."""

    store: Store
    sessions: Sessions
    holds: Holds
    postures: Postures
    redactor: Redactor
    clock: Clock
    jail: Jail
    shop: Workshop
    keeping: Keeping
    noticed: Callable[[Judged], None]


def ground(settings: Settings) -> Ground:
    own = (settings.state, settings.secrets, *([settings.config] if settings.config else []))
    return Ground(
        workspace=settings.workspace,
        home=settings.home,
        private=tuple(dict.fromkeys(own)),
        # Last come the programs that were installed together with us.
        search_path=os.pathsep.join((settings.search_path, sysconfig.get_path("scripts"))),
        variables=dict(settings.variables),
    )


def failed(what: str, fault: BaseException) -> None:
    log.error("%s failed", what, exc_info=fault)


def gate(found: Law, settings: Settings, rooms: Rooms, conversation: str) -> Pipeline:
    policy, store, sessions, postures = found.policy, rooms.store, rooms.sessions, rooms.postures
    spill = Spill(settings.state / "spill")
    spill.sweep(ONE_DAY_NS, time.time_ns())
    finder = Finder(rooms.jail, (settings.state,), find_ripgrep(settings.search_path))
    files = WorkspaceFiles(rooms.jail, Trash(settings.state / "trash"), SeenBy(store), finder)

    memory = ProjectMemory(store, rooms.redactor.redact)
    review = Review(store, rooms.shop.granted)
    course = Course(store, sessions, rooms.holds, postures.known, rooms.redactor, review, memory.learn)

    def desk(seat: Seat) -> MenuDesk:
        return MenuDesk(seat, sessions, policy, lambda: postures.known(seat.session.principal), course)

    def files_of(session: Session, demand: Demand) -> WorkspaceFiles:
        return files.granted(demand, SeenBy(store, session.id))

    return Pipeline(
        policy=policy,
        postures=postures,
        finding=Finding(policy, sessions, desk, str(settings.workspace)),
        recorder=Recorder(store, counting(policy), conversation, rooms.redactor.redact, rooms.noticed),
        approvals=Approvals(store, rooms.clock, rooms.redactor, trust(found.library.config), settings.approval_seconds),
        course=course,
        showing=Showing(rooms.redactor, spill),
        files=files_of,
        processes=lambda _session, demand, profile: rooms.shop.granted(demand, profile),
        network=for_tools(found.library.config.network),
        belongings=lambda session: rooms.keeping.owned(session.id),
        person=partial(Reached, store, partial(signature, settings.search_path, settings.home)),
        desk=desk,
        run_memory=RunMemory(store, found.library.config.folding),
        records=partial(remembered, store),
        phases=PhaseLogs(store, policy),
        index=WorkspaceIndex(rooms.jail, settings.index, time.time_ns),
        memory=memory,
        failed=lambda tool, fault: failed(f"the tool {tool}", fault),
    )


class Wall:
    """The clock on the wall, which only this module looks at."""

    def now_ns(self) -> int:
        return time.time_ns()


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


def numbered() -> Callable[[], str]:
    """Names that no other process gives: what this one is called, and a number. Nobody is let in by knowing one."""
    process, numbers = secrets.token_hex(6), count(1)
    return lambda: f"{process}-{next(numbers)}"


def new_handle() -> str:
    return "menu_" + secrets.token_urlsafe(16)
