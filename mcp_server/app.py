"""What does a running server consist of, and how is it opened and closed?

`LazyPipeline` loads most of it on the first call.
"""

import asyncio
import gc
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from msgspec import Struct

from mcp_server.calls.health import HealthResponse
from mcp_server.calls.messages import Replies
from mcp_server.calls.pauses import Holds
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures, PostureChanges
from mcp_server.calls.running_calls import RunningCalls
from mcp_server.calls.session_objects import ObjectRegistry
from mcp_server.calls.sessions import Sessions
from mcp_server.calls.stops import StopOrders
from mcp_server.config.load import Configuration
from mcp_server.installation import find_linked_files
from mcp_server.model.policy import SandboxState
from mcp_server.model.processes import SandboxPolicy
from mcp_server.model.results import Code, Ending, Problem, Refusal
from mcp_server.reload import ConfigurationReload
from mcp_server.settings import Settings
from mcp_server.state.engine.rows import Clock, Judged
from mcp_server.state.peek import peek_posture_choice
from mcp_server.state.servers import STOP_SIGNAL, mark_obeyed
from mcp_server.state.store import Store
from mcp_server.wire.notifications import Notifier
from mcp_server.wire.server import MenuServer

if TYPE_CHECKING:
    from mcp_server.calls.pipeline import Pipeline
    from mcp_server.calls.request import CallRequest
    from mcp_server.catalogues import CatalogueFollower
    from mcp_server.config.upstream_tools import MountedTools
    from mcp_server.config.upstreams import UpstreamFault
    from mcp_server.guards.jail import Jail
    from mcp_server.guards.processes.choose import SandboxChooser
    from mcp_server.guards.processes.commands import CommandHost
    from mcp_server.guards.redaction import Redactor
    from mcp_server.model.upstreams import Upstreams

AFTER_FIRST_LIST = 0.3
"""Seconds. Hosts list tools at once; their first call waits for the state in any case."""


@dataclass
class SandboxWatch:
    """Whether commands can be sandboxed; assumed true until a sandbox has been tried."""

    policy: SandboxPolicy
    chooser: "SandboxChooser | None" = None

    def get_state(self) -> SandboxState:
        if self.chooser is not None:
            return self.chooser.get_sandbox_state()
        return SandboxState.MISSING if self.policy is SandboxPolicy.OFF else SandboxState.THERE


@dataclass(frozen=True)
class LazyRedactor:
    """Removes secrets from texts; loads what it needs for the first text."""

    secrets: tuple[str, ...] = field(repr=False)

    @cached_property
    def _redactor(self) -> "Redactor":
        from mcp_server.guards.redaction import Redactor

        return Redactor(self.secrets)

    def load(self) -> "Redactor":
        return self._redactor

    def learn(self, values: Iterable[str]) -> None:
        self._redactor.learn(values)

    def redact(self, text: str) -> str:
        return self._redactor.redact(text)

    def redact_value(self, value: Any) -> Any:
        return self._redactor.redact_value(value)


