"""What does a running server consist of, and how is it opened and closed?

Most of it is behind `LazyPipeline` and loaded for the first call.
"""

import asyncio
import gc
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from anyio import to_thread

from mcp_server.calls.health import HealthResponse
from mcp_server.calls.pauses import Holds
from mcp_server.calls.posture import CurrentPostures
from mcp_server.calls.session_objects import ObjectRegistry
from mcp_server.calls.sessions import Sessions
from mcp_server.calls.stops import RunningCalls
from mcp_server.config.load import Configuration
from mcp_server.installation import find_linked_files
from mcp_server.model.policy import SandboxState
from mcp_server.model.processes import SandboxPolicy
from mcp_server.model.results import Code, Ending, Problem, Refusal
from mcp_server.reload import ConfigurationReload
from mcp_server.settings import Settings
from mcp_server.state.peek import peek_posture_choice
from mcp_server.state.servers import STOP_SIGNAL, mark_obeyed
from mcp_server.state.store import Store
from mcp_server.wire.notifications import Notifier
from mcp_server.wire.server import MenuServer

if TYPE_CHECKING:
    from mcp_server.calls.pipeline import Pipeline
    from mcp_server.calls.request import CallRequest
    from mcp_server.gate import Gate

AFTER_FIRST_LIST = 0.3
"""Seconds. Hosts list tools at once; their first call waits for the state in any case."""


@dataclass
class LazyPipeline:
    """Runs calls; builds the pipeline for the first one. Hosts start many servers, list their tools, and never call
    most of them."""

    build: Callable[[], "Gate"]
    sandbox: SandboxPolicy
    missing: Callable[[], None] = lambda: None
    """Called if it turns out that there is no sandbox."""
    run: "Callable[[CallRequest], Awaitable[Ending]]" = field(init=False)
    """Runs a call; the first one builds the gate."""

    def __post_init__(self) -> None:
        self.run = self._run_first

    @cached_property
    def gate(self) -> "Gate":
        built = self.build()
        # Looked up when needed: over HTTP the pipeline is built before `missing` is set.
        built.shop.ladder.missing = lambda: self.missing()
        freeze_garbage_collector()
        return built

    def open(self) -> None:
        """Build the pipeline now: a server over HTTP has the time at its start, and its clients do not later."""
        _ = self.gate

    async def _run_first(self, asked: "CallRequest") -> Ending:
        try:
            self.run = self.gate.pipeline.run
        except OSError as wrong:
            # The workspace may have been moved since the server started; the next call tries again.
            says = (
                f"{wrong.filename or 'a file that menugate needs'} cannot be used ({wrong.strerror}), so nothing ran."
            )
            return Problem(Code.STORE_UNAVAILABLE, says, "Tell the user; the next call tries again.")
        return await self.run(asked)

    def get_sandbox_state(self) -> SandboxState:
        """Until it is tried, a sandbox is assumed to work."""
        if self.is_built:
            return self.gate.shop.ladder.get_sandbox_state()
        return SandboxState.MISSING if self.sandbox is SandboxPolicy.OFF else SandboxState.THERE

    def redact(self, text: str) -> str:
        return self.gate.redactor.redact(text)

    @property
    def is_built(self) -> bool:
        return "gate" in vars(self)

    async def close(self) -> None:
        if self.is_built:
            await self.gate.shop.close()


@dataclass
class App:
    """The whole server, built and connected; `open_for_use` opens what must be open while it runs."""

    law: Configuration
    settings: Settings
    store: Store
    sessions: Sessions
    postures: CurrentPostures
    holds: Holds
    entrance: LazyPipeline
    notices: Notifier
    keeping: ObjectRegistry
    renewal: ConfigurationReload
    running_calls: RunningCalls
    server: MenuServer
    health: HealthResponse
    token: str | None
    """The token that clients must send over HTTP; None if none is required."""
    last_words: Callable[[], None] | None = None
    """Flushes telemetry at the end, if it is on."""

    @property
    def pipeline(self) -> "Pipeline":
        return self.entrance.gate.pipeline

    @asynccontextmanager
    async def open_for_use(self) -> AsyncGenerator[None, None]:
        loop = asyncio.get_running_loop()
        self.renewal.take_life_lock()
        changed = asyncio.Event()
        self.store.on_change(changed.set)
        self.store.on_change(self.running_calls.check_for_orders)
        if self.settings.http is None:
            # A host over stdio is waiting for its first list; the state is opened after that.
            person = self.settings.person
            self.postures.assume(person, peek_posture_choice(self.settings.database, self.settings.secrets, person))
            loop.call_later(AFTER_FIRST_LIST, self.store.wake)
            # The first call needs this; start early so that it does not wait.
            loop.call_later(AFTER_FIRST_LIST, lambda: loop.run_in_executor(None, find_linked_files))
        else:
            await self.store.wait_until_ready()
            self.entrance.open()
        # Install the handler before announcing that the signal is understood.
        self.renewal.stoppable = install_stop_handler(lambda: tasks.append(loop.create_task(self._end_after_signal())))
        works = (self._follow_changes(changed), self.keeping.sweep_until_stopped(), self.renewal.follow())
        tasks = [loop.create_task(work) for work in works]
        self.entrance.missing = lambda: tasks.append(loop.create_task(self._announce_changed_lists()))
        self.renewal.tell = self._announce_changed_lists
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await self.keeping.close()
            await self.entrance.close()
            # After the last child has ended: until then a child must be able to find its server.
            self.renewal.close()
            self.notices.close()
            await self.running_calls.close()
            await self.store.close()
            if self.last_words is not None:
                await to_thread.run_sync(self.last_words)

    async def _end_after_signal(self) -> None:
        """End everything because of a signal, which is sent when no order can be written."""
        if await self.running_calls.end_all():
            mark_obeyed(self.settings.state, os.getpid())

    async def _announce_changed_lists(self) -> None:
        """Lists changed: because of new rules, or because there is no sandbox after all."""
        await self.notices.announce_outside_changes((), self.postures.get_known_principals())

    async def _follow_changes(self, changed: asyncio.Event) -> None:
        """Follow changes of the state, maybe by another process, and notify clients whose list changed."""
        await changed.wait()
        freeze_garbage_collector()
        await self._report_health()
        while await changed.wait():
            changed.clear()
            await self.holds.refresh()
            moved = await self.sessions.refresh()
            await self.postures.refresh()
            await self.notices.announce_outside_changes(moved, self.postures.pop_changed_principals())

    async def _report_health(self) -> None:
        """Report damage found when the state was opened. If it cannot be opened, every call says so."""
        with suppress(Refusal):
            condition = await self.store.wait_until_ready()
            if ill := [*condition.alarms, *([condition.lost] if condition.lost else [])]:
                await self.health.respond_to_faults(ill)


def install_stop_handler(handler: Callable[[], object]) -> bool:
    """False if signals do not arrive, as outside the main thread."""
    try:
        asyncio.get_running_loop().add_signal_handler(STOP_SIGNAL, handler)
    except (RuntimeError, ValueError):
        return False
    return True


def freeze_garbage_collector() -> None:
    """Keep what was built so far out of every later collection: it stays for good.

    Otherwise a full collection would stop the server for tens of milliseconds at a moment of its own choosing.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)
