"""Which HTTP requests are accepted? Every request is checked here before anything else sees it.

Host and Origin are compared exactly, because a page in the person's browser can send requests to this port. The token
is checked before a byte of the body is read. The body is limited in size and time, and must be JSON that all parsers
read alike.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_server.wire.encoding import encode_message, has_begun, make_replacing_send
from mcp_server.wire.jsonrpc import NotStrict, make_no_answer, parse_message
from mcp_server.wire.revisions import get_revision_features

# For web pages that may call this server: the browser asks first (the preflight), and then shows the page only what the
# headers of an answer allow.

CORS_HEADERS = [
    (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
    (b"vary", b"origin"),
]


def is_preflight(scope: Scope, headers: Mapping[str, str]) -> bool:
    """True for the browser's own request before the page's, which carries no token."""
    return scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


async def answer_preflight(headers: Mapping[str, str], send: Send) -> None:
    """Allow every header the page asks for: its Origin was checked, and the call itself needs the token."""
    allowed = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", headers.get("access-control-request-headers", "").encode("latin-1")),
        (b"access-control-max-age", b"600"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": allowed})
    await send({"type": "http.response.body"})


def allow_origin(origin: str | None, send: Send) -> Send:
    """Let a page of this Origin read the answers."""
    if origin is None:
        return send
    extra = [(b"access-control-allow-origin", origin.encode("latin-1")), *CORS_HEADERS]

    async def send_with_headers(message: Message) -> None:
        is_start = message["type"] == "http.response.start"
        await send({**message, "headers": [*message["headers"], *extra]} if is_start else message)

    return send_with_headers


LONGEST_BODY = 4 * 1024 * 1024
LONGEST_HEADERS = 16 * 1024
ONCE = frozenset({"host", "origin", "authorization", "content-type", "content-length"})
OPEN = frozenset({"/healthz", "/readyz"})
WHOLE = "menugate.whole"
"""Marks the scope of a request that has arrived completely."""
METADATA = "/.well-known/"
"""Where clients without a token look for an authorization server. They get a 404: there is none."""


@dataclass(eq=False)
class HttpRefused(Exception):
    status: int
    reason: str
    code: int = -32600
    request_id: str | int | None = None


class HttpLimits(Struct, frozen=True):
    """How much may arrive, and how slowly."""

    head_seconds: float = 10.0
    body_seconds: float = 10.0
    unread_seconds: float = 30.0
    """How long a client may read nothing of its answer."""
    requests: int = 512
    """Requests being read or answered at the same time."""
    streams: int = 2000
    """Streams that stay open for messages of the server."""
    sessions: int = 2000
    sse: int = 200


class Admission(Struct, frozen=True):
    """Which requests are accepted."""

    hosts: frozenset[str]
    origins: frozenset[str]
    keys: Mapping[str, str]
    """SHA-256 of a token -> the principal it proves. Empty if nobody needs a token."""
    limits: HttpLimits = HttpLimits()


@dataclass
class RequestSlots:
    limit: int
    taken: int = 0

    def __enter__(self) -> None:
        if self.taken >= self.limit:
            raise HttpRefused(503, "too many requests at once; try again")
        self.taken += 1

    def __exit__(self, *_exception: object) -> None:
        self.taken -= 1


class HttpAccess:
    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self.app = app
        self.admission = admission
        self._requests = RequestSlots(admission.limits.requests)
        self._streams = RequestSlots(admission.limits.streams)
        self._stream_tasks: set[asyncio.Task[None] | None] = set()
        """The tasks of streams that stay open until one side leaves."""
        self._ending = False

    def end(self) -> None:
        """Close the streams, now and from now on. A client that waits for an answer gets a moment more."""
        self._ending = True
        for task in self._stream_tasks:
            if task is not None:
                task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            headers = self._check_headers(scope)
            send = allow_origin(headers.get("origin"), send)
            if is_preflight(scope, headers):
                await answer_preflight(headers, send)
                return
            if scope["path"] in OPEN or scope["path"].startswith(METADATA):
                await self.app(scope, receive, send)
                return
            self._check_token(scope, headers)
            # Take the slot before reading the body, because half a body takes memory too.
            with self._get_slots(scope, headers):
                if scope["method"] == "GET":
                    await self._keep_stream(scope, receive, send)
                else:
                    received = await self._check_body(scope, headers, receive) if scope["method"] == "POST" else receive
                    await self.app(scope, received, make_replacing_send(scope, send))
        except HttpRefused as refused:
            await _send_refusal(send, refused)
        except asyncio.CancelledError:
            if not self._ending:
                raise
            await _end_request(scope, send)

    async def _keep_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        self._stream_tasks.add(task)
        try:
            await self.app(scope, receive, make_replacing_send(scope, send))
        finally:
            self._stream_tasks.discard(task)

    def _check_headers(self, scope: Scope) -> dict[str, str]:
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        headers: dict[str, str] = {}
        size = 0
        for name, value in raw:
            size += len(name) + len(value)
            plain = name.decode("latin-1")
            if plain in ONCE and plain in headers:
                raise HttpRefused(400, f"the header `{plain}` appears twice")
            headers[plain] = value.strip().decode("latin-1")
        if size > LONGEST_HEADERS:
            raise HttpRefused(431, "the headers are too large")
        # The parser leaves spaces around values. `last-event-id` asks for a replay of events, which we do not keep; the
        # SDK would never answer, so the header is dropped and the stream starts from now.
        scope["headers"] = [(name, value.strip()) for name, value in raw if name != b"last-event-id"]
        if headers.get("host", "").lower() not in self.admission.hosts:
            raise HttpRefused(421, "this server does not answer to that Host")
        if (origin := headers.get("origin")) is not None and origin.lower() not in self.admission.origins:
            raise HttpRefused(403, "this Origin may not call this server")
        return headers

    def _get_slots(self, scope: Scope, headers: Mapping[str, str]) -> RequestSlots:
        """Count streams separately: they stay for hours and must not use up the slots of short requests."""
        lasting = scope["method"] == "GET" or headers.get("mcp-method") == "subscriptions/listen"
        return self._streams if lasting else self._requests

    def _check_token(self, scope: Scope, headers: Mapping[str, str]) -> None:
        keys = self.admission.keys
        if not keys:
            return
        kind, _, token = headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(token.encode("latin-1")).hexdigest()
        principal = next((name for key, name in keys.items() if hmac.compare_digest(key, digest)), None)
        if kind.lower() != "bearer" or principal is None:
            raise HttpRefused(401, "a bearer token is required; `menugate serve` prints where it is stored")
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))

    async def _check_body(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Receive:
        kind, _, parameters = headers.get("content-type", "").partition(";")
        if kind.strip().lower() != "application/json":
            raise HttpRefused(400, "the content type must be application/json")
        if parameters.strip() and parameters.strip().lower().replace('"', "") != "charset=utf-8":
            raise HttpRefused(415, "the charset must be utf-8")
        seconds = self.admission.limits.body_seconds
        try:
            # Most requests arrive whole, and need no timeout.
            async with nullcontext() if WHOLE in scope else asyncio.timeout(seconds):
                body = await _read_body(headers, receive)
        except TimeoutError:
            raise HttpRefused(408, f"the body did not arrive within {seconds:g} s") from None
        try:
            parse_message(body, whole=get_revision_features(headers.get("mcp-protocol-version")).connects)
        except NotStrict as fault:
            if fault.answers is not None:
                await self._end_unanswered_question(scope, receive, fault.answers)
            raise HttpRefused(400, fault.reason, fault.code, fault.request_id) from None
        return _replay_body(body, receive)

    async def _end_unanswered_question(self, scope: Scope, receive: Receive, question: str | int) -> None:
        """End the wait for this answer, which is refused. The app's response is dropped, because the refusal is sent
        instead."""

        async def drop_message(_message: Message) -> None:
            return None

        await self.app(scope, _replay_body(encode_message(make_no_answer(question)), receive), drop_message)


async def _read_body(headers: Mapping[str, str], receive: Receive) -> bytes:
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > LONGEST_BODY:
        raise HttpRefused(413, f"a body may have at most {LONGEST_BODY} bytes")
    body = bytearray()
    while True:
        part = await receive()
        if part["type"] != "http.request":
            raise HttpRefused(400, "the client disconnected before the body arrived")
        body += part.get("body", b"")
        if len(body) > LONGEST_BODY:
            raise HttpRefused(413, f"a body may have at most {LONGEST_BODY} bytes")
        if not part.get("more_body", False):
            return bytes(body)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Replay the body for the next reader, followed by the messages of the real connection."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


async def _end_request(scope: Scope, send: Send) -> None:
    """End a request that is cancelled because the server is shutting down."""
    if not has_begun(scope):
        await _send_refusal(send, HttpRefused(503, "this server has stopped"))
        return
    with suppress(RuntimeError):  # it had just ended by itself
        await send({"type": "http.response.body", "body": b""})


async def _send_refusal(send: Send, refused: HttpRefused) -> None:
    error = {"code": refused.code, "message": refused.reason}
    body = json.dumps({"jsonrpc": "2.0", "id": refused.request_id, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="menugate"'))
    if refused.status == 408:
        # Not for a body that is too large: closing before all of it has arrived would discard the answer.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
