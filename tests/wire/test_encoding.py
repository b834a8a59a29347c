"""Does a client over HTTP get the list that was prepared, whoever wrote the rest of the answer?"""

import json

import pytest
from starlette.requests import Request
from starlette.types import Message, Scope

from mcp_server.wire.encoding import leave_answer, make_replacing_send
from mcp_server.wire.listings import EncodedTools

TOOLS = EncodedTools([{"name": "one"}, {"name": "two"}])
READY = {"tools": TOOLS, "ttlMs": 0}
JSON = [(b"content-type", b"application/json"), (b"content-length", b"12")]


async def told(early: bool) -> tuple[list[Message], dict[str, object]]:
    """What goes out, when the handler answers before or after the SDK has begun to write."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
    sending = make_replacing_send(scope, send)
    given = leave_answer(Request(scope), 7, READY) if early else {}
    await sending({"type": "http.response.start", "status": 200, "headers": JSON})
    given = given or leave_answer(Request(scope), 7, READY)
    await sending({"type": "http.response.body", "body": b"from the SDK"})
    return sent, given


@pytest.mark.anyio
async def test_the_prepared_answer_goes_out_in_place_of_the_short_one() -> None:
    (start, body), given = await told(early=True)
    assert given == {"tools": [], "ttlMs": 0}
    assert json.loads(body["body"]) == {"jsonrpc": "2.0", "id": 7, "result": READY}
    assert dict(start["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": str(len(body["body"])).encode(),
    }


@pytest.mark.anyio
async def test_a_stream_that_has_begun_is_left_alone() -> None:
    (start, body), given = await told(early=False)
    assert given == READY
    assert (start["headers"], body["body"]) == (JSON, b"from the SDK")


def test_without_a_door_the_whole_answer_is_given() -> None:
    assert leave_answer(None, 7, READY) is READY
    assert leave_answer(Request({"type": "http", "headers": []}), 7, READY) is READY
