"""How does a program that only knows proxies reach the network? Over HTTP: by tunnels and by plain requests.

A refusal says in its body, and in the status line that programs show, which setting would open the place. The log
records only the place, the outcome and two byte counts: never a path, a field or any content.
"""

import asyncio
import logging
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress
from mcp_server.guards.network.proxy_head import MOST_HEAD, BadProxyRequest, ProxyHead, parse_head
from mcp_server.model.text import to_printable_ascii

# How do bytes pass between two connections? Both ways at once, until one side ends or a limit is reached.

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class RelayLimits:
    head_seconds: float = 10.0
    idle_seconds: float = 120.0
    """Without a byte in either direction."""
    seconds: float = 3600.0
    bytes: int = 4 << 30
    """In both directions together."""
    connections: int = 128


@dataclass
class RelayedBytes:
    """What one connection has carried so far."""

    up: int = 0
    down: int = 0
    cut: str = ""
    """Why it was cut before both ends were done; empty if it was not."""


@dataclass
class Relay:
    """Copies between the program (`near`) and the place it reached (`far`)."""

    near: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    bounds: RelayLimits
    carried: RelayedBytes

    async def run(self) -> None:
        with anyio.move_on_after(self.bounds.seconds) as whole:
            async with anyio.create_task_group() as ways:
                ways.start_soon(self._copy_one_way, self.near[0], self.far[1], "up", ways.cancel_scope)
                ways.start_soon(self._copy_one_way, self.far[0], self.near[1], "down", ways.cancel_scope)
                ways.start_soon(self._stop_when_idle, ways.cancel_scope)
        if whole.cancelled_caught:
            self.carried.cut = "time"

    async def _copy_one_way(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: str, all_of_it: anyio.CancelScope
    ) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                setattr(self.carried, way, getattr(self.carried, way) + len(data))
                if self.carried.up + self.carried.down > self.bounds.bytes:
                    self.carried.cut = "bytes"
                    break
                sink.write(data)
                await sink.drain()
        # The far end has finished; whatever the near end still sends goes nowhere.
        if way == "down" or self.carried.cut:
            all_of_it.cancel()
            return
        with suppress(OSError, RuntimeError):
            if sink.can_write_eof():
                sink.write_eof()

    async def _stop_when_idle(self, all_of_it: anyio.CancelScope) -> None:
        """End the relay if nothing has moved for a while."""
        moved = -1
        while moved != self.carried.up + self.carried.down:
            moved = self.carried.up + self.carried.down
            with anyio.move_on_after(self.bounds.idle_seconds):
                await anyio.sleep_forever()
        self.carried.cut = "idle"
        all_of_it.cancel()


LINGER = 1.0
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

    door: Egress
    bounds: RelayLimits = field(default_factory=RelayLimits)
    _servers: list[asyncio.Server] = field(default_factory=list[asyncio.Server])
    _open: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    @property
    def socket_count(self) -> int:
        """How many sockets it listens on."""
        return len(self._servers)

    async def serve(self, listening: socket.socket) -> asyncio.Server:
        """Start serving; takes ownership of the socket."""
        server = await asyncio.start_server(self._accept_connection, sock=listening, limit=MOST_HEAD)
        self._servers.append(server)
        return server

    async def stop_serving(self, server: asyncio.Server) -> None:
        """Stop accepting connections; those already open are served to the end."""
        if server in self._servers:
            self._servers.remove(server)
        server.close()

    async def serve_loopback(self) -> int:
        """Listen on this machine only; return the port."""
        bound = socket.create_server(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        await self.serve(bound)
        return port

    async def serve_path(self, path: Path) -> None:
        """Listen on a socket in the file system that only its owner can open."""
        await self.serve(open_private_socket(path))

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    def _accept_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._handle_connection(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._open) > self.bounds.connections:
                await send_response(writer, 503, "There are too many connections at once.", "Close some, or wait.")
            else:
                await self._handle_request(reader, writer)
            await drain_reader(reader, writer)
        except OSError:
            pass  # the client went away, as it may
        finally:
            await close_writer(writer)

    async def _handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with anyio.fail_after(self.bounds.head_seconds):
                asked = parse_head((await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n"))
        except TimeoutError:
            return await send_response(writer, 408, "No whole request came in time.", "")
        except asyncio.LimitOverrunError:
            return await send_response(writer, 431, "The head of the request is too long.", "")
        except asyncio.IncompleteReadError:
            return None
        except BadProxyRequest as unreadable:
            return await send_response(writer, 400, f"This request is not answered: {unreadable}.", "")
        try:
            far = await self.door.connect(asked.host, asked.port)
        except DestinationClosed as refused:
            log.info("refused %s:%d", to_printable_ascii(asked.host), asked.port)
            return await send_response(writer, 403, str(refused), refused.way_out)
        except DestinationUnreached as failed:
            return await send_response(writer, 502, str(failed), "")
        return await self._relay_bytes(asked, (reader, writer), far)

    async def _relay_bytes(
        self,
        asked: ProxyHead,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        carried = RelayedBytes()
        try:
            (near if asked.is_tunnel else far)[1].write(ESTABLISHED if asked.is_tunnel else asked.onward)
            await Relay(near, far, self.bounds, carried).run()
        finally:
            log.info(
                "reached %s:%d, %d bytes up, %d down%s",
                to_printable_ascii(asked.host),
                asked.port,
                carried.up,
                carried.down,
                f", cut by {carried.cut}" if carried.cut else "",
            )
            await close_writer(far[1])


def open_private_socket(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(path))
    path.chmod(0o600)
    bound.listen(128)
    return bound


async def send_response(writer: asyncio.StreamWriter, status: int, message: str, way_out: str) -> None:
    body = f"menugate: {message}\n{way_out}\n".encode()
    writer.write(
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


async def drain_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A client still sending when we hang up never reads our answer, so read on for a moment and discard."""
    if writer.can_write_eof() and not writer.is_closing():
        writer.write_eof()
    with anyio.move_on_after(LINGER):
        while await reader.read(CHUNK):
            pass


async def close_writer(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError), anyio.move_on_after(1.0, shield=True):
        await writer.wait_closed()
