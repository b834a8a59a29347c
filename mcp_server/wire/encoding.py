"""How does a list that was prepared as bytes go out as those bytes, on a wire of ours and on one of the SDK's?

Over HTTP the SDK writes the answer itself, and takes a list of five hundred tools apart twice to do so. It gets a short
answer instead, and the door puts the prepared one in its place.
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
    """Where a handler leaves the body for the door that let its request in."""

    body: bytes | None = None
    begun: bool = False
    """The answer has begun already, as a stream: then it is too late for another one."""


def leave_answer(request: Request | None, request_id: str | int, answer: dict[str, Any]) -> dict[str, Any]:
    """What to give the SDK: a short answer where the door has taken the whole one, else the whole one."""
    slot = None if request is None else request.scope.get(SLOT)
    if not isinstance(slot, Slot) or slot.begun:
        return answer
    slot.body = encode_message(JSONRPCResponse(jsonrpc="2.0", id=request_id, result=answer))[:-1]
    return answer | {"tools": []}


def has_begun(scope: Scope) -> bool:
    """Has the answer to this request begun?"""
    slot = scope.get(SLOT)
    return isinstance(slot, Slot) and slot.begun


def make_replacing_send(scope: Scope, send: Send) -> Send:
    """Send what was left in the slot in place of what the SDK made of the short answer."""
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
    """A message as one line. A prepared list goes out as the bytes it was prepared as."""
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
        # A lone surrogate somewhere: the standard encoder writes it as an escape that every JSON reader takes.
        import json

        return json.dumps(value, separators=(",", ":")).encode()
