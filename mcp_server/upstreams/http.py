"""How do we talk to a server that runs elsewhere? Over Streamable HTTP or SSE, with the headers you configured.

The client's own credentials are never sent. A private address is reached for you alone; for other principals the
network guard decides, as it does for tools.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ClientMessageMetadata, SessionMessage

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http_transport import EgressTransport
from mcp_server.model.destinations import Destinations, parse_destinations
from mcp_server.model.upstreams import HttpTarget, HttpTransport
from mcp_server.upstreams.messages import (
    MAX_MESSAGE_BYTES,
    BrokenMessage,
    Incoming,
    LinkClosed,
    LoginRequired,
    Message,
    MessagePace,
)

CONNECT_SECONDS = 30.0
REFUSED = {401: "it answers 401 (unauthorized)", 403: "it answers 403 (forbidden)"}
Streams: TypeAlias = tuple[Any, Any]


@dataclass(eq=False)
class HttpLink:
    """Messages over one of the SDK's client transports."""

    reading: Any
    writing: Any
    statuses: Counter[int]
    """How often each HTTP status came."""
    _pace: MessagePace = field(default_factory=MessagePace)

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        metadata = ClientMessageMetadata(headers=dict(headers)) if headers else None
        try:
            await self.writing.send(SessionMessage(_to_sdk(message), metadata))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise LinkClosed("the connection was lost") from None

    async def receive(self) -> Incoming:
        try:
            item = await self.reading.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise LinkClosed("the connection was lost") from None
        await self._pace.count_message()
        if isinstance(item, Exception):
            return BrokenMessage("a response is not a JSON-RPC message")
        raise_if_login_required(self.statuses)
        return _from_sdk(item.message)


def _to_sdk(message: Message) -> types.JSONRPCMessage:
    if "method" not in message:
        if "error" in message:
            return types.JSONRPCError(jsonrpc="2.0", id=message["id"], error=types.ErrorData(**message["error"]))
        return types.JSONRPCResponse(jsonrpc="2.0", id=message["id"], result=message["result"])
    if "id" in message:
        return types.JSONRPCRequest(
            jsonrpc="2.0", id=message["id"], method=message["method"], params=message.get("params")
        )
    return types.JSONRPCNotification(jsonrpc="2.0", method=message["method"], params=message.get("params"))


def _from_sdk(message: types.JSONRPCMessage) -> Message:
    match message:
        case types.JSONRPCResponse():
            return {"id": message.id, "result": message.result}
        case types.JSONRPCError():
            error = message.error
            return {"id": message.id, "error": {"code": error.code, "message": error.message, "data": error.data}}
        case types.JSONRPCRequest():
            return {"id": message.id, "method": message.method, "params": message.params or {}}
        case types.JSONRPCNotification():
            return {"method": message.method, "params": message.params or {}}


def build_mount_egress(target: HttpTarget, operator_list: Destinations, trusted: bool) -> Egress:
    """`trusted`: for the user who configured the server. They reach it wherever it is, except where clouds keep their
    keys."""
    if not trusted:
        return Egress(None, operator_list)
    parts = urlsplit(target.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Egress(None, parse_destinations((f"0.0.0.0/0:{port}", f"[::]/0:{port}")))


@asynccontextmanager
async def open_http_link(target: HttpTarget, egress: Egress) -> AsyncGenerator[HttpLink, None]:
    statuses: Counter[int] = Counter()

    async def count_status(response: httpx2.Response) -> None:
        statuses[response.status_code] += 1

    transport = EgressTransport(egress, MAX_MESSAGE_BYTES, secure=target.url.lower().startswith("https:"))

    def build_client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={**target.headers, **(headers or {})},
            # Each call has a time limit of its own, and a stream of events may be silent for ever.
            timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
            transport=transport,
            event_hooks={"response": [count_status]},
            trust_env=False,
        )

    try:
        async with OPENERS[target.transport](target.url, build_client) as (reading, writing):
            yield HttpLink(reading, writing, statuses)
    except* httpx2.HTTPError as errors:
        raise_if_login_required(statuses)
        raise LinkClosed(describe_http_error(errors)) from None


def raise_if_login_required(statuses: Counter[int]) -> None:
    for status, reason in REFUSED.items():
        if statuses.pop(status, 0):
            raise LoginRequired(reason)


def describe_http_error(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answers {error.response.status_code}"
    return f"the connection failed: {str(error)[:200] or type(error).__name__}"


BuildClient: TypeAlias = Callable[..., httpx2.AsyncClient]


@asynccontextmanager
async def _open_streamable(url: str, build_client: BuildClient) -> AsyncGenerator[Streams, None]:
    async with (
        build_client() as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams[0], streams[1]


@asynccontextmanager
async def _open_sse(url: str, build_client: BuildClient) -> AsyncGenerator[Streams, None]:
    async with sse_client(url, httpx_client_factory=build_client) as streams:
        yield streams


OPENERS: Mapping[HttpTransport, Callable[[str, BuildClient], AbstractAsyncContextManager[Streams]]] = {
    HttpTransport.STREAMABLE: _open_streamable,
    HttpTransport.SSE: _open_sse,
}