@dataclass
class UpstreamPort:
    """The way to the servers behind menugate, which is built when a call or a list first needs it."""

    mounted: "MountedTools | None" = None
    """None if nothing was ever mounted."""
    build: "Callable[[MountedTools], CatalogueFollower] | None" = None
    _follower: "CatalogueFollower | None" = None
    _open: bool = False
    _logged: "tuple[UpstreamFault, ...]" = ()

    def set_up(
        self,
        mounted: "MountedTools | None",
        core: "Core",
        pipeline: "LazyPipeline",
        reload: ConfigurationReload,
        announce_resource: Callable[[str, str, str], Awaitable[None]],
    ) -> None:
        """`announce_resource` tells the clients of a principal that a resource has changed."""

        def build(mounted: "MountedTools") -> "CatalogueFollower":
            from mcp_server.catalogues import build_catalogue_follower  # most people mount nothing

            return build_catalogue_follower(mounted, core, pipeline, reload, announce_resource)

        self.mounted, self.build = mounted, build
        reload.follow_mounts = self.take_configuration

    @property
    def follower(self) -> "CatalogueFollower | None":
        if self._follower is None and self.mounted is not None and self.build is not None:
            self._follower = self.build(self.mounted)
        return self._follower

    @property
    def port(self) -> "Upstreams | None":
        return self.follower.servers if self.follower else None

    def take_configuration(self, configuration: Configuration) -> None:
        """Run the servers that are configured now."""
        self._log_faults(configuration)
        self.mounted = configuration.mounted
        if self._follower is not None and self.mounted is not None:
            self._follower.take_mounted(self.mounted)
        elif self._open:
            self.ask_unknown()

    def _log_faults(self, configuration: Configuration) -> None:
        upstreams = configuration.library.config.upstreams
        faults = (*upstreams.faults, *upstreams.warnings) if upstreams else ()
        if upstreams and faults != self._logged:
            from mcp_server.catalogues import log_upstream_faults

            log_upstream_faults(upstreams)
        self._logged = faults

    def find(self) -> "Upstreams | None":
        return self.port

    def ask_unknown(self) -> None:
        """Ask the servers that have never said what they offer."""
        self._open = True
        if self.follower:
            self.follower.ask_unknown()

    def end_session(self, session: str) -> None:
        """Stop what only this session used."""
        if self._follower is not None:
            self._follower.servers.end_session(session)

    async def close(self) -> None:
        if self._follower is not None:
            await self._follower.close()


class Core(Struct, frozen=True):
    """What exists before the first call."""

    store: Store
    clock: Clock
    new_id: Callable[[], str]
    holds: Holds
    replies: Replies
    posture_changes: PostureChanges
    current_policy: CurrentPolicy
    sessions: Sessions
    session_objects: ObjectRegistry
    running_calls: RunningCalls
    stop_orders: StopOrders
    sandbox: SandboxWatch
    redactor: LazyRedactor
    upstreams: UpstreamPort
    conversation: str
    """The fields that all ledger rows of this process share."""
    note_decision: Callable[[Judged], None] | None = None
    """Reports calls to telemetry, if it is on."""

    @property
    def postures(self) -> CurrentPostures:
        return self.posture_changes.postures


class Guards(Struct, frozen=True):
    """The guards between a call and the machine."""

    jail: "Jail"
    commands: "CommandHost"


@dataclass
class LazyPipeline:
    """Runs calls, and builds the pipeline for the first one. Hosts start many servers, list their tools, and never call
    most of them."""

    build_guards: Callable[[], Guards]
    build_pipeline: "Callable[[Guards], Pipeline]"
    sandbox: SandboxWatch
    missing: Callable[[], None] = lambda: None
    """Called when menugate finds that no sandbox works."""
    run: "Callable[[CallRequest], Awaitable[Ending]]" = field(init=False)
    """Runs a call; the first one builds the pipeline."""

    def __post_init__(self) -> None:
        self.run = self._run_first

    @cached_property
    def guards(self) -> Guards:
        guards = self.build_guards()
        self.sandbox.chooser = guards.commands.chooser
        # Looked up when needed: over HTTP the pipeline is built before `missing` is set.
        guards.commands.chooser.on_missing = lambda: self.missing()
        return guards

    @cached_property
    def pipeline(self) -> "Pipeline":
        pipeline = self.build_pipeline(self.guards)
        freeze_garbage_collector()
        return pipeline

    def open(self) -> None:
        """Build the pipeline at startup: over HTTP no client is waiting yet, and a later call would be slower."""
        _ = self.pipeline

    async def _run_first(self, asked: "CallRequest") -> Ending:
        try:
            self.run = self.pipeline.run
        except OSError as wrong:
            # The workspace may have moved since the server started; the next call tries again.
            says = (
                f"{wrong.filename or 'a file that menugate needs'} cannot be used ({wrong.strerror}), so nothing ran."
            )
            return Problem(Code.STORE_UNAVAILABLE, says, "Tell the user; the next call tries again.")
        return await self.run(asked)

    async def close(self) -> None:
        if "guards" in vars(self):
            await self.guards.commands.close()


