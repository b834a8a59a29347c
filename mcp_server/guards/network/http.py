"""How is an HTTP request sent? One at a time through `Egress`, within limits.

Loaded with the first request, because loading the HTTP library takes longer than a server may take to start.
"""

import asyncio
import ssl
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anyio
import httpcore2

from mcp_server.guards.network.egress import Egress, Streams, close_writer
from mcp_server.model.network import Request, Response
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_printable_ascii
from mcp_server.model.web_address import BadWebAddress, WebAddress, parse_web_address


class EgressStream(httpcore2.AsyncNetworkStream):
    """A connection made by `Egress`, as the HTTP library expects it."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            self._writer.write(buffer)
            await self._writer.drain()

    async def aclose(self) -> None:
        await close_writer(self._writer)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._writer.get_extra_info("ssl_object") if info == "ssl_object" else None


@dataclass
class EgressBackend(httpcore2.AsyncNetworkBackend):
    """Connects for the HTTP library, which never looks up a name itself."""

    egress: Egress

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return EgressStream(await self.egress.connect(host, port))

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise AssertionError("we never ask for a Unix socket")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def load_trust_context() -> ssl.SSLContext:
    """Load the certificates that this machine trusts."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def fetch(
    egress: Egress, request: Request, load_trust: Callable[[], ssl.SSLContext] = load_trust_context
) -> Response:
    address = read_web_address(request.url)
    context = load_trust() if address.scheme == "https" else None
    try:
        with anyio.fail_after(request.seconds):
            async with httpcore2.AsyncConnectionPool(
                ssl_context=context, network_backend=EgressBackend(egress)
            ) as pool:
                return await _send_request(pool, address, request)
    except TimeoutError:
        raise _build_refusal(
            Code.TIMEOUT, f"The server did not send its whole response within {request.seconds:g} s.", "Try again."
        ) from None
    except (ssl.SSLError, ssl.CertificateError) as error:
        raise _build_refusal(
            Code.TOOL_FAILED, f"The server's certificate is not trusted: {to_printable_ascii(str(error))}."
        ) from None
    except (OSError, httpcore2.ProtocolError, httpcore2.NetworkError, asyncio.IncompleteReadError) as error:
        reason = to_printable_ascii(str(error)) or "no reason given"
        raise _build_refusal(Code.TOOL_FAILED, f"The connection was lost: {reason}.") from None


async def _send_request(pool: httpcore2.AsyncConnectionPool, address: WebAddress, request: Request) -> Response:
    own_names = {name.lower() for name, _ in request.headers}
    defaults = [("Host", address.authority), ("Accept-Encoding", "identity"), ("User-Agent", "menugate")]
    if request.body:
        defaults.append(("Content-Length", str(len(request.body))))
    headers = [*((name, value) for name, value in defaults if name.lower() not in own_names), *request.headers]
    url = httpcore2.URL(scheme=address.scheme, host=address.host, port=address.port, target=address.target)
    async with pool.stream(request.method, url, headers=headers, content=request.body or None) as response:
        response_headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers
        ]
        assert isinstance(response.stream, AsyncIterable)
        body, truncated = await _read_body(response.aiter_stream(), request.most_bytes)
        return Response(response.status, response_headers, body, truncated)


async def _read_body(chunks: AsyncIterable[bytes], max_bytes: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def read_web_address(url: str) -> WebAddress:
    """Read a URL that may be fetched, or refuse it and say why."""
    try:
        return parse_web_address(url)
    except BadWebAddress as fault:
        raise _build_refusal(Code.INVALID_ARGUMENTS, str(fault), fault.way_out) from None


def _build_refusal(code: Code, message: str, way_out: str = "") -> Refusal:
    return Refusal(Problem(code, message, way_out))
