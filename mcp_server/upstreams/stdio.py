"""How do we talk to a server that we started? Over its stdin and stdout, while its stderr goes to the mount's log."""

from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio

from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.upstream import UpstreamNotStarted, find_upstream_program, start_upstream
from mcp_server.guards.processes.walls import MountWalls, start_in_walls
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.upstreams.logs import UpstreamLog
from mcp_server.upstreams.messages import (
    BrokenMessage,
    Incoming,
    LineSplitter,
    LinkClosed,
    Message,
    MessagePace,
    encode_message,
    parse_messages,
)
from mcp_server.upstreams.packages.containers import ContainerStart
from mcp_server.upstreams.packages.start import check_package, find_started, find_walls

MAX_UNREAD_BYTES = 16 << 20
"""What may wait for a server that has stopped reading."""
CLOSE_SECONDS = 1.0
"""For a server to end by itself once its stdin is closed."""
GRACE_SECONDS = 0.5
"""For it to end after SIGTERM."""


@dataclass(eq=False)
class StdioLink:
    child: RunningChild
    _outbox: deque[bytes] = field(default_factory=deque[bytes])
    _unread: int = 0
    _written: anyio.Event = field(default_factory=anyio.Event)
    _splitter: LineSplitter = field(default_factory=LineSplitter)
    _ready: deque[Incoming] = field(default_factory=deque[Incoming])
    _pace: MessagePace = field(default_factory=MessagePace)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        data = encode_message(message)
        if self.child.code is not None:
            raise LinkClosed(self.describe_end())
        if self._unread + len(data) > MAX_UNREAD_BYTES:
            raise LinkClosed("it has stopped reading what menugate sends")
        if not self._unread and self.child.stdin is not None:
            data = data[self.child.stdin.write_at_once(data) :]
            if not data:
                return
        self._outbox.append(data)
        self._unread += len(data)
        self._written.set()

    async def write_outbox(self) -> None:
        """Write what the pipe did not take at once, in one task: a write that is cancelled half-way would garble the
        next message."""
        while True:
            await self._written.wait()
            self._written = anyio.Event()
            while self._outbox:
                data = self._outbox.popleft()
                if self.child.stdin is not None:
                    await self.child.stdin.write(data)
                self._unread -= len(data)

    async def receive(self) -> Incoming:
        while not self._ready:
            data = await self.child.out.read_piece()
            if not data:
                with anyio.move_on_after(CLOSE_SECONDS):
                    await self.child.wait()
                raise LinkClosed(self.describe_end())
            for line in self._splitter.feed(data):
                self._ready.extend([line] if isinstance(line, BrokenMessage) else parse_messages(line))
        await self._pace.count_message()
        return self._ready.popleft()

    def describe_end(self) -> str:
        code = self.child.code
        if code is None:
            return "it closed its output"
        if reason := self.child.tether.reason:
            return f"it could not start: {reason}"
        return f"signal {code - 128} ended it" if code > 128 else f"it ended with exit code {code}"

    async def stop(self) -> None:
        """Close its input, as the protocol asks; end what is left."""
        if self.child.stdin is not None:
            self.child.stdin.close()
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.child.wait()
        await self.child.kill(GRACE_SECONDS)
        self.child.close()


@asynccontextmanager
async def open_stdio_link(
    host: CommandHost, mount: Mount, target: StdioTarget, log: UpstreamLog
) -> AsyncGenerator[StdioLink, None]:
    try:
        start = ContainerStart(host, find_started(mount, target))
        await check_package(mount)
        child = await _start_child(host, start.target, find_walls(mount))
    except UpstreamNotStarted as error:
        raise LinkClosed(f"it could not start: {error}") from None
    link = StdioLink(child)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_collect_errors, child, log)
            tasks.start_soon(link.write_outbox)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    await link.stop()
                    await start.remove()
                tasks.cancel_scope.cancel()
    finally:
        log.flush()


async def _start_child(host: CommandHost, target: StdioTarget, walls: MountWalls | None) -> RunningChild:
    if walls is None:
        return await start_upstream(host, target.argv, target.env, target.folder)
    return await start_in_walls(host, find_upstream_program(host, target.argv, target.env, target.folder), walls)


async def _collect_errors(child: RunningChild, log: UpstreamLog) -> None:
    while child.err is not None and (piece := await child.err.read_piece()):
        with suppress(OSError):
            log.add(piece)
