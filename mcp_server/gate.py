"""What stands behind the gate? Every port a call may reach, built once and handed to the pipeline."""

import os
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp_server.calls.approval_binding import Binding
from mcp_server.calls.approvals import Approvals, trust
from mcp_server.calls.context import Ports
from mcp_server.calls.documents import remembered
from mcp_server.calls.ledger import Recorder, counting
from mcp_server.calls.live_sessions import Seat
from mcp_server.calls.memory import ProjectMemory
from mcp_server.calls.menus import MenuDesk
from mcp_server.calls.messages import Reached
from mcp_server.calls.pauses import Holds
from mcp_server.calls.phases import PhaseLogs
from mcp_server.calls.pipeline import Pipeline
from mcp_server.calls.policy import Ruling
from mcp_server.calls.postures import Postures
from mcp_server.calls.resolver import Finding
from mcp_server.calls.results import Showing, telling
from mcp_server.calls.reviews import Check, Review, Run, Seen
from mcp_server.calls.runs import Course
from mcp_server.calls.session_objects import Keeping
from mcp_server.calls.sessions import SeenBy, Sessions
from mcp_server.calls.stops import LiveCalls, start
from mcp_server.calls.summaries import RunMemory
from mcp_server.config.load import Law
from mcp_server.guards.atomic import Trash
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.index.index import WorkspaceIndex
from mcp_server.guards.jail import Jail
from mcp_server.guards.network.build import for_programs, for_tools, to_one
from mcp_server.guards.processes.build import workshop
from mcp_server.guards.processes.commands import Workshop
from mcp_server.guards.processes.git_identity import ignored, own_hooks, signature
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sandbox.access import Ground
from mcp_server.guards.search.ripgrep_run import find_ripgrep
from mcp_server.guards.search.search import Finder
from mcp_server.guards.spill import ONE_DAY_NS, Spill
from mcp_server.installation import installation
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.results import Refusal
from mcp_server.model.tools import Demand, Effect
from mcp_server.settings import Settings, variable
from mcp_server.state.engine.rows import Clock, Judged
from mcp_server.state.store import Store


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
        from mcp_server.calls.advisers import Reviewer

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
