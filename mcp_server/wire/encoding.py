"""How is a list that was prepared as bytes sent as those bytes, on our own transport and on the SDK's?

Over HTTP the SDK writes the answer itself, and takes a list of five hundred tools apart twice to do so. It gets a short
answer instead, and `HttpAccess` puts the prepared one in its place.
"""

from dataclasses import dataclass
from typing import Any

from mcp_types import JSONRPCResponse
from pydantic_core import PydanticSerializationError, to_json
from starlette.requests import Request
from starlette.types import Message, Scope, Send

from mcp_server.wire.listings import EncodedTools

SLOT = "menugate.outright"


@dataclass
class Slot:
    """Where a handler leaves the body for the ASGI layer that let its request in."""

    body: bytes | None = None
    begun: bool = False
    """The answer has already begun, as a stream: too late to replace it."""


def leave_answer(request: Request | None, request_id: str | int, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what to give the SDK: a short answer if the slot took the whole one, else the whole one."""
    slot = None if request is None else request.scope.get(SLOT)
    if not isinstance(slot, Slot) or slot.begun:
        return answer
    slot.body = encode_message(JSONRPCResponse(jsonrpc="2.0", id=request_id, result=answer))[:-1]
    return answer | {"tools": []}


def has_begun(scope: Scope) -> bool:
    """True if the answer to this request has begun."""
    slot = scope.get(SLOT)
    return isinstance(slot, Slot) and slot.begun


def make_replacing_send(scope: Scope, send: Send) -> Send:
    """Send the body from the slot instead of what the SDK made of the short answer."""
    slot = scope[SLOT] = Slot()

    async def send_prepared(message: Message) -> None:
        slot.begun = True
        await send(message if slot.body is None else _replace_message(message, slot.body))

    return send_prepared


def _replace_message(message: Message, body: bytes) -> Message:
    if message["type"] != "http.response.start":
        return {**message, "body": body}
    headers: list[tuple[bytes, bytes]] = [pair for pair in message["headers"] if pair[0] != b"content-length"]
    return {**message, "headers": [*headers, (b"content-length", str(len(body)).encode())]}


def encode_message(message: Any) -> bytes:
    """Encode a message as one line. A prepared list goes out as its prepared bytes."""
    if isinstance(message, JSONRPCResponse):
        head = b'{"jsonrpc":"2.0","id":' + to_json(message.id) + b',"result":'
        tools = message.result.get("tools")
        if isinstance(tools, EncodedTools):
            rest = {key: value for key, value in message.result.items() if key != "tools"}
            tail = b"," + to_json(rest)[1:] if rest else b"}"
            return head + b'{"tools":' + tools.json + tail + b"}\n"
        return head + _encode_json(message.result) + b"}\n"
    return _encode_json(message.model_dump(by_alias=True, exclude_unset=True)) + b"\n"


def _encode_json(value: Any) -> bytes:
    try:
        return to_json(value)
    except PydanticSerializationError:
        # There is a lone surrogate somewhere. The standard encoder writes it as an escape that every JSON reader takes.
        import json

        return json.dumps(value, separators=(",", ":")).encode()
