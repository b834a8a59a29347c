"""What stands behind the gate? Every port a call may reach, built once and handed to the pipeline."""

import os
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp_server.calls.approving.approvals import Approvals, trust
from mcp_server.calls.approving.binding import Binding
from mcp_server.calls.desk import MenuDesk
from mcp_server.calls.finding import Finding
from mcp_server.calls.folding.memory import RunMemory
from mcp_server.calls.given.context import Ports
from mcp_server.calls.given.phases import PhaseLogs
from mcp_server.calls.given.records import remembered
from mcp_server.calls.keeping.belongings import Keeping
from mcp_server.calls.person import Reached
from mcp_server.calls.pipeline import Pipeline
from mcp_server.calls.postures import Postures
from mcp_server.calls.recording import Recorder, counting
from mcp_server.calls.remembering import ProjectMemory
from mcp_server.calls.running.course import Course
from mcp_server.calls.running.holding import Holds
from mcp_server.calls.running.live import LiveCalls, start
from mcp_server.calls.running.reviewing import Check, Review, Run, Seen
from mcp_server.calls.sessions import Seat, SeenBy, Sessions
from mcp_server.calls.showing import Showing, telling
from mcp_server.calls.steering.ruling import Ruling
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.index import WorkspaceIndex
from mcp_server.guards.jail import Jail
from mcp_server.guards.network import for_programs, for_tools, to_one
from mcp_server.guards.placing import Trash
from mcp_server.guards.processes import Ground, Workshop, ignored, own_hooks, signature, workshop
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.search import Finder, find_ripgrep
from mcp_server.guards.spill import ONE_DAY_NS, Spill
from mcp_server.installation import installation
from mcp_server.law import Law
from mcp_server.model.ending import Refusal
from mcp_server.model.ports.processes import Command
from mcp_server.model.posture import Profile
from mcp_server.model.tool import Demand, Effect
from mcp_server.settings import Settings, variable
from mcp_server.state import Clock, Store
from mcp_server.state.record import Judged


@dataclass(frozen=True)
class Rooms:
    """What the gate stands between, which is there before anybody calls."""

    store: Store
    sessions: Sessions
    holds: Holds
    postures: Postures
    ruling: Ruling
    clock: Clock
    keeping: Keeping
    secrets: tuple[str, ...]
    """Values that are never shown."""
    live_calls: LiveCalls
    noticed: Callable[[Judged], None]
    failed: Callable[[str, BaseException], None]
    """Where it goes when something of ours fails; never to a client."""


@dataclass(frozen=True)
class Gate:
    """What there is only because somebody calls."""

    pipeline: Pipeline
    shop: Workshop
    redactor: Redactor


def ground(settings: Settings, found: Law) -> Ground:
    return Ground(
        workspace=settings.workspace,
        home=settings.home,
        private=settings.own,
        # Last come the programs that were installed together with us.
        search_path=os.pathsep.join((settings.search_path, sysconfig.get_path("scripts"))),
        variables=dict(settings.variables),
        outside=dict(settings.variables_outside),
        installation=installation(settings, found),
    )


def gate(found: Law, settings: Settings, rooms: Rooms, conversation: str) -> Gate:
    jail, shop = guards(found, settings)
    shop.nursery.born = start
    redactor = Redactor(rooms.secrets)
    return Gate(pipeline(found, settings, rooms, (jail, shop, redactor), conversation), shop, redactor)


def guards(found: Law, settings: Settings) -> tuple[Jail, Workshop]:
    """What stands between a call and the disk, and what between a command and the machine."""
    config = found.library.config
    where = ground(settings, found)
    installed = tuple(map(Path, where.installed((str(settings.workspace),))))
    jail = Jail(settings.workspace, settings.own_inside, (settings.state / "spill",), installation=installed)
    return jail, workshop(where, jail, config.sandbox, config.limits, for_programs(config.network))


