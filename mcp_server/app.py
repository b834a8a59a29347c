"""What stands when everything is built? The house, and how it is kept open.

What is behind the entrance is loaded for the first call: that is most of what there is.
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
from mcp_server.state.servers import STOP, mark_obeyed
from mcp_server.state.store import Store
from mcp_server.wire.notifications import Notifier
from mcp_server.wire.server import MenuServer

if TYPE_CHECKING:
    from mcp_server.calls.pipeline import Pipeline
    from mcp_server.calls.request import CallRequest
    from mcp_server.gate import Gate

AFTER_FIRST_LIST = 0.3
"""Seconds; hosts list at once, and what they call first waits for the state in any case."""


@dataclass
class LazyPipeline:
    """Where calls come in. What stands behind it is built for the first one: hosts start many servers, list what they
    have, and never call most of them."""

    build: Callable[[], "Gate"]
    sandbox: SandboxPolicy
    missing: Callable[[], None] = lambda: None
    """Called when there is found to be none."""
    run: "Callable[[CallRequest], Awaitable[Ending]]" = field(init=False)
    """Runs a call; the first one builds what stands behind."""

    def __post_init__(self) -> None:
        self.run = self._run_first

    @cached_property
    def gate(self) -> "Gate":
        built = self.build()
        # Asked for when it comes to that: over a network the gate stands before anybody says who is to hear of it.
        built.shop.ladder.missing = lambda: self.missing()
        freeze_garbage_collector()
        return built

    def open(self) -> None:
        """Now, and not for the first call: whoever serves a network has the time, and its clients have not."""
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
        """As long as nobody looked, a sandbox is hoped to hold."""
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
    """Everything, built and connected; `running()` opens what has to be open while it is used."""

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
    live_calls: RunningCalls
    server: MenuServer
    health: HealthResponse
    token: str | None
    """What a client has to show over HTTP; None where nobody is asked."""
    last_words: Callable[[], None] | None = None
    """What telemetry hands over at the end, where it is on."""

    @property
    def pipeline(self) -> "Pipeline":
        return self.entrance.gate.pipeline

    @asynccontextmanager
    async def open_for_use(self) -> AsyncGenerator[None, None]:
        loop = asyncio.get_running_loop()
        self.renewal.take_life_lock()
        changed = asyncio.Event()
        self.store.on_change(changed.set)
        self.store.on_change(self.live_calls.check_for_orders)
        if self.settings.http is None:
            # A host over stdio waits for its first list; the state's engine is loaded when it has got it.
            person = self.settings.person
            self.postures.assume(person, peek_posture_choice(self.settings.database, self.settings.secrets, person))
            loop.call_later(AFTER_FIRST_LIST, self.store.wake)
            # The first call needs to know; by then it is known.
            loop.call_later(AFTER_FIRST_LIST, lambda: loop.run_in_executor(None, find_linked_files))
        else:
            await self.store.wait_until_ready()
            self.entrance.open()
        # Understood before anybody is told that it is.
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
            # After the last child: until then each can be told whose it is.
            self.renewal.close()
            self.notices.close()
            await self.live_calls.close()
            await self.store.close()
            if self.last_words is not None:
                await to_thread.run_sync(self.last_words)

    async def _end_after_signal(self) -> None:
        """By a signal, because no order could be written."""
        if await self.live_calls.end_all():
            mark_obeyed(self.settings.state, os.getpid())

    async def _announce_changed_lists(self) -> None:
        """Some lists are others now: other rules hold, or no sandbox does, which was hoped until it was tried."""
        await self.notices.announce_outside_changes((), self.postures.get_known_principals())

    async def _follow_changes(self, changed: asyncio.Event) -> None:
        """Something changed, maybe in another process: take it over, and tell whoever looks at it."""
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
        """The state that was opened says whether it was as it was left; one that cannot be opened, every call says."""
        with suppress(Refusal):
            condition = await self.store.wait_until_ready()
            if ill := [*condition.alarms, *([condition.lost] if condition.lost else [])]:
                await self.health.respond_to_faults(ill)


def install_stop_handler(deed: Callable[[], object]) -> bool:
    """False where signals do not come, as beside the main thread."""
    try:
        asyncio.get_running_loop().add_signal_handler(STOP, deed)
    except (RuntimeError, ValueError):
        return False
    return True


def freeze_garbage_collector() -> None:
    """The house and its engine stand, and stay for good: the collector takes the rubble away and looks at them no more.

    Once they are among what it looks at, it stops everything for tens of milliseconds at moments of its choosing.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)
