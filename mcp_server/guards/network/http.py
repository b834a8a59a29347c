"""How is an HTTP request sent? Through `Egress`, hop by hop, within limits.

Loaded with the first request, because loading the HTTP library takes longer than a server may take to start.
"""

import asyncio
import re
import select
import ssl
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpcore2
from msgspec.structs import replace

from mcp_server.guards.network.certificates import load_trust_context
from mcp_server.guards.network.content_encoding import (
    BadEncoding,
    BodyDecoder,
    build_decoder,
    get_accepted_encodings,
)
from mcp_server.guards.network.egress import Egress, Streams, close_writer
from mcp_server.guards.network.redirects import Hop, find_next_hop
from mcp_server.guards.network.route import WebRoute
from mcp_server.model.network import Request, Response
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import to_printable_ascii
from mcp_server.model.web_address import BadWebAddress, WebAddress, parse_web_address

OURS = frozenset(
    (
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "proxy-authorization", "proxy-connection"),
    )
)
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e]{0,8192}")


class EgressStream(httpcore2.AsyncNetworkStream):
    """A connection made by `Egress`, as the HTTP library expects it."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await self._reader.read(max_bytes)
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            try:
                self._writer.write(buffer)
                await self._writer.drain()
            except OSError as error:
                raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        await close_writer(self._writer)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            # Of a connection that is kept: that the other side has closed it.
            return self._reader.at_eof() or _has_news(self._writer.get_extra_info("socket").fileno())
        return self._writer.get_extra_info("ssl_object") if info == "ssl_object" else None


def _has_news(socket: int) -> bool:
    """True if bytes, an end or a reset wait there that the event loop has not read yet."""
    if socket < 0:
        return True
    waiting = select.poll()
    waiting.register(socket, select.POLLIN)
    return bool(waiting.poll(0))


@dataclass
class EgressBackend(httpcore2.AsyncNetworkBackend):
    """Connects for the HTTP library, which never looks up a name itself."""

    egress: Egress
    proxy: WebAddress | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        # The operator's proxy may be anywhere, and nothing else is connected to if there is one.
        dial = self.egress.connect if self.proxy is None else self.egress.connect_to_proxy
        return EgressStream(await dial(host, port))

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise AssertionError("we never ask for a Unix socket")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


@dataclass
class HttpClient:
    """Sends the requests of one call, and keeps its connections until the call ends."""

    egress: Egress
    route: WebRoute = field(default_factory=WebRoute)
    load_trust: Callable[[str], ssl.SSLContext] = load_trust_context
    _pools: dict[str, httpcore2.AsyncConnectionPool] = field(
        default_factory=dict[str, httpcore2.AsyncConnectionPool], init=False
    )
    """By scheme: loading the trusted certificates takes longer than a whole request without them."""

    async def fetch(self, request: Request, check: Callable[[Hop], None] = lambda hop: None) -> Response:
        """`check` is asked before each hop, and may refuse it."""
        try:
            with anyio.fail_after(request.seconds):
                return await self._follow(Hop(read_web_address(request.url), request), check)
        except TimeoutError:
            raise _build_refusal(
                Code.TIMEOUT, f"The server did not send its whole response within {request.seconds:g} s.", "Try again."
            ) from None
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise _build_refusal(
                Code.TOOL_FAILED, f"The server's certificate is not trusted: {to_printable_ascii(str(error))}."
            ) from None
        except BadEncoding as error:
            raise _build_refusal(Code.TOOL_FAILED, f"The response cannot be read: {error}.") from None
        except (OSError, httpcore2.ProtocolError, httpcore2.NetworkError, asyncio.IncompleteReadError) as error:
            reason = to_printable_ascii(str(error)) or "no reason given"
            raise _build_refusal(Code.TOOL_FAILED, f"The connection was lost: {reason}.") from None

    async def close(self) -> None:
        while self._pools:
            await self._pools.popitem()[1].aclose()

    async def _follow(self, hop: Hop, check: Callable[[Hop], None]) -> Response:
        path = [hop]
        while True:
            check(path[-1])
            if self.route.proxy is not None:
                await self.egress.check_through_proxy(path[-1].address.host, path[-1].address.port)
            response = await self._send(path[-1])
            following = find_next_hop(path, response)
            if following is None:
                return response
            path.append(following)

    async def _send(self, hop: Hop) -> Response:
        address, request = hop.address, hop.request
        url = httpcore2.URL(scheme=address.scheme, host=address.host, port=address.port, target=address.target)
        pool = self._get_pool(address.scheme)
        async with pool.stream(
            request.method, url, headers=build_headers(hop), content=request.body or None
        ) as response:
            headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers]
            assert isinstance(response.stream, AsyncIterable)
            answer = Response(response.status, headers, b"", url=address.url)
            decoder = build_decoder(answer.header("content-encoding"))
            body, cut = await _read_body(response.aiter_stream(), decoder, request.most_bytes)
            return replace(answer, body=body, cut=cut)

    def _get_pool(self, scheme: str) -> httpcore2.AsyncConnectionPool:
        if scheme not in self._pools:
            proxy = self.route.proxy
            schemes = (scheme, proxy.scheme if proxy else "")
            context = self.load_trust(self.route.authorities) if "https" in schemes else None
            self._pools[scheme] = httpcore2.AsyncConnectionPool(
                ssl_context=context,
                network_backend=EgressBackend(self.egress, proxy),
                proxy=proxy and httpcore2.Proxy(proxy.origin, ssl_context=context if proxy.scheme == "https" else None),
            )
        return self._pools[scheme]


async def _read_body(chunks: AsyncIterable[bytes], decoder: BodyDecoder, max_bytes: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in chunks:
        for piece in decoder.decode(chunk):
            body += piece
            if len(body) > max_bytes:
                return bytes(body[:max_bytes]), True
    return bytes(body), not decoder.is_complete


def build_headers(hop: Hop) -> list[tuple[str, str]]:
    """Build the headers to send. What frames the request, and the host it is for, is never the tool's to say."""
    own = list(hop.request.headers)
    for name, value in own:
        if not HEADER_NAME.fullmatch(name) or name.lower() in OURS or not HEADER_VALUE.fullmatch(value):
            raise _build_refusal(
                Code.INVALID_ARGUMENTS,
                f"The header `{to_printable_ascii(name)}` cannot be sent.",
                "Use printable ASCII, and leave out headers about the host, the connection and the length.",
            )
    own_names = {name.lower() for name, _ in own}
    headers = [("Host", hop.address.authority)]
    defaults = (("Accept", "*/*"), ("Accept-Encoding", get_accepted_encodings()), ("User-Agent", "menugate"))
    headers += [pair for pair in defaults if pair[0].lower() not in own_names]
    if hop.request.body or hop.request.method in ("POST", "PUT", "PATCH"):
        headers.append(("Content-Length", str(len(hop.request.body))))
    return [*headers, *own]


def read_web_address(url: str) -> WebAddress:
    """Read a URL that may be fetched, or refuse it and say why."""
    try:
        return parse_web_address(url)
    except BadWebAddress as fault:
        raise _build_refusal(Code.INVALID_ARGUMENTS, str(fault), fault.way_out) from None


def _build_refusal(code: Code, message: str, way_out: str = "") -> Refusal:
    return Refusal(Problem(code, message, way_out))
