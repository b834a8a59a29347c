"""Who builds the house? This module, which knows every room; nobody imports it but the command line.

Everything is built here and handed down by constructor; no other module makes what it does not own.
"""

import asyncio
import gc
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import mcp_server
from mcp_server.calls.approving.approvals import Approvals, Trust
from mcp_server.calls.desk import MenuDesk
from mcp_server.calls.finding import Finding
from mcp_server.calls.person import Reached
from mcp_server.calls.pipeline import Pipeline
from mcp_server.calls.postures import Postures
from mcp_server.calls.recording import Recorder, counting
from mcp_server.calls.running.course import ADDRESS, Course
from mcp_server.calls.running.holding import Holds
from mcp_server.calls.running.reviewing import Review, last_tests, unanswered, uncommitted
from mcp_server.calls.sessions import Seat, SeenBy, Sessions
from mcp_server.calls.showing import Showing
from mcp_server.calls.steering.gate import HealthGate
from mcp_server.calls.steering.halting import Halting
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.jail import Jail
from mcp_server.guards.placing import Trash
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.search import Finder, find_ripgrep
from mcp_server.guards.spill import ONE_DAY_NS, Spill
from mcp_server.health import examined
from mcp_server.law import DATA, Law, Unbuildable, law
from mcp_server.library import Approvals as Asking
from mcp_server.library import Faults
from mcp_server.model.ending import Refusal
from mcp_server.model.pack import Artifact, Pack
from mcp_server.model.policy import Policy
from mcp_server.model.session import Session
from mcp_server.model.tool import Demand
from mcp_server.person import Wall, doors_of, health_gate, numbered, slash
from mcp_server.settings import Settings
from mcp_server.state import Clock, Store, deeds, glimpse
from mcp_server.wire.instructions import instructions
from mcp_server.wire.listings import Listings
from mcp_server.wire.notices import Notices
from mcp_server.wire.offers import Offers
from mcp_server.wire.server import Front, MenuServer, build_server, stamp
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
    server: MenuServer
    gate: HealthGate
    token: str | None
    """What a client has to show over HTTP; None where nobody is asked."""

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
        following = loop.create_task(self._follow(changed))
        try:
            yield
        finally:
            following.cancel()
            self.notices.close()
            await self.store.close()

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
    except OSError as wrong:
        raise Unbuildable(f"{wrong.filename} cannot be written ({wrong.strerror}); menugate needs it.") from wrong


def connected(found: Law, settings: Settings, clock: Clock | None) -> House:
    policy = found.policy
    new_id = numbered()
    store = Store.open(settings.url, secrets=settings.secrets, clock=clock or Wall(), new_id=new_id)
    holds = Holds(store)
    sessions = Sessions(store, new_id, new_handle, holds)
    doors = doors_of(found, settings, store)
    postures = doors.postures
    asked = settings.http is not None and settings.auth
    token = shared(settings.secrets, settings.workspace, settings.state / "http.token") if asked else None
    redactor = Redactor((*settings.secret_values, token) if token else settings.secret_values)
    pipeline = gate(found, settings, Rooms(store, sessions, holds, postures, redactor, clock or Wall()), new_id())
    listings = Listings(policy, found.library.hosts, settings.listing or found.library.config.listing)
    notices = Notices(listings, postures.known, settings.settle_seconds)
    front = Front(
        pipeline=pipeline,
        sessions=sessions,
        listings=listings,
        notices=notices,
        offers=Offers(
            found.packs,
            slash(found, doors, Halting(store, holds, new_id), partial(examined, found, settings, doors)),
            reports(store, redactor),
        ),
        owner=settings.person,
        pinned=settings.mode,
        instructions=partial(spoken, found),
        schema_of=mirrored(policy),
        patience=settings.answer_seconds,
    )
    server = build_server(front, mcp_server.__version__, kept(settings.secrets / "request-state.key").encode())
    listings.stamp.update(stamp(server))
    gate_of_health = health_gate(found, settings, doors)
    return House(found, settings, store, sessions, postures, pipeline, notices, server, gate_of_health, token)


