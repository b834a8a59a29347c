"""Do messages arrive whole and in order, and does nobody wait for ever for a process that reads nothing?"""

import socket
from collections.abc import AsyncGenerator

import anyio
import pytest

from mcp_server.upstreams.messages import BrokenMessage, LinkClosed
from mcp_server.upstreams.sharing import stream as module
from mcp_server.upstreams.sharing.stream import MessageStream

pytestmark = pytest.mark.anyio
Pair = tuple[MessageStream, MessageStream]


@pytest.fixture
async def pair() -> AsyncGenerator[Pair]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    streams = [MessageStream.open(end) for end in ends]
    yield streams[0], streams[1]
    for one in streams:
        await one.close()


async def test_messages_arrive_in_order(pair: Pair) -> None:
    ours, theirs = pair
    for number in range(100):
        ours.send({"number": number, "text": "é\n" * 10_000})
    for number in range(100):
        item = await theirs.receive()
        assert not isinstance(item, BrokenMessage) and item["number"] == number


async def test_the_end_is_told_to_both_sides(pair: Pair) -> None:
    ours, theirs = pair
    ours.send({"last": True})
    await ours.flush()
    ours.end("enough")
    assert await theirs.receive() == {"last": True}
    for stream in pair:
        with pytest.raises(LinkClosed):
            await stream.receive()
    with pytest.raises(LinkClosed, match="enough"):
        ours.send({})
    with pytest.raises(LinkClosed):
        theirs.send({})


async def test_what_was_not_sent_when_the_other_went_is_not_taken_for_sent(pair: Pair) -> None:
    ours, theirs = pair
    theirs.end("gone")
    with anyio.fail_after(10), pytest.raises(LinkClosed):
        await ours.send_now({"a": 1})
        await ours.send_now({"a": 2})


async def test_a_process_that_reads_nothing_is_given_up(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNREAD_BYTES", 1 << 20)
    ours, _ = pair
    with pytest.raises(LinkClosed, match="stopped reading"):
        for _ in range(100):
            ours.send({"text": "x" * 50_000})
    with anyio.fail_after(10):
        await ours.flush()
