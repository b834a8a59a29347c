"""How do two processes exchange messages over a socket? As lines of JSON, like a server over its stdin and stdout."""

import asyncio
import contextvars
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from mcp_server.upstreams.messages import (
    BrokenMessage,
    Incoming,
    LineSplitter,
    LinkClosed,
    Message,
    encode_message,
    parse_messages,
)

MAX_UNREAD_BYTES = 32 << 20
"""What may wait for the other process to read it."""
READ_BYTES = 1 << 18


@dataclass(eq=False)
class MessageStream:
    connected: socket.socket
    reason: str = "the connection was lost"
    """Why it ended, for whoever reads or writes it afterwards."""
    heard: anyio.Event = field(default_factory=anyio.Event)
    """Set when anything arrives; whoever waits for it puts a new one here."""
    _splitter: LineSplitter = field(default_factory=LineSplitter)
    _ready: deque[Incoming] = field(default_factory=deque[Incoming])
    _outbox: deque[tuple[bytes, anyio.Event]] = field(default_factory=deque[tuple[bytes, anyio.Event]])
    _unread: int = 0
    _wake: anyio.Event = field(default_factory=anyio.Event)
    _ended: bool = False
    _last: anyio.Event | None = None
    _writing: "asyncio.Task[None] | None" = None

    @classmethod
    def open(cls, connected: socket.socket) -> "MessageStream":
        stream = cls(connected)
        # Not in the context of whoever happens to open it: it lasts longer.
        stream._writing = asyncio.get_running_loop().create_task(stream._write_outbox(), context=contextvars.Context())
        return stream

    def send(self, message: Message) -> anyio.Event:
        """Send it soon; the event is set once the system has it, or the connection has ended."""
        if self._ended:
            raise LinkClosed(self.reason)
        data, sent = encode_message(message), anyio.Event()
        if self._unread + len(data) > MAX_UNREAD_BYTES:
            self.end("the other process has stopped reading")
            raise LinkClosed(self.reason)
        self._outbox.append((data, sent))
        self._last = sent
        self._unread += len(data)
        self._wake.set()
        return sent

    async def send_now(self, message: Message) -> None:
        """Return once the system has it; raise `LinkClosed` if it may have not."""
        await self.send(message).wait()
        if self._ended:
            raise LinkClosed(self.reason)

    async def flush(self) -> None:
        """Return once the system has all of it, or the connection has ended."""
        if self._last is not None:
            await self._last.wait()

    async def _write_outbox(self) -> None:
        """Write in one task, because a write that is cancelled half-way would garble the next message."""
        loop = asyncio.get_running_loop()
        try:
            while not self._ended:
                while self._outbox:
                    data, sent = self._outbox.popleft()
                    try:
                        await loop.sock_sendall(self.connected, data)
                    finally:
                        sent.set()
                    self._unread -= len(data)
                self._wake = anyio.Event()
                await self._wake.wait()
        except OSError:
            pass
        finally:
            self.end(self.reason)

    async def receive(self) -> Incoming:
        while not self._ready:
            try:
                data = await asyncio.get_running_loop().sock_recv(self.connected, READ_BYTES)
            except OSError:
                data = b""
            if not data:
                self.end(self.reason)
                raise LinkClosed(self.reason)
            self.heard.set()
            for line in self._splitter.feed(data):
                self._ready.extend([line] if isinstance(line, BrokenMessage) else parse_messages(line))
        return self._ready.popleft()

    def end(self, reason: str) -> None:
        """End it for both sides; whoever reads or writes it gets to know."""
        if self._ended:
            return
        self.reason, self._ended = reason, True
        with suppress(OSError):
            self.connected.shutdown(socket.SHUT_RDWR)
        for _, sent in self._outbox:
            sent.set()
        self._outbox.clear()
        self._wake.set()

    async def close(self) -> None:
        """Give the socket back; nobody may read it any more."""
        self.end(self.reason)
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        self.connected.close()
