"""What do we exchange with an upstream? JSON-RPC messages, read so that no server can harm more than itself.

Servers are often sloppy, so we read loosely: a line that is not JSON is skipped and counted, bad UTF-8 is replaced.
What we never do is keep more of a line than a message may have, or pass on what a client could not read.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeAlias, cast

import anyio
import anyio.lowlevel
from msgspec import Struct

Message: TypeAlias = dict[str, Any]
"""One JSON-RPC message."""

MAX_MESSAGE_BYTES = 16 << 20
MAX_LINE_BYTES = 4 * MAX_MESSAGE_BYTES
"""A server that prints this much without a newline is not speaking the protocol, and is stopped."""
MAX_DEPTH = 190
MAX_BATCH = 1000
FREE_MESSAGES, MESSAGES_PER_SECOND = 4000.0, 4000.0
"""A burst of messages is read at once, a flood at this rate."""
TURN_MESSAGES = 64
"""How many messages are read before other tasks run."""
HINT_BYTES = 512
"""How much of either end of a line that is too long is searched for the id it answers."""
ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')


class LinkClosed(Exception):
    """The connection to the server ended; the message says why, in words for you."""


class LoginRequired(LinkClosed):
    """The server wants credentials that it was not given."""


class BrokenMessage(Struct, frozen=True):
    """Something arrived that is not a message."""

    reason: str
    answers: int | None = None
    """The request it seems to answer."""


Incoming: TypeAlias = Message | BrokenMessage


class Link(Protocol):
    """A connection to a server, over any transport."""

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send, or raise `LinkClosed`. `headers` are for transports that have them."""
        ...

    async def receive(self) -> Incoming:
        """Return the next message, or raise `LinkClosed`."""
        ...


@dataclass
class MessagePace:
    """Slows down a server that sends more messages than anything needs, so that it costs the others nothing."""

    _taken: int = 0
    _level: float = 0.0
    _at: float = field(default_factory=time.monotonic)

    async def count_message(self) -> None:
        """Wait once in a while; longer if there were too many messages lately."""
        self._taken += 1
        if self._taken < TURN_MESSAGES:
            return
        now = time.monotonic()
        self._level = max(self._level - (now - self._at) * MESSAGES_PER_SECOND, 0) + self._taken
        self._at, self._taken = now, 0
        if self._level > FREE_MESSAGES:
            await anyio.sleep((self._level - FREE_MESSAGES) / MESSAGES_PER_SECOND)
        else:
            await anyio.lowlevel.checkpoint()


@dataclass
class LineSplitter:
    """Cuts a stream of bytes into lines, and keeps at most `MAX_MESSAGE_BYTES` of one."""

    _rest: bytearray = field(default_factory=bytearray)
    _dropped: int = 0
    _answers: int | None = None

    def feed(self, data: bytes) -> Iterator[bytes | BrokenMessage]:
        """Yield what became complete. Raises `LinkClosed` for a line without end."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            yield self._take_line()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._rest += part
        if len(self._rest) > MAX_MESSAGE_BYTES or self._dropped:
            if not self._dropped:
                self._answers = find_answered_id(self._rest[:HINT_BYTES])
            self._dropped += len(self._rest) - HINT_BYTES
            del self._rest[:-HINT_BYTES]
            if self._dropped > MAX_LINE_BYTES:
                raise LinkClosed(f"it sent more than {MAX_LINE_BYTES >> 20} MB without a newline")

    def _take_line(self) -> bytes | BrokenMessage:
        line, self._rest = self._rest, bytearray()
        if not self._dropped:
            return bytes(line)
        answers, self._dropped = self._answers, 0
        reason = f"a message is larger than {MAX_MESSAGE_BYTES >> 20} MB"
        return BrokenMessage(reason, find_answered_id(line) if answers is None else answers)


def find_answered_id(part: bytes | bytearray) -> int | None:
    match = ID.search(part)
    return int(match[1]) if match and b'"method"' not in part else None


def parse_messages(data: bytes) -> Iterator[Incoming]:
    """Yield the messages in a line: one, or several if the server batches them."""
    if not data.strip():
        return
    try:
        value = DECODER.decode(data.decode("utf-8", "replace"))
        if data.count(b"[") + data.count(b"{") > MAX_DEPTH and measure_depth(value) > MAX_DEPTH:
            raise RecursionError
    except RecursionError:
        yield BrokenMessage(f"a message is nested more than {MAX_DEPTH} levels deep", find_answered_id(data))
        return
    except ValueError:
        yield BrokenMessage("a line is not JSON", find_answered_id(data[:HINT_BYTES]))
        return
    several = cast(list[Any], value)[:MAX_BATCH] if isinstance(value, list) else [value]
    for one in several:
        yield cast(Message, one) if isinstance(one, dict) else BrokenMessage("a line is not a JSON-RPC message")


def encode_message(message: Message) -> bytes:
    """Lone surrogates are escaped, because they have no UTF-8."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def measure_depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [one for inner in level for one in _get_children(inner)]:
        depth += 1
    return depth


def _get_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast(dict[str, Any], value).values())
    return cast(list[Any], value) if isinstance(value, list) else []


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
