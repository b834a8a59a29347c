"""What is behind the gate? Every port that a call may reach, built once and passed to the pipeline."""

import os
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp_server.calls.approval_binding import Binding
from mcp_server.calls.approvals import Approvals, build_answer_trust
from mcp_server.calls.context import PortFactories
from mcp_server.calls.documents import build_document_stores
from mcp_server.calls.ledger import LedgerRecorder, build_tool_counter
from mcp_server.calls.memory import ProjectMemory
from mcp_server.calls.menus import Navigators
from mcp_server.calls.messages import PersonChannel
from mcp_server.calls.pauses import Holds
from mcp_server.calls.phases import PhaseLogs
from mcp_server.calls.pipeline import Pipeline
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures
from mcp_server.calls.resolver import CallResolver
from mcp_server.calls.results import ResultFilter, wrap_progress
from mcp_server.calls.reviews import Check, CheckResult, FinishedRun, RunReview
from mcp_server.calls.runs import RunLifecycle
from mcp_server.calls.session_objects import ObjectRegistry
from mcp_server.calls.sessions import SeenBy, Sessions
from mcp_server.calls.stops import RunningCalls, register_child_process
from mcp_server.calls.summaries import SummarySchedule
from mcp_server.config.load import Configuration
from mcp_server.guards.atomic import Trash
from mcp_server.guards.files import WorkspaceFiles
from mcp_server.guards.index.index import WorkspaceIndex
from mcp_server.guards.jail import Jail
from mcp_server.guards.network.build import build_program_proxy, build_single_place_network, build_tool_network
from mcp_server.guards.processes.build import build_command_host
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.git_identity import find_hooks_folder, find_ignore_file, read_signature
from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.search.ripgrep_run import find_ripgrep
from mcp_server.guards.search.search import FileSearch
from mcp_server.guards.spill import ONE_DAY_NS, Spill
from mcp_server.installation import find_installation_places
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.results import Refusal
from mcp_server.model.tools import Demand, Effect
from mcp_server.settings import Settings, read_variable
from mcp_server.state.engine.rows import Clock, Judged
from mcp_server.state.store import Store


@dataclass(frozen=True)
class Rooms:
    """What the gate needs and what exists before the first call."""

    store: Store
    sessions: Sessions
    holds: Holds
    postures: CurrentPostures
    current_policy: CurrentPolicy
    clock: Clock
    keeping: ObjectRegistry
    secrets: tuple[str, ...]
    """Values that are never shown."""
    running_calls: RunningCalls
    notice: Callable[[Judged], None] | None
    failed: Callable[[str, BaseException], None]
    """Receives our own failures; no client ever sees them."""


@dataclass(frozen=True)
class Gate:
    """Everything that is built only for calls, on the first one."""

    pipeline: Pipeline
    shop: CommandHost
    redactor: Redactor


def build_host_paths(settings: Settings, found: Configuration) -> HostPaths:
    return HostPaths(
        workspace=settings.workspace,
        home=settings.home,
        private=settings.protected_places,
        # The programs installed together with menugate come last.
        search_path=os.pathsep.join((settings.search_path, sysconfig.get_path("scripts"))),
        variables=dict(settings.variables),
        outside=dict(settings.variables_outside),
        installation=find_installation_places(settings, found),
    )


def build_gate(found: Configuration, settings: Settings, rooms: Rooms, conversation: str) -> Gate:
    jail, shop = build_guards(found, settings)
    shop.nursery.born = register_child_process
    redactor = Redactor(rooms.secrets)
    return Gate(build_pipeline(found, settings, rooms, (jail, shop, redactor), conversation), shop, redactor)


def build_guards(found: Configuration, settings: Settings) -> tuple[Jail, CommandHost]:
    """Build what guards the disk against a call, and the machine against a command."""
    config = found.library.config
    where = build_host_paths(settings, found)
    installed = tuple(map(Path, where.find_installation_inside((str(settings.workspace),))))
    jail = Jail(
        settings.workspace, settings.protected_inside_workspace, (settings.state / "spill",), installation=installed
    )
    return jail, build_command_host(where, jail, config.sandbox, config.limits, build_program_proxy(config.network))