@dataclass
class App:
    """The whole server, built and connected; `open_for_use` opens what must be open while it runs."""

    configuration: Configuration
    settings: Settings
    core: Core
    pipeline: LazyPipeline
    notifier: Notifier
    reload: ConfigurationReload
    server: MenuServer
    health: HealthResponse
    token: str | None
    """The token that clients must send over HTTP; None if none is required."""
    stop_telemetry: Callable[[], None] | None = None
    """Flushes telemetry at the end, if it is on."""

    @asynccontextmanager
    async def open_for_use(self) -> AsyncGenerator[None, None]:
        loop = asyncio.get_running_loop()
        self.reload.take_life_lock()
        changed = asyncio.Event()
        self.core.store.on_change(changed.set)
        self.core.store.on_change(self.core.stop_orders.check_for_orders)
        if self.settings.http is None:
            # A host over stdio is waiting for its first list; the state is opened after that.
            person = self.settings.person
            choice = peek_posture_choice(self.settings.database, self.settings.secrets, person)
            self.core.postures.assume(person, choice)
            loop.call_later(AFTER_FIRST_LIST, self.core.store.wake)
            # The first call needs this; start early so that it does not wait.
            loop.call_later(AFTER_FIRST_LIST, lambda: loop.run_in_executor(None, find_linked_files))
            loop.call_later(AFTER_FIRST_LIST, self.core.upstreams.ask_unknown)
        else:
            await self.core.store.wait_until_ready()
            self.pipeline.open()
            self.core.upstreams.ask_unknown()
        # Install the handler before announcing that the signal is understood.
        self.reload.stoppable = install_stop_handler(lambda: tasks.append(loop.create_task(self._end_after_signal())))
        works = (self._follow_changes(changed), self.core.session_objects.sweep_until_stopped(), self.reload.follow())
        tasks = [loop.create_task(work) for work in works]
        self.pipeline.missing = lambda: tasks.append(loop.create_task(self._announce_changed_lists()))
        self.reload.tell = self._announce_changed_lists
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await self._close()

    async def _close(self) -> None:
        # The clients are gone, but what they left may take seconds to end.
        self.core.running_calls.board.forget_clients()
        await self.core.session_objects.close()
        await self.core.upstreams.close()
        await self.pipeline.close()
        # After the last child has ended: until then a child must be able to find its server.
        self.reload.close()
        self.notifier.close()
        await self.core.stop_orders.close()
        await self.core.store.close()
        if self.stop_telemetry is not None:
            await to_thread.run_sync(self.stop_telemetry)

    async def _end_after_signal(self) -> None:
        """End everything because of a signal, which is sent when no order can be written."""
        if await self.core.stop_orders.end_all():
            mark_obeyed(self.settings.state, os.getpid())

    async def _announce_changed_lists(self) -> None:
        """Tell clients that their lists changed, because of new rules or because no sandbox works."""
        await self.notifier.announce_outside_changes((), self.core.postures.get_known_principals())

    async def _follow_changes(self, changed: asyncio.Event) -> None:
        """Follow changes to the state, including those by other processes, and notify clients whose list changed."""
        await changed.wait()
        freeze_garbage_collector()
        await self._report_health()
        while await changed.wait():
            changed.clear()
            await self.core.holds.refresh()
            await self.core.replies.refresh()
            moved = await self.core.sessions.refresh()
            await self.core.postures.refresh()
            await self.notifier.announce_outside_changes(moved, self.core.postures.pop_changed_principals())

    async def _report_health(self) -> None:
        """Report damage found when the state was opened. If it cannot be opened, every call says so."""
        with suppress(Refusal):
            condition = await self.core.store.wait_until_ready()
            if ill := [*condition.alarms, *([condition.lost] if condition.lost else [])]:
                await self.health.respond_to_faults(ill)


def install_stop_handler(handler: Callable[[], object]) -> bool:
    """Return False if signals cannot be handled, as outside the main thread."""
    try:
        asyncio.get_running_loop().add_signal_handler(STOP_SIGNAL, handler)
    except (RuntimeError, ValueError):
        return False
    return True


def freeze_garbage_collector() -> None:
    """Exclude what was built so far from garbage collection, because it lives as long as the process.

    Otherwise a full collection could stop the server for tens of milliseconds at any moment.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)
