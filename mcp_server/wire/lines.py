"""What is one line, and what becomes of one that is too long? It is never kept, but its sender is told by its id.

A model that writes a file of five megabytes makes such a line. Some clients write the id first and some last; what
lies between is looked at by nobody.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_LINE = 4 * 1024 * 1024
TIP = 512
"""Bytes at either end of a line in which its id is looked for."""
MEMBER = rb'"(jsonrpc|method|id)"\s*:\s*("[^"\\]{0,128}"|-?\d{1,18})'
FIRST = re.compile(rb"\s*\{(?:\s*" + MEMBER + rb"\s*,)+")
LAST = re.compile(rb"(?:,\s*" + MEMBER + rb"\s*)+\}\s*\Z")
ONE = re.compile(MEMBER)


@dataclass(frozen=True)
class LineTooLong:
    """There was a line of more than `LONGEST_LINE` bytes."""

    request_id: str | int | None


class LineBuffer:
    def __init__(self) -> None:
        self._rest = bytearray()
        self._overlong = False
        self._known: dict[bytes, bytes] = {}
        """What the line that is too long said of itself at its beginning."""

    def feed(self, chunk: bytes) -> Iterator[bytes | LineTooLong]:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._rest += line
            yield from self._bounded()
            yield from self._ended()
        self._rest += rest
        yield from self._bounded()

    def _bounded(self) -> Iterator[LineTooLong]:
        if not self._overlong and len(self._rest) > LONGEST_LINE:
            self._overlong = True
            self._known = _members(FIRST.match(self._rest, 0, TIP))
            # Told at once: the end of such a line may never come.
            yield LineTooLong(_request_id(self._known))
        if self._overlong:
            del self._rest[:-TIP]

    def _ended(self) -> Iterator[bytes | LineTooLong]:
        whole, overlong = bytes(self._rest), self._overlong
        self._rest, self._overlong = bytearray(), False
        if not overlong:
            yield whole
        elif _request_id(self._known) is None:
            late = _request_id(self._known | _members(LAST.search(whole)))
            if late is not None:
                yield LineTooLong(late)


def _members(found: "re.Match[bytes] | None") -> dict[bytes, bytes]:
    return dict(ONE.findall(found[0])) if found else {}


def _request_id(members: dict[bytes, bytes]) -> str | int | None:
    """Only a request has one to answer to; an answer of the client's carries an id of ours."""
    if b"id" not in members or b"method" not in members:
        return None
    try:
        return json.loads(members[b"id"])
    except ValueError:
        return None
