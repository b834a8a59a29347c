"""Does an answer reach its own request and nothing else, whatever a server sends?"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.upstreams.connection import Connection
from mcp_server.upstreams.handshake import Agreement
from mcp_server.upstreams.messages import Incoming, LinkClosed, Message
from tests.upstreams.ground import caller, script

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
METHODS = st.sampled_from(
    [
        *("ping", "roots/list", "elicitation/create", "sampling/createMessage"),
        *("notifications/progress", "notifications/message", "notifications/resources/updated"),
        *("notifications/subscriptions/acknowledged", "notifications/tools/list_changed", "notifications/cancelled"),
    ]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("progressToken", "progress", "level", "uri", "notifications", "requestId"), JSON),
        "notifications": st.fixed_dictionaries({"resourceSubscriptions": JSON}) | JSON,
    },
)
HOSTILE = st.fixed_dictionaries(
    {}, optional={"id": JSON, "method": METHODS | JSON, "params": PARAMS | JSON, "result": JSON, "error": JSON}
)


@dataclass
class Played:
    """A link that plays what a server sends."""

    messages: deque[Message]
    sent: list[Message] = field(default_factory=list[Message])

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        self.sent.append(message)

    async def receive(self) -> Incoming:
        await anyio.lowlevel.checkpoint()
        if not self.messages:
            raise LinkClosed("it ended")
        return self.messages.popleft()


@pytest.mark.heavy
@settings(deadline=None)
@given(st.lists(HOSTILE, max_size=8))
def test_nothing_that_a_server_sends_breaks_the_connection(messages: list[dict[str, Any]]) -> None:
    async def play() -> None:
        link = Played(deque([*messages, {"id": 1, "result": {"right": True}}]))
        connection = Connection(script("raw"), link, "file:///work", lambda _: None)
        connection.agreement = Agreement("2025-06-18")
        request = await connection.send_call("tools/call", {}, caller())
        await connection.peer.run()
        assert str(connection.peer.ended) == "it ended"
        theirs = next(
            (one for one in messages if type(one.get("id")) is int and one["id"] == 1 and is_answer(one)), None
        )
        while type(item := await request.get()).__name__ not in ("Answered", "Failed"):
            pass
        if theirs is None:
            assert item == type(item)({"right": True})  # type: ignore[call-arg]  # an `Answered`

    anyio.run(play)


def is_answer(message: Mapping[str, Any]) -> bool:
    return not isinstance(message.get("method"), str)