async def try_sandbox(found: Configuration, settings: Settings) -> tuple[str, str]:
    """Return which sandbox is available, in words, and whether that is `good`, a `note` or a `fault`. One command is
    run in it with the mounts of a real call, made from this workspace and these settings."""
    _, shop = build_guards(found, settings)
    posture = found.posture.cap_profile(found.policy.ceiling)
    profile = Profile.TRUSTED if posture.profile.covers(Profile.TRUSTED) else Profile.NORMAL
    says = await shop.ladder.describe_sandbox()
    if not shop.ladder.name:
        return says, "note"
    try:
        ran = await shop.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), profile).run(
            Command(("true",), seconds=10.0)
        )
    except Refusal as refused:
        return f"{says}; a command does not run in it: {refused.problem.message}", "fault"
    finally:
        await shop.close()
    return (says, "good") if ran.code == 0 else (f"{says}; `true` ends in it with exit code {ran.code}.", "fault")


def open_swept_spill(settings: Settings) -> Spill:
    spill = Spill(settings.state / "spill")
    spill.remove_old_files(ONE_DAY_NS, time.time_ns())
    return spill


def build_review_check(found: Configuration, store: Store, redactor: Redactor) -> Check | None:
    """Return the check that asks a model about a finished run; None if the operator named none, which is the
    default."""
    config = found.library.config
    wish = config.review
    if wish is None:
        return None

    async def look(run: FinishedRun) -> CheckResult:
        # Nobody needs it before a run is over.
        from mcp_server.calls.advisers import ModelAdviser

        door = build_single_place_network(wish.place, config.network)
        return await ModelAdviser(
            wish, read_variable(wish.key), door, store, redactor, found.words.render_prompt
        ).review_run(run)

    return look


def build_port_factories(
    found: Configuration,
    settings: Settings,
    rooms: Rooms,
    guards: tuple[Jail, CommandHost, Redactor],
    memory: ProjectMemory,
) -> PortFactories:
    (jail, shop, redactor), store = guards, rooms.store
    finder = FileSearch(jail, settings.protected_inside_workspace, find_ripgrep(settings.search_path))
    files = WorkspaceFiles(jail, Trash(settings.state / "trash"), SeenBy(store), finder)
    return PortFactories(
        files=lambda session, demand, profile: files.limit_to_grant(demand, SeenBy(store, session.key), profile),
        processes=shop.build_call_processes,
        network=build_tool_network(found.library.config.network),
        belongings=lambda session: rooms.keeping.build_session_objects(session.id),
        person=partial(
            PersonChannel,
            store,
            *(
                partial(one, settings.search_path, settings.home)
                for one in (read_signature, find_ignore_file, find_hooks_folder)
            ),
        ),
        records=partial(build_document_stores, store),
        index=WorkspaceIndex(jail, settings.index, time.time_ns),
        memory=memory.build_lookup,
        progress=partial(wrap_progress, redactor),
    )


def build_pipeline(
    found: Configuration,
    settings: Settings,
    rooms: Rooms,
    guards: tuple[Jail, CommandHost, Redactor],
    conversation: str,
) -> Pipeline:
    jail, shop, redactor = guards
    policy, store, sessions, postures = found.policy, rooms.store, rooms.sessions, rooms.postures
    current_policy = rooms.current_policy
    memory = ProjectMemory(store, redactor.redact)
    review = RunReview(store, shop.build_call_processes, build_review_check(found, store, redactor))
    runs = RunLifecycle(store, sessions, rooms.holds, postures.get_known, redactor, review, memory.learn)

    navigators = Navigators(current_policy, sessions, postures, runs)
    return Pipeline(
        current_policy=current_policy,
        postures=postures,
        resolver=CallResolver(
            current_policy, sessions, navigators, str(settings.workspace), jail.resolve_links, jail.list_beneath
        ),
        recorder=LedgerRecorder(
            store,
            build_tool_counter(current_policy),
            conversation,
            redactor.redact,
            rooms.notice,
            Binding(jail, redactor),
            policy.read_line,
        ),
        approvals=Approvals(
            store, rooms.clock, redactor, build_answer_trust(found.library.config), settings.approval_seconds
        ),
        runs=runs,
        result_filter=ResultFilter(redactor, open_swept_spill(settings)),
        ports=build_port_factories(found, settings, rooms, guards, memory),
        navigators=navigators,
        run_memory=SummarySchedule(store, found.library.config.folding),
        phases=PhaseLogs(store, policy),
        running_calls=rooms.running_calls,
        failed=lambda tool, fault: rooms.failed(f"the tool {tool}", fault),
    )
