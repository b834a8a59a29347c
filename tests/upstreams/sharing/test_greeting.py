"""Is nobody let in, and nothing said to anybody, without the account's key?"""

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anyio
import pytest

import mcp_server
from mcp_server.upstreams.messages import BrokenMessage, LinkClosed, Message
from mcp_server.upstreams.sharing.greeting import NotProven, greet_guest, greet_holder
from mcp_server.upstreams.sharing.key import ShareKey, make_nonce
from mcp_server.upstreams.sharing.stream import MessageStream

pytestmark = pytest.mark.anyio
KEY, OTHER, DIGEST = ShareKey(b"k" * 43), ShareKey(b"l" * 43), "d" * 32
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


async def meet(holder: Callable[[], Awaitable[Any]], guest: Callable[[], Awaitable[Any]]) -> list[object]:
    """How the greeting ended for each: None, or the error."""
    ends: list[object] = [None, None]

    async def run(number: int, side: Callable[[], Awaitable[Any]]) -> None:
        try:
            await side()
        except (NotProven, LinkClosed) as wrong:
            ends[number] = type(wrong)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, 0, holder)
            tasks.start_soon(run, 1, guest)
    return ends


@pytest.mark.parametrize(
    ("holder", "guest", "digest", "expected"),
    [
        (KEY, KEY, DIGEST, [None, None]),
        (KEY, OTHER, DIGEST, [NotProven, NotProven]),
        (KEY, KEY, "e" * 32, [NotProven, NotProven]),
    ],
    ids=["the key", "another key", "another definition"],
)
async def test_both_sides_prove_themselves(
    pair: Pair, holder: ShareKey, guest: ShareKey, digest: str, expected: list[object]
) -> None:
    ends = await meet(lambda: greet_guest(pair[0], holder, DIGEST), lambda: greet_holder(pair[1], guest, digest))
    assert ends == expected


async def answer_as_holder(stream: MessageStream, proof: str, version: str = mcp_server.__version__) -> None:
    stream.send({"hello": "holder", "version": version, "nonce": make_nonce()})
    await stream.receive()
    stream.send({"proof": proof})


async def test_a_process_without_the_key_cannot_play_the_holder(pair: Pair) -> None:
    async def play() -> None:
        await answer_as_holder(pair[0], "0" * 64)

    assert (await meet(play, lambda: greet_holder(pair[1], KEY, DIGEST)))[1] is NotProven


async def test_what_the_guest_says_cannot_be_sent_back_to_it(pair: Pair) -> None:
    async def play() -> None:
        nonce = make_nonce()
        pair[0].send({"hello": "holder", "version": mcp_server.__version__, "nonce": nonce})
        said = await pair[0].receive()
        assert not isinstance(said, BrokenMessage)
        pair[0].send({"proof": said["proof"]})

    assert (await meet(play, lambda: greet_holder(pair[1], KEY, DIGEST)))[1] is NotProven


async def test_another_version_shares_nothing(pair: Pair) -> None:
    async def play() -> None:
        await answer_as_holder(pair[0], "", version="0.0.1")

    async def greet() -> None:
        try:
            await greet_holder(pair[1], KEY, DIGEST)
        finally:
            pair[1].end("no")

    assert (await meet(play, greet))[1] is NotProven


ODD: list[Message] = [{}, {"nonce": 5, "proof": []}, {"nonce": "n" * 64}, {"nonce": "n" * 64, "proof": "x", "pid": "y"}]


@pytest.mark.parametrize("odd", ODD)
async def test_whatever_else_a_guest_says_it_is_turned_away(pair: Pair, odd: Message) -> None:
    async def play() -> None:
        await pair[1].receive()
        pair[1].send(odd)
        await pair[1].receive()

    assert (await meet(lambda: greet_guest(pair[0], KEY, DIGEST), play))[0] is NotProven


async def test_the_key_is_never_sent(pair: Pair) -> None:
    heard = bytearray()
    for stream in pair:
        send = stream.send

        def listen(message: Message, send: Any = send) -> anyio.Event:
            heard.extend(repr(message).encode())
            return send(message)

        stream.send = listen
    await meet(lambda: greet_guest(pair[0], KEY, DIGEST), lambda: greet_holder(pair[1], KEY, DIGEST))
    assert b"proof" in heard and KEY.secret not in heard and KEY.secret[:16] not in heard