async def try_sandbox(found: Law, settings: Settings) -> tuple[str, str]:
    """Which sandbox there is, in words, and whether that is `good`, a `note` or a `fault`: one command is run in it
    with the mounts of a real call, which are made of this workspace and these settings."""
    _, shop = guards(found, settings)
    posture = found.posture.capped(found.policy.ceiling)
    profile = Profile.TRUSTED if posture.profile.covers(Profile.TRUSTED) else Profile.NORMAL
    says = await shop.ladder.described()
    if not shop.ladder.name:
        return says, "note"
    try:
        ran = await shop.granted(Demand(Effect.EXEC, Profile.NORMAL), profile).run(Command(("true",), seconds=10.0))
    except Refusal as refused:
        return f"{says}; a command does not run in it: {refused.problem.message}", "fault"
    finally:
        await shop.close()
    return (says, "good") if ran.code == 0 else (f"{says}; `true` ends in it with exit code {ran.code}.", "fault")


def swept(settings: Settings) -> Spill:
    spill = Spill(settings.state / "spill")
    spill.sweep(ONE_DAY_NS, time.time_ns())
    return spill


def second_look(found: Law, store: Store, redactor: Redactor) -> Check | None:
    """The model that is asked about a run that is over; None where the operator named none, as it is by default."""
    config = found.library.config
    wish = config.review
    if wish is None:
        return None

    async def look(run: Run) -> Seen:
        # Nobody needs it before a run is over.
        from mcp_server.calls.running.consulting import Reviewer

        door = to_one(wish.place, config.network)
        return await Reviewer(wish, variable(wish.key), door, store, redactor, found.words.say).look(run)

    return look


def ports(
    found: Law, settings: Settings, rooms: Rooms, guards: tuple[Jail, Workshop, Redactor], memory: ProjectMemory
) -> Ports:
    (jail, shop, redactor), store = guards, rooms.store
    finder = Finder(jail, settings.own_inside, find_ripgrep(settings.search_path))
    files = WorkspaceFiles(jail, Trash(settings.state / "trash"), SeenBy(store), finder)
    return Ports(
        files=lambda session, demand, profile: files.granted(demand, SeenBy(store, session.key), profile),
        processes=shop.granted,
        network=for_tools(found.library.config.network),
        belongings=lambda session: rooms.keeping.owned(session.id),
        person=partial(
            Reached,
            store,
            *(partial(one, settings.search_path, settings.home) for one in (signature, ignored, own_hooks)),
        ),
        records=partial(remembered, store),
        index=WorkspaceIndex(jail, settings.index, time.time_ns),
        memory=memory.of,
        progress=partial(telling, redactor),
    )


def pipeline(
    found: Law, settings: Settings, rooms: Rooms, guards: tuple[Jail, Workshop, Redactor], conversation: str
) -> Pipeline:
    jail, shop, redactor = guards
    policy, store, sessions, postures = found.policy, rooms.store, rooms.sessions, rooms.postures
    ruling = rooms.ruling
    memory = ProjectMemory(store, redactor.redact)
    review = Review(store, shop.granted, second_look(found, store, redactor))
    course = Course(store, sessions, rooms.holds, postures.known, redactor, review, memory.learn)

    def desk(seat: Seat) -> MenuDesk:
        return MenuDesk(seat, sessions, ruling.policy, lambda: postures.known(seat.session.principal), course)

    return Pipeline(
        ruling=ruling,
        postures=postures,
        finding=Finding(ruling, sessions, desk, str(settings.workspace), jail.leads, jail.beneath),
        recorder=Recorder(
            store,
            counting(ruling),
            conversation,
            redactor.redact,
            rooms.noticed,
            Binding(jail, redactor),
        ),
        approvals=Approvals(store, rooms.clock, redactor, trust(found.library.config), settings.approval_seconds),
        course=course,
        showing=Showing(redactor, swept(settings)),
        ports=ports(found, settings, rooms, guards, memory),
        desk=desk,
        run_memory=RunMemory(store, found.library.config.folding),
        phases=PhaseLogs(store, policy),
        live_calls=rooms.live_calls,
        failed=lambda tool, fault: rooms.failed(f"the tool {tool}", fault),
    )
