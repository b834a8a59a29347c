"""How does a sandboxed program reach the network? Through an HTTP proxy, by tunnels and by plain requests.

A refusal names the setting that would allow the host, in its body and in the status line that programs show. The log
records only host, port, outcome and two byte counts: never a path, a header or any content.
"""

import asyncio
import logging
import socket
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from msgspec import Struct

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress, close_writer
from mcp_server.guards.network.proxy_head import MAX_HEAD_BYTES, BadProxyRequest, ProxyHead, parse_head
from mcp_server.model.text import to_printable_ascii

CHUNK_BYTES = 1 << 16


class RelayLimits(Struct, frozen=True):
    head_seconds: float = 10.0
    idle_seconds: float = 120.0
    """Without a byte in either direction."""
    seconds: float = 3600.0
    bytes: int = 4 << 30
    """In both directions together."""
    connections: int = 128


@dataclass
class RelayedBytes:
    """How much one connection has carried so far."""

    up: int = 0
    down: int = 0
    cut_reason: str = ""
    """Why it was cut before both ends were done; empty if it was not."""


@dataclass
class Relay:
    """Copies bytes both ways between the program (`near`) and the host it reached (`far`), until one side ends or a
    limit is reached."""

    near: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    limits: RelayLimits
    traffic: RelayedBytes

    async def run(self) -> None:
        with anyio.move_on_after(self.limits.seconds) as time_limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._copy_one_way, self.near[0], self.far[1], "up", tasks.cancel_scope)
                tasks.start_soon(self._copy_one_way, self.far[0], self.near[1], "down", tasks.cancel_scope)
                tasks.start_soon(self._stop_when_idle, tasks.cancel_scope)
        if time_limit.cancelled_caught:
            self.traffic.cut_reason = "time"

    async def _copy_one_way(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, direction: str, scope: anyio.CancelScope
    ) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                setattr(self.traffic, direction, getattr(self.traffic, direction) + len(data))
                if self.traffic.up + self.traffic.down > self.limits.bytes:
                    self.traffic.cut_reason = "bytes"
                    break
                sink.write(data)
                await sink.drain()
        # Once the far end has finished, whatever the near end still sends goes nowhere.
        if direction == "down" or self.traffic.cut_reason:
            scope.cancel()
            return
        with suppress(OSError, RuntimeError):
            if sink.can_write_eof():
                sink.write_eof()

    async def _stop_when_idle(self, scope: anyio.CancelScope) -> None:
        """End the relay if nothing has moved for a while."""
        total = -1
        while total != self.traffic.up + self.traffic.down:
            total = self.traffic.up + self.traffic.down
            with anyio.move_on_after(self.limits.idle_seconds):
                await anyio.sleep_forever()
        self.traffic.cut_reason = "idle"
        scope.cancel()


DRAIN_SECONDS = 1.0
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
REASONS = {
    400: "Bad Request",
    403: "Not in network.allow of menugate.yaml",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Too many connections",
}
log = logging.getLogger("menugate.network")


@dataclass
class EgressProxy:
    """Serves any number of listening sockets; all connections go through the one `Egress`."""

    egress: Egress
    limits: RelayLimits = field(default_factory=RelayLimits)
    servers: list[asyncio.Server] = field(default_factory=list[asyncio.Server])
    """One for each socket it listens on."""
    _connections: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    async def serve(self, listener: socket.socket) -> asyncio.Server:
        """Start serving; takes ownership of the socket."""
        server = await asyncio.start_server(self._accept_connection, sock=listener, limit=MAX_HEAD_BYTES)
        self.servers.append(server)
        return server

    async def stop_serving(self, server: asyncio.Server) -> None:
        """Stop accepting connections; serve those already open to their end."""
        if server in self.servers:
            self.servers.remove(server)
        server.close()

    async def close(self) -> None:
        for server in self.servers:
            server.close()
        self.servers.clear()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._handle_connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._connections) > self.limits.connections:
                await send_response(writer, 503, "There are too many connections.", "Close some, or wait.")
            else:
                await self._handle_request(reader, writer)
            await drain_reader(reader, writer)
        except OSError:
            pass  # the client has disconnected, as it may
        finally:
            await close_writer(writer)

    async def _handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with anyio.fail_after(self.limits.head_seconds):
                head = parse_head((await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n"))
        except TimeoutError:
            return await send_response(writer, 408, "The request did not arrive in time.", "")
        except asyncio.LimitOverrunError:
            return await send_response(writer, 431, "The request's headers are too long.", "")
        except asyncio.IncompleteReadError:
            return None
        except BadProxyRequest as error:
            return await send_response(writer, 400, f"The proxy cannot answer this request: {error}.", "")
        try:
            far = await self.egress.connect(head.host, head.port)
        except DestinationClosed as error:
            log.info("refused %s:%d", to_printable_ascii(head.host), head.port)
            return await send_response(writer, 403, str(error), error.way_out)
        except DestinationUnreached as error:
            return await send_response(writer, 502, str(error), "")
        return await self._relay_bytes(head, (reader, writer), far)

    async def _relay_bytes(
        self,
        head: ProxyHead,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        traffic = RelayedBytes()
        try:
            (near if head.is_tunnel else far)[1].write(ESTABLISHED if head.is_tunnel else head.request_bytes)
            await Relay(near, far, self.limits, traffic).run()
        finally:
            log.info(
                "reached %s:%d, %d bytes up, %d down%s",
                to_printable_ascii(head.host),
                head.port,
                traffic.up,
                traffic.down,
                f", cut by {traffic.cut_reason}" if traffic.cut_reason else "",
            )
            await close_writer(far[1])


async def send_response(writer: asyncio.StreamWriter, status: int, message: str, way_out: str) -> None:
    body = f"menugate: {message}\n{way_out}\n".encode()
    writer.write(
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


async def drain_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read on for a moment: a client that is still sending when we hang up never reads our answer."""
    if writer.can_write_eof() and not writer.is_closing():
        writer.write_eof()
    with anyio.move_on_after(DRAIN_SECONDS):
        while await reader.read(CHUNK_BYTES):
            pass
