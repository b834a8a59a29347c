"""Can the other process read the account's key? Both sides prove it before anything else is said.

Each sends a random challenge and answers the other's, so the key never goes over the socket, and an answer that was
heard once is worth nothing.
"""

import os
from typing import Any

import mcp_server
from mcp_server.upstreams.messages import BrokenMessage, Message
from mcp_server.upstreams.sharing.key import ShareKey, make_nonce
from mcp_server.upstreams.sharing.stream import MessageStream

GREETING_SECONDS = 5.0
"""A process that has not answered by then is stopped, or too busy to be of use."""
HOLDER, GUEST = "holder", "guest"
NOT_PROVEN = "it did not prove that it can read this account's key"


class NotProven(Exception):
    """The other process could not show that it can read this account's key."""


async def greet_guest(stream: MessageStream, key: ShareKey, digest: str) -> int:
    """Let a guest prove itself, and prove ourselves; return its process id, or what it says that this is."""
    own = make_nonce()
    stream.send({"hello": HOLDER, "version": mcp_server.__version__, "nonce": own})
    answer = await _read(stream)
    nonce = _get_text(answer, "nonce")
    if not key.is_proven(_get_text(answer, "proof"), GUEST, digest, nonce, own):
        await stream.send_now({"refused": NOT_PROVEN})
        raise NotProven(NOT_PROVEN)
    stream.send({"proof": key.prove(HOLDER, digest, own, nonce)})
    pid: Any = answer.get("pid")
    return pid if type(pid) is int else 0


async def greet_holder(stream: MessageStream, key: ShareKey, digest: str) -> None:
    """Prove ourselves to the holder, and let it prove itself."""
    hello = await _read(stream)
    nonce, own = _get_text(hello, "nonce"), make_nonce()
    if hello.get("version") != mcp_server.__version__:
        raise NotProven("it is another version of menugate")
    stream.send({"nonce": own, "proof": key.prove(GUEST, digest, own, nonce), "pid": os.getpid()})
    answer = await _read(stream)
    if not key.is_proven(_get_text(answer, "proof"), HOLDER, digest, nonce, own):
        raise NotProven(NOT_PROVEN)


async def _read(stream: MessageStream) -> Message:
    item = await stream.receive()
    if isinstance(item, BrokenMessage):
        raise NotProven("it does not speak as menugate does")
    if (reason := item.get("refused")) is not None:
        raise NotProven(str(reason)[:200])
    return item


def _get_text(message: Message, key: str) -> str:
    value = message.get(key)
    return value if isinstance(value, str) else ""
