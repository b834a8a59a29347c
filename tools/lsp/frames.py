"""Where does one message of a language server end and the next begin? Bytes become messages, within bounds."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

MOST_HEAD = 8192
MOST_FRAME = 32 << 20
"""More than any answer has use for; a server that announces more is not believed and not waited for."""


class BrokenFrame(Exception):
    """What the server sent is not the protocol; the message says how. There is no going on after it."""


def framed(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class FrameReader:
    """The messages in a stream of bytes that comes in pieces of any size."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._awaited: int | None = None
        """How many bytes the message has whose head was read."""

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        self._held += piece
        while (body := self._body()) is not None:
            yield _message(body)

    def _body(self) -> bytes | None:
        if self._awaited is None:
            end = self._held.find(b"\r\n\r\n")
            if end > MOST_HEAD or (end < 0 and len(self._held) > MOST_HEAD):
                raise BrokenFrame(f"a message head of more than {MOST_HEAD:,} bytes")
            if end < 0:
                return None
            self._awaited = _length(bytes(self._held[:end]))
            del self._held[: end + 4]
        if len(self._held) < self._awaited:
            return None
        body = bytes(self._held[: self._awaited])
        del self._held[: self._awaited]
        self._awaited = None
        return body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            # Not int(): it also reads signs, underscores and the digits of other scripts.
            if not value.strip().isdigit() or len(value.strip()) > 12:
                raise BrokenFrame("a message of no readable length")
            if int(value) > MOST_FRAME:
                raise BrokenFrame(f"a message of {int(value):,} bytes, and more than {MOST_FRAME:,} are not taken")
            return int(value)
    raise BrokenFrame("a message without its length")


def _message(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise BrokenFrame("a message that is no JSON") from None
    if not isinstance(message, dict):
        raise BrokenFrame("a message that is no JSON object")
    return cast(dict[str, Any], message)
