"""Does git track this path? Reads the repository's index, which anybody who works here may have written."""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum

from mcp_server.guards.jail import Jail, join_path
from mcp_server.model.results import Refusal

MAX_INDEX_BYTES = 64 << 20
HEADER = struct.Struct(">4sII")
ENTRY_BYTES = 62
"""Of an entry before its path, without the flags that only some have."""
VERSIONS = (2, 3, 4)
EXTENDED = 0x4000


class Tracking(StrEnum):
    TRACKED = "tracked"
    UNTRACKED = "untracked"
    OUTSIDE = "outside"
    """No repository contains it."""
    UNKNOWN = "unknown"
    """The index cannot be read, or lies outside the workspace."""


def find_tracking(jail: Jail, path: str) -> Tracking:
    """Say whether the repository around a real path below the workspace tracks it; for a folder, anything in it."""
    above = path
    while above and above != ".":
        above = above.rpartition("/")[0]
        with suppress(Refusal, OSError):
            with jail.open_place(join_path(above, ".git"), reading=True) as place:
                if place.stat() is None:
                    continue
            return _search_index(jail, above, path[len(above) :].lstrip("/"))
    return Tracking.OUTSIDE


def _search_index(jail: Jail, repository: str, path: str) -> Tracking:
    wanted = os.fsencode(path)
    try:
        with jail.open_place(join_path(repository, ".git/index"), reading=True) as place:
            if place.stat() is None:
                return Tracking.UNTRACKED
            with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as file:
                index = file.read(MAX_INDEX_BYTES + 1)
        if len(index) > MAX_INDEX_BYTES:
            return Tracking.UNKNOWN
        found = any(entry == wanted or entry.startswith(wanted + b"/") for entry in _iterate_paths(index))
    except (Refusal, OSError, ValueError, IndexError, struct.error):
        return Tracking.UNKNOWN
    return Tracking.TRACKED if found else Tracking.UNTRACKED


def _iterate_paths(index: bytes) -> Iterator[bytes]:
    """Yield the paths of an index. Raises if it is not one."""
    signature, version, count = HEADER.unpack_from(index)
    if signature != b"DIRC" or version not in VERSIONS:
        raise ValueError("not an index")
    at, before = HEADER.size, b""
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", index, at + ENTRY_BYTES - 2)
        start = at + ENTRY_BYTES + (2 if flags & EXTENDED else 0)
        kept = 0
        if version == VERSIONS[-1]:
            cut, start = _read_offset(index, start)
            kept = len(before) - cut
        end = index.index(0, start)
        before = before[:kept] + index[start:end]
        yield before
        # Versions 2 and 3 fill each entry up to a multiple of eight with one to eight zeros.
        at = end + 1 if version == VERSIONS[-1] else at + (end - at + 8) // 8 * 8


def _read_offset(index: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable length, and return where the next field begins."""
    byte = index[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = index[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1
