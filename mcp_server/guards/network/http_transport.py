"""How does an HTTP library reach the network? Through `Egress`, and no response is larger than it may be.

Loaded with the first request, like `http`.
"""

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import httpcore2
import httpx2

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress
from mcp_server.guards.network.http import EgressBackend, load_trust_context

EVENT_STREAM = "text/event-stream"
FAILURES = (OSError, ssl.SSLError, httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.TimeoutException)


@dataclass
class BoundedBody(httpx2.AsyncByteStream):
    source: AsyncIterable[bytes]
    close: Callable[[], Awaitable[None]]
    max_bytes: int | None
    """None for a stream of events, each of which is bounded by its reader."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        try:
            async for chunk in self.source:
                read += len(chunk)
                if self.max_bytes is not None and read > self.max_bytes:
                    raise httpx2.ReadError(f"the response is larger than {self.max_bytes >> 20} MB")
                yield chunk
        except FAILURES as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self.close()


class EgressTransport(httpx2.AsyncBaseTransport):
    def __init__(self, egress: Egress, max_bytes: int, secure: bool) -> None:
        self._max_bytes = max_bytes
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=load_trust_context() if secure else None, network_backend=EgressBackend(egress)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        url = request.url
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(sent)
        except (DestinationClosed, DestinationUnreached) as error:
            raise httpx2.ConnectError(str(error)) from error
        except FAILURES as error:
            raise httpx2.NetworkError(str(error) or type(error).__name__) from error
        assert isinstance(response.stream, AsyncIterable)
        headers = httpx2.Headers(response.headers)
        bound = None if headers.get("content-type", "").startswith(EVENT_STREAM) else self._max_bytes
        body = BoundedBody(response.stream, response.aclose, bound)
        return httpx2.Response(response.status, headers=headers, stream=body)

    async def aclose(self) -> None:
        await self._pool.aclose()