@dataclass(frozen=True)
class Rooms:
    """What the gate stands between."""

    store: Store
    sessions: Sessions
    holds: Holds
    postures: Postures
    redactor: Redactor
    clock: Clock


def gate(found: Law, settings: Settings, rooms: Rooms, conversation: str) -> Pipeline:
    policy, store, sessions, postures = found.policy, rooms.store, rooms.sessions, rooms.postures
    spill = Spill(settings.state / "spill")
    spill.sweep(ONE_DAY_NS, time.time_ns())
    jail = Jail(settings.workspace, private=(settings.state,), readable=(spill.folder,))
    finder = Finder(jail, (settings.state,), find_ripgrep(settings.search_path))
    files = WorkspaceFiles(jail, Trash(settings.state / "trash"), SeenBy(store), finder)

    course = running(rooms)

    def desk(seat: Seat) -> MenuDesk:
        return MenuDesk(seat, sessions, policy, lambda: postures.known(seat.session.principal), course)

    def files_of(session: Session, demand: Demand) -> WorkspaceFiles:
        return files.granted(demand, SeenBy(store, session.id))

    def failed(tool: str, fault: BaseException) -> None:
        log.error("the tool %s failed", tool, exc_info=fault)

    return Pipeline(
        policy=policy,
        postures=postures,
        finding=Finding(policy, sessions, desk, str(settings.workspace)),
        recorder=Recorder(store, counting(policy), conversation),
        approvals=approving(found, settings, rooms),
        course=course,
        showing=Showing(rooms.redactor, spill),
        files=files_of,
        person=partial(Reached, store),
        desk=desk,
        failed=failed,
    )


def running(rooms: Rooms) -> Course:
    store = rooms.store
    # A reviewer that asks a model would be one more line here, and todos and git are looked at where there are any.
    checks = (("refused and failed calls", unanswered), ("tests", last_tests), ("git", uncommitted(lambda _: None)))
    return Course(store, rooms.sessions, rooms.holds, rooms.postures.known, rooms.redactor, Review(store, checks))


def reports(store: Store, redactor: Redactor) -> tuple[Artifact, ...]:
    """What was found when a run was over, each for whose run it was."""

    async def read(principal: str, holes: Mapping[str, str]) -> str | None:
        found = await store.read(partial(deeds.report, run=holes.get("run"), principal=principal))
        return redactor.redact(found.as_text()) if found else None

    about = (
        "report",
        "What was found when a run was over: issues, missing steps, next actions.",
        "text/markdown",
        read,
    )
    return (Artifact(ADDRESS, *about), Artifact(ADDRESS + "/{run}", *about))


def approving(found: Law, settings: Settings, rooms: Rooms) -> Approvals:
    config = found.library.config
    trust = Trust(config.approvals is Asking.ELICIT, config.out_of_band)
    return Approvals(rooms.store, rooms.clock, rooms.redactor, trust, approval_id, settings.approval_seconds)


def approval_id() -> str:
    """Short enough to be typed, and not one that anybody guesses while it is open."""
    return "".join(secrets.choice("23456789abcdefghjkmnpqrstuvwxyz") for _ in range(8))


def spoken(found: Law, pinned: str | None) -> str:
    prompts = DATA / "prompts"
    head, tail = (prompts / name for name in ("instructions.md", "instructions.tail.md"))
    return instructions(head.read_text(), tail.read_text(), found.policy.menus, found.policy.menus.get(pinned))


def mirrored(policy: Policy) -> Callable[[str], dict[str, object] | None]:
    """The schema of a tool that asks for arguments to be repeated in headers; no other is looked at before the gate."""
    asking = {name: tool for name, tool in policy.tools.items() if "x-mcp-header" in repr(tool.arguments)}
    return lambda name: dict(asking[name].arguments) if name in asking else None


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
