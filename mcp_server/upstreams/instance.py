"""Is a server running? One task owns each instance: it starts the server, keeps its catalogue fresh, and ends it.

An instance starts with the first call that needs it and stops after a while without use. If it fails, the next call
starts it again; if it fails again and again, calls are answered at once until it is tried again.
"""

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.upstreams import Catalogue, Mount, UpstreamState, WireResult
from mcp_server.upstreams.catalogue import CatalogueReader, keep_lists
from mcp_server.upstreams.connection import Connection
from mcp_server.upstreams.handshake import agree
from mcp_server.upstreams.messages import Link, LinkClosed, LoginRequired
from mcp_server.upstreams.peer import UpstreamError
from mcp_server.upstreams.sharing.guest import build_connection
from mcp_server.upstreams.sharing.holder import open_to_guests
from mcp_server.upstreams.subscriptions import Subscriptions

MAX_STARTS = 4
SLOT_SECONDS = 5.0
"""A server that takes longer to start no longer counts as one of those that start at once: it is waiting."""
RELIST_SECONDS = 0.25
MAX_DELAY_SECONDS = 60.0
LOOK_SECONDS = 0.2
"""How soon a server that is to be stopped at once is, after its last call."""
GUEST_SECONDS = 5.0
"""Guests go by themselves when they are idle; the holder waits this much longer for them."""
PATIENCE_SECONDS = 2.0
"""A call waits this long for the next try; if that is further away, it is answered at once."""

STATE_GONE = "[menugate] The server `{name}` was started again; what it remembered of this session is gone."

log = logging.getLogger("menugate")


@dataclass
class InstanceEvents:
    """Whom an instance tells what."""

    on_catalogue: Callable[[Catalogue], None]
    on_state: Callable[[], None]
    on_updated: Callable[[str], None]


