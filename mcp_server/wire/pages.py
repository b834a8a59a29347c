"""What is a web page told that may call this server?

Its browser asks before it lets the page call, and then shows it no more of an answer than the answer allows.
"""

from collections.abc import Mapping

from starlette.types import Message, Scope, Send

ABOUT = [
    (b"access-control-expose-headers", b"mcp-session-id, www-authenticate"),
    (b"vary", b"origin"),
]


def asks_first(scope: Scope, headers: Mapping[str, str]) -> bool:
    """The browser's own question, which carries no token."""
    return scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


async def permit(headers: Mapping[str, str], send: Send) -> None:
    """Whatever the page wants to send: its Origin was compared, and the call itself needs the token."""
    told = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", headers.get("access-control-request-headers", "").encode("latin-1")),
        (b"access-control-max-age", b"600"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": told})
    await send({"type": "http.response.body"})


def shown(origin: str | None, send: Send) -> Send:
    """Answers that a page of this Origin may read."""
    if origin is None:
        return send
    told = [(b"access-control-allow-origin", origin.encode("latin-1")), *ABOUT]

    async def sending(message: Message) -> None:
        begins = message["type"] == "http.response.start"
        await send({**message, "headers": [*message["headers"], *told]} if begins else message)

    return sending
