"""Does git track this path? Reads the repository's index, which anybody who works here may have written."""

import os
import posixpath
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from stat import S_ISDIR
from typing import NamedTuple

from mcp_server.guards.jail import Jail, join_path
from mcp_server.model.results import Refusal

MAX_INDEX_BYTES = 64 << 20
MAX_POINTER_BYTES = 4096
POINTER = "gitdir: "
HEADER = struct.Struct(">4sII")
EXTENSION = struct.Struct(">4sI")
ENTRY = struct.Struct(">8xII8xI8xI")
"""Its times, mode and size."""
SUBMODULE = 0o160000
ENTRY_BYTES = 42
"""Of an entry before its path, without the object's name and the flags that only some have."""
HASHES = (20, 32)
"""The lengths of an object's name: SHA-1, SHA-256."""
VERSIONS = (2, 3, 4)
EXTENDED = 0x4000


class IndexEntry(NamedTuple):
    path: bytes
    seconds: int
    nanoseconds: int
    """When its file was changed last, as git saw it."""
    mode: int
    size: int
    object: bytes
    """The name of its content."""


class Tracking(StrEnum):
    TRACKED = "tracked"
    UNTRACKED = "untracked"
    OUTSIDE = "outside"
    """No repository contains it."""
    UNKNOWN = "unknown"
    """The index cannot be read, or lies outside the workspace."""


def find_tracking(jail: Jail, path: str) -> Tracking:
    """Say whether the repository around a real path below the workspace tracks it; for a folder, anything in it."""
    return count_tracked(jail, path)[0]


def count_tracked(jail: Jail, path: str) -> tuple[Tracking, int]:
    """Also say how many files the repository tracks at the path and below it."""
    found = find_entries(jail, path, inside=False)
    return (found, 0) if isinstance(found, Tracking) else found.count_files()


class TrackedFiles(NamedTuple):
    top: str
    """The top folder of the repository's worktree."""
    entries: Sequence[IndexEntry]

    def count_files(self) -> tuple[Tracking, int]:
        """Count the files; a submodule is none."""
        count = sum(one.mode != SUBMODULE for one in self.entries)
        return Tracking.TRACKED if self.entries else Tracking.UNTRACKED, count

    @property
    def has_submodule(self) -> bool:
        return any(one.mode == SUBMODULE for one in self.entries)


def find_entries(jail: Jail, path: str, inside: bool) -> TrackedFiles | Tracking:
    """Find what a repository tracks at a path and below it; why not, if there is none. `inside`: the path may be the
    top of the repository itself."""
    above = f"{path}/" if inside else path
    while above and above != ".":
        above = above.rpartition("/")[0].removesuffix("/")
        above = "" if above == "." else above
        try:
            if folder := _find_git_folder(jail, above or "."):
                rest = "" if path == "." else path[len(above) :].lstrip("/")
                return TrackedFiles(above or ".", _search_index(jail, folder, rest))
        except (Refusal, OSError, ValueError, IndexError, struct.error):
            return Tracking.UNKNOWN
    return Tracking.OUTSIDE


def _find_git_folder(jail: Jail, top: str) -> str | None:
    """Return git's own folder for the worktree with this top folder; None if it is no worktree. Raises if git's folder
    cannot be read, or lies outside the workspace."""
    path = join_path(top, ".git")
    with jail.open_place(path, reading=True) as place:
        found = place.stat()
        if found is None:
            return None
        # A link counts as the folder that it leads to.
        folder, is_pointer = place.path, not S_ISDIR(found.st_mode)
    if is_pointer:
        # In a linked worktree or a submodule, a file names the folder.
        text = os.fsdecode(_read_file(jail, path, MAX_POINTER_BYTES)).rstrip("\r\n")
        if not text.startswith(POINTER):
            raise ValueError(path)
        folder = posixpath.join(top, text.removeprefix(POINTER))
    with jail.open_place(join_path(folder, "HEAD"), follow=False, reading=True) as head:
        if head.stat() is not None:
            return folder
    if is_pointer:
        raise ValueError(path)
    # Like git, we take a `.git` folder without a HEAD for no repository and look further up.
    return None


def _read_file(jail: Jail, path: str, most: int) -> bytes:
    with os.fdopen(jail.open(path, os.O_RDONLY), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(path)
    return data


def _search_index(jail: Jail, folder: str, path: str) -> list[IndexEntry]:
    wanted = os.fsencode(path)
    with jail.open_place(join_path(folder, "index"), reading=True) as place:
        if place.stat() is None:
            return []
    entries = _list_entries(_read_file(jail, join_path(folder, "index"), MAX_INDEX_BYTES))
    return [one for one in entries if not wanted or one.path == wanted or one.path.startswith(wanted + b"/")]


def _list_entries(index: bytes) -> list[IndexEntry]:
    """List the entries of an index. Raises if it is not one, or is only part of one."""
    for length in HASHES:
        with suppress(ValueError, IndexError, struct.error):
            return list(_iterate_entries(index, length))
    raise ValueError("not an index")


def _iterate_entries(index: bytes, hash_bytes: int) -> Iterator[IndexEntry]:
    signature, version, count = HEADER.unpack_from(index)
    if signature != b"DIRC" or version not in VERSIONS:
        raise ValueError("not an index")
    at, before = HEADER.size, b""
    for _ in range(count):
        flags_at = at + ENTRY_BYTES - 2 + hash_bytes
        (flags,) = struct.unpack_from(">H", index, flags_at)
        start = flags_at + (4 if flags & EXTENDED else 2)
        kept = 0
        if version == VERSIONS[-1]:
            cut, start = _read_offset(index, start)
            kept = len(before) - cut
        end = index.index(0, start)
        before = before[:kept] + index[start:end]
        seconds, nanoseconds, mode, size = ENTRY.unpack_from(index, at)
        yield IndexEntry(before, seconds, nanoseconds, mode, size, index[at + ENTRY_BYTES - 2 : flags_at])
        # Versions 2 and 3 fill each entry up to a multiple of eight with one to eight zeros.
        at = end + 1 if version == VERSIONS[-1] else at + (end - at + 8) // 8 * 8
    _check_rest(index, at, len(index) - hash_bytes)


def _check_rest(index: bytes, at: int, end: int) -> None:
    """Only optional extensions may follow the entries. The others, whose names begin with a small letter, say that some
    paths are in another file (`link`) or that a folder stands for them (`sdir`)."""
    while at < end:
        name, size = EXTENSION.unpack_from(index, at)
        if not name[:1].isupper():
            raise ValueError("only part of an index")
        at += EXTENSION.size + size
    if at != end:
        raise ValueError("not an index")


def _read_offset(index: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable length, and return where the next field begins."""
    byte = index[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = index[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1
