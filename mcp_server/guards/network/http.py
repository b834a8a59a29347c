"""How does a tool send an HTTP request? The `Network` port: one request through `Egress`, within its limits.

Loaded with the first request, because the HTTP library takes longer to load than a server may take to start.
"""

import asyncio
import ssl
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpcore2

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress, Streams
from mcp_server.guards.network.proxy import close_writer
from mcp_server.guards.refusals import build_not_granted_refusal
from mcp_server.model.network import Request, Response
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_printable_ascii
from mcp_server.model.tools import Demand, Effect

# What may this call do with the network? `Egress`, limited to the call's grant.

READING = frozenset({"GET", "HEAD"})
REACHING = frozenset(
    {Effect.BROWSER_ACT, Effect.REMOTE_WRITE, Effect.PRODUCTION_MUTATION, Effect.DELEGATE, Effect.SPEND}
)
"""Effects that by definition do more out there than read."""


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """The `Stream` port over a connection made by `Egress`."""

    streams: Streams

    async def read(self, most: int) -> bytes:
        return await self.streams[0].read(most)

    async def write(self, data: bytes) -> None:
        self.streams[1].write(data)
        await self.streams[1].drain()

    async def close(self) -> None:
        await close_writer(self.streams[1])


@dataclass(frozen=True, slots=True)
class CallNetwork:
    """The `Network` port. Without a grant it reaches nothing."""

    door: Egress
    demand: Demand

    async def fetch(self, request: Request) -> Response:
        if request.method in READING:
            self._require_granted(self.demand.effect in REACHING | {Effect.READ_REMOTE}, "reading from the network")
        else:
            self._require_granted(self.demand.effect in REACHING, f"sending `{request.method}` over the network")

        try:
            return await fetch(self.door, request)
        except (DestinationClosed, DestinationUnreached) as refused:
            raise refusal_from_failure(refused) from None

    async def connect(self, host: str, port: int) -> OpenConnection:
        self._require_granted(self.demand.effect in REACHING, "a connection over the network")
        try:
            return OpenConnection(await self.door.connect(host, port))
        except (DestinationClosed, DestinationUnreached) as refused:
            raise refusal_from_failure(refused) from None

    def _require_granted(self, granted: bool, what: str) -> None:
        if not granted:
            raise build_not_granted_refusal(f"This call was not granted {what}.")


def refusal_from_failure(refused: DestinationClosed | DestinationUnreached) -> Refusal:
    if isinstance(refused, DestinationClosed):
        return Refusal(Problem(Code.NETWORK_REFUSED, str(refused), refused.way_out))
    return Refusal(Problem(Code.TOOL_FAILED, str(refused), "Check the name, or ask again later."))


WEB = ("http", "https")


class Connection(httpcore2.AsyncNetworkStream):
    """A connection made by `Egress`, in the form the library expects."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            self._writer.write(buffer)
            await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()
        with suppress(OSError), anyio.move_on_after(1.0, shield=True):
            await self._writer.wait_closed()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._writer.get_extra_info("ssl_object") if info == "ssl_object" else None


@dataclass
class Through(httpcore2.AsyncNetworkBackend):
    """How the library connects: it never looks up a name itself."""

    door: Egress

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return Connection(await self.door.connect(host, port))

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise AssertionError("nobody asks for one")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def load_trust_context() -> ssl.SSLContext:
    """The certificates this machine trusts."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def fetch(door: Egress, request: Request, trust: Callable[[], ssl.SSLContext] = load_trust_context) -> Response:
    context = trust() if parse_scheme(request.url) == "https" else None
    try:
        with anyio.fail_after(request.seconds):
            async with httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=Through(door)) as pool:
                return await _send_request(pool, request)
    except TimeoutError:
        raise _build_refusal(
            Code.TIMEOUT, f"No whole answer came within {request.seconds:g} s.", "Ask again."
        ) from None
    except (ssl.SSLError, ssl.CertificateError) as wrong:
        raise _build_refusal(
            Code.TOOL_FAILED, f"The other end cannot be trusted: {to_printable_ascii(str(wrong))}."
        ) from None
    except (OSError, httpcore2.ProtocolError, httpcore2.NetworkError, asyncio.IncompleteReadError) as wrong:
        how = to_printable_ascii(str(wrong)) or "it says no more"
        raise _build_refusal(Code.TOOL_FAILED, f"The other end broke off: {how}.") from None


async def _send_request(pool: httpcore2.AsyncConnectionPool, request: Request) -> Response:
    given = {name.lower() for name, _ in request.headers}
    usual = [("Host", urlsplit(request.url).netloc), ("Accept-Encoding", "identity"), ("User-Agent", "menugate")]
    if request.body:
        usual.append(("Content-Length", str(len(request.body))))
    headers = [*((name, value) for name, value in usual if name.lower() not in given), *request.headers]
    async with pool.stream(request.method, request.url, headers=headers, content=request.body or None) as answer:
        found = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers]
        assert isinstance(answer.stream, AsyncIterable)
        body, cut = await _read_body(answer.aiter_stream(), request.most_bytes)
        return Response(answer.status, found, body, cut)


async def _read_body(pieces: AsyncIterable[bytes], most: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most:
            return bytes(body[:most]), True
    return bytes(body), False


def parse_scheme(url: str) -> str:
    """Return the scheme of a URL that may be fetched, or refuse and say why."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _build_refusal(
            Code.INVALID_ARGUMENTS, f"`{to_printable_ascii(url)}` is no URL.", "Write it as https://host/path."
        ) from None
    if parts.scheme not in WEB or not parts.hostname or port == 0:
        raise _build_refusal(
            Code.INVALID_ARGUMENTS,
            f"`{to_printable_ascii(url)}` is no address of the web.",
            "Only http:// and https:// are fetched.",
        )
    if "@" in parts.netloc:
        raise _build_refusal(
            Code.INVALID_ARGUMENTS, "The URL holds a name or a password.", "Leave out what stands before the `@`."
        )
    return parts.scheme


def _build_refusal(code: Code, message: str, way_out: str = "") -> Refusal:
    return Refusal(Problem(code, message, way_out))