@dataclass(eq=False)
class UpstreamInstance:
    mount: Mount
    open_link: Callable[[], AbstractAsyncContextManager[Link]]
    slots: asyncio.Semaphore
    workspace: str
    events: InstanceEvents
    catalogue: Catalogue = field(default_factory=Catalogue)
    state: UpstreamState = UpstreamState.IDLE
    reason: str = ""
    since: int = field(default_factory=time.time_ns)
    used: float = field(default_factory=time.monotonic)
    users: int = 0
    """Calls that are running, or that wait for their answer to a question."""
    asks: bool = False
    """True once the server has asked the user something."""
    listed: anyio.Event = field(default_factory=anyio.Event)
    """Set once the lists were read after a start."""
    session: str = ""
    """The session that alone uses it; empty if it has no such session."""
    subscribers: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The sessions that watch a resource, by its URI. It is kept running for them."""
    starts: int = 0
    """How often it started."""
    guests: int = 0
    """Other processes that use it."""
    _connection: Connection | None = None
    _task: "asyncio.Task[None] | None" = None
    _ready: anyio.Event = field(default_factory=anyio.Event)
    _wake: anyio.Event = field(default_factory=anyio.Event)
    _stopping: bool = False
    _retiring: bool = False
    _failures: int = 0
    _noted_starts: int = 0
    _retry_at: float = 0.0

    async def connect(self) -> Connection:
        """Return the connection; start the server if it is not running."""
        while True:
            connection = self._connection
            if connection is not None and connection.peer.ended is None:
                return connection
            if connection is not None and self._task is not None:
                await asyncio.wait([self._task])  # it is ending
                continue
            if self._task is None:
                if self._retiring:
                    raise build_replaced_refusal(self.mount.name)
                wait = self._retry_at - time.monotonic()
                if wait > PATIENCE_SECONDS:
                    raise self.build_away_refusal()
                if wait > 0:
                    await anyio.sleep(wait)
                    continue
                self._start()
            await self._ready.wait()
            if self._connection is None:
                raise self.build_away_refusal()

    def build_away_refusal(self) -> Refusal:
        name, wait = self.mount.name, self._retry_at - time.monotonic()
        if self.state is UpstreamState.LOGIN:
            message = f"The server `{name}` asks for credentials: {self.reason}."
            return Refusal(
                Problem(
                    Code.UPSTREAM_LOGIN,
                    message,
                    f"Ask the user to give it a token: `headers:` of `{name}` under `mcpServers` in menugate.yaml, as "
                    '`Authorization: "Bearer ${secret:NAME}"`.',
                )
            )
        when = f" It is tried again in {math.ceil(wait)} s." if wait > PATIENCE_SECONDS else ""
        return Refusal(
            Problem(
                Code.UPSTREAM_AWAY,
                f"The server `{name}` cannot be reached: {self.reason or 'it is stopped'}.{when}",
                "Continue without it, or try again later.",
            )
        )

    def _start(self) -> None:
        self._ready, self._wake, self._stopping = anyio.Event(), anyio.Event(), False
        self.listed = anyio.Event()
        self._set_state(UpstreamState.STARTING)
        # Not in the context of the call that happens to start it: what belongs to that call ends with it.
        self._task = asyncio.get_running_loop().create_task(self._own(), context=contextvars.Context())

    def _set_state(self, state: UpstreamState, reason: str = "") -> None:
        self.state, self.reason, self.since = state, reason, time.time_ns()
        self.events.on_state()

    async def _own(self) -> None:
        """Own the server from its start to its end."""
        end: LinkClosed | None = None
        try:
            end = await self._serve()
        except Exception as error:
            end = find_reason(error)
            log.debug("the server %s failed", self.mount.name, exc_info=error)
        finally:
            connection, self._connection, self._task = self._connection, None, None
            if connection is not None:
                self.asks |= connection.asks
                connection.peer.close(end or LinkClosed("it was stopped"))
                if connection.answered:
                    self._failures = 0
            self._note_end(end)
            self._ready.set()
            self.listed.set()

    def _note_end(self, end: LinkClosed | None) -> None:
        if end is None:
            self._failures, self._retry_at = 0, 0.0
            self._set_state(UpstreamState.IDLE)
            return
        self._failures += 1
        delay = 0.0 if self._failures == 1 else min(2.0 ** (self._failures - 2), MAX_DELAY_SECONDS)
        self._retry_at = time.monotonic() + delay
        self._set_state(UpstreamState.LOGIN if isinstance(end, LoginRequired) else UpstreamState.AWAY, str(end))

    async def _serve(self) -> LinkClosed | None:
        """Serve until the end; return why it ended, or None if we ended it."""
        async with self._take_slot() as slot:
            with anyio.CancelScope(deadline=anyio.current_time() + self.mount.start_seconds) as limit:
                async with self.open_link() as link, anyio.create_task_group() as tasks:
                    connection = build_connection(self.mount, link, self.workspace, self._announce_update)
                    tasks.start_soon(self._receive, connection)
                    try:
                        connection.agreement = await agree(connection.peer, self.mount.era, self.mount.roots)
                    except (LinkClosed, UpstreamError) as error:
                        tasks.cancel_scope.cancel()
                        return find_reason(error)
                    limit.deadline = math.inf
                    connection.asks |= self.asks
                    slot()
                    self._connection, self.used = connection, time.monotonic()
                    self._set_state(UpstreamState.READY)
                    self._ready.set()
                    self.starts += 1
                    open_to_guests(link, self, connection)
                    tasks.start_soon(self._keep_catalogue, connection)
                    tasks.start_soon(Subscriptions(connection, self.subscribers).keep)
                    await self._wait_for_end(connection)
                    end = connection.peer.ended
                    # From here on no call may use it, although it takes a moment to end.
                    connection.peer.close(end or LinkClosed("it was stopped"))
                    tasks.cancel_scope.cancel()
                    return end
        if limit.cancelled_caught:
            return LinkClosed(f"it did not answer within {self.mount.start_seconds:g} s of its start")
        return None

    @asynccontextmanager
    async def _take_slot(self) -> AsyncGenerator[Callable[[], None], None]:
        """Wait until few enough servers start, and yield what frees the slot; it is free after a while in any case."""
        held = True

        def free() -> None:
            nonlocal held
            if held:
                held = False
                self.slots.release()

        await self.slots.acquire()
        timer = asyncio.get_running_loop().call_later(SLOT_SECONDS, free)
        try:
            yield free
        finally:
            timer.cancel()
            free()

    async def _receive(self, connection: Connection) -> None:
        await connection.peer.run()
        self._wake.set()

    async def _wait_for_end(self, connection: Connection) -> None:
        while connection.peer.ended is None and not self._stopping:
            idle = self.mount.idle_seconds + (GUEST_SECONDS if self.guests else 0)
            idle = 0.0 if self._retiring else idle
            if self.users or (self.subscribers and not self._retiring):
                # A call that ends wakes nobody, so look again when it could have been idle for long enough.
                left = max(idle, LOOK_SECONDS)
            elif (left := idle - (time.monotonic() - self.used)) <= 0:
                return
            self._wake = anyio.Event()
            with anyio.move_on_after(left):
                await self._wake.wait()

    def hold(self) -> None:
        """Keep it from being stopped as unused."""
        self.users += 1

    def release(self) -> None:
        self.users -= 1
        self.used = time.monotonic()
        if self._retiring and not self.users:
            self._wake.set()

    def add_guest(self) -> None:
        """Another process uses it from now on, for as long as it would keep one of its own without a call."""
        self.guests += 1
        self.used = time.monotonic()

    def remove_guest(self) -> None:
        self.guests -= 1
        self._wake.set()

    def add_note(self, method: str, result: WireResult) -> WireResult:
        """Tell a session once that its server was started again, and so knows nothing of earlier calls."""
        if not self.session or self.starts == self._noted_starts or method != "tools/call":
            return result
        first, self._noted_starts = not self._noted_starts, self.starts
        if first:
            return result
        content: Any = result.get("content")
        note = {"type": "text", "text": STATE_GONE.format(name=self.mount.name)}
        return {**result, "content": [note, *(cast(list[Any], content) if isinstance(content, list) else [])]}

    async def subscribe(self, uri: str, session: str) -> None:
        connection = await self.connect()
        self.subscribers.setdefault(uri, set()).add(session)
        connection.resubscribe.set()
        await connection.wait_until_watched(uri)

    def unsubscribe(self, session: str, uri: str | None = None) -> None:
        """Stop watching one resource for the session, or all."""
        for one in [uri] if uri is not None else list(self.subscribers):
            sessions = self.subscribers.get(one, set())
            sessions.discard(session)
            if not sessions:
                self.subscribers.pop(one, None)
        if self._connection is not None:
            self._connection.resubscribe.set()
        self._wake.set()

    def _announce_update(self, uri: str) -> None:
        """The server hears later that nobody watches any more, and what it sent before is still under way."""
        if uri in self.subscribers:
            self.events.on_updated(uri)

    async def _keep_catalogue(self, connection: Connection) -> None:
        """Read the lists, and again what changes, at most four times a second."""
        while True:
            connection.changed = anyio.Event()
            lists, announced = frozenset(connection.stale), frozenset(connection.announced)
            connection.stale.clear()
            connection.announced.clear()
            if lists:
                try:
                    with anyio.fail_after(self.mount.call_seconds):
                        reader = CatalogueReader(connection.peer, connection.agreement)
                        read = await reader.read(self.catalogue, lists, time.time_ns())
                    self._take_catalogue(read, announced)
                except (LinkClosed, TimeoutError):
                    connection.peer.faults["its lists could not be read"] += 1
                self.listed.set()
                await anyio.sleep(RELIST_SECONDS)
            await connection.changed.wait()

    def _take_catalogue(self, read: Catalogue, announced: frozenset[str]) -> None:
        self.catalogue = keep_lists(self.catalogue, read, announced)
        self.events.on_catalogue(self.catalogue)

    async def stop(self) -> None:
        task, self._stopping = self._task, True
        self._wake.set()
        if task is not None:
            if not self._ready.is_set():
                task.cancel()
            await asyncio.wait([task])

    async def retire(self) -> None:
        """Finish the calls that it has, then stop. It is not started again."""
        self._retiring = True
        task = self._task
        if not self.users or task is None:
            await self.stop()
        else:
            self._wake.set()
            await asyncio.wait([task])


def build_replaced_refusal(name: str) -> Refusal:
    message = f"The user has removed or changed the server `{name}`, and the call did not reach it."
    return Refusal(Problem(Code.UPSTREAM_AWAY, message, "Look at the tools there are now, then call again."))


def find_reason(error: BaseException) -> LinkClosed:
    """Find out what went wrong, from the innermost error, in words for the user."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, LinkClosed):
        return error
    if isinstance(error, UpstreamError):
        return LinkClosed(f"it answered the handshake with an error: {error.message[:200] or error.code}")
    return LinkClosed(f"{type(error).__name__}: {str(error)[:200]}" if str(error) else type(error).__name__)
