"""What may this call read of the workspace's files, and what is in its folders? Within the call's grant.

Each method finds out where the path really leads before it acts: the decision saw only the path's text, and a link or
another spelling may lead to a place that needs more than was granted.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.guards.atomic import Trash
from mcp_server.guards.grants import Grant, PlaceBounds, is_never_fixed
from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.refusals import build_entry_count_refusal
from mcp_server.model.files import DirectoryEntry, Search, SearchResult, Snapshot, Stamp
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand

MOST_ENTRIES = 100_000
CHUNK = 1 << 20
LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
TRIES = 3
"""How often to read a file again that changes while it is read."""


class ReadTracker(Protocol):
    """Remembers what a session has read so far."""

    def remember(self, path: str, stamp: Stamp) -> None: ...

    def recall(self, path: str) -> Stamp | None: ...


class FileSearcher(Protocol):
    """Searches the workspace."""

    def grep(self, search: Search) -> SearchResult: ...

    def glob(self, search: Search) -> SearchResult: ...


class ReadableFiles(Struct, frozen=True):
    """The reading half of the `Files` port. Without a grant, it reads nothing that usually holds secrets."""

    jail: Jail
    trash_can: Trash
    seen: ReadTracker
    finder: FileSearcher
    grant: Grant = field(default_factory=Grant)

    def limit_to_grant(
        self,
        demand: Demand,
        seen: ReadTracker | None = None,
        at: Profile = Profile.RESTRICTED,
        bounds: PlaceBounds | None = None,
    ) -> Self:
        """Return the same files, limited to what this call of one session may do at this profile."""
        fixed = is_never_fixed if at is Profile.UNRESTRICTED else self.jail.is_installed
        return replace(self, grant=Grant(demand, fixed, bounds), seen=seen or self.seen)

    @property
    def root(self) -> str:
        return str(self.jail.root)

    def read(self, path: str, limit: int, start: int = 0) -> Snapshot:
        asked = self.jail.to_relative(path)
        with self.jail.open_place(asked, reading=True) as place:
            self.grant.require_read(asked, place)
            return self._read_place(place, limit, start, asked)

    def _read_place(
        self, place: JailPath, limit: int, start: int = 0, asked: str = "", opened: int | None = None
    ) -> Snapshot:
        file = self.jail.open_at(place, os.O_RDONLY) if opened is None else os.dup(opened)
        try:
            found = os.fstat(file)
            if self.grant.bounds is not None:
                self.grant.bounds.require_object(asked, place, found)
            first = max(0, found.st_size + start) if start < 0 else start
            data, to_the_end, found = _read_steadily(file, first, limit)
        finally:
            os.close(file)
        whole = first == 0 and to_the_end
        size = len(data) if whole else found.st_size
        stamp = Stamp(size, found.st_mtime_ns, sha256(data).hexdigest() if whole else "")
        return Snapshot(place.path, data, stamp, stat.S_IMODE(found.st_mode), whole)

    def get_info(self, path: str) -> DirectoryEntry:
        asked = self.jail.to_relative(path)
        with self.jail.open_place(asked, follow=False, reading=True) as place:
            if self.grant.bounds is not None:
                self.grant.bounds.require_place(asked, place)
            return build_entry(place.path, stat_existing(place))

    def list_folder(self, path: str, depth: int = 1) -> Sequence[DirectoryEntry]:
        asked = self.jail.to_relative(path)
        found: list[DirectoryEntry] = []
        with self.jail.open_place(asked, reading=True) as place:
            if self.grant.bounds is not None:
                self.grant.bounds.require_place(asked, place)
            folder = os.open(place.name, LISTING, dir_fd=place.folder)
            for entry in self._walk_folder(folder, "" if place.path == "." else place.path + "/", depth):
                found.append(entry)
                if len(found) > MOST_ENTRIES:
                    raise build_entry_count_refusal(asked, MOST_ENTRIES)
        return found

    def _walk_folder(self, folder: int, prefix: str, depth: int) -> Iterator[DirectoryEntry]:
        try:
            with os.scandir(folder) as names:
                children = sorted(entry.name for entry in names)
            for name in children:
                if self.jail.is_private(folder, name):
                    continue
                with suppress(FileNotFoundError):
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    yield build_entry(prefix + name, found)
                    if depth > 1 and stat.S_ISDIR(found.st_mode):
                        yield from self._walk_subfolder(folder, name, prefix, depth - 1)
        finally:
            os.close(folder)

    def _walk_subfolder(self, folder: int, name: str, prefix: str, depth: int) -> Iterator[DirectoryEntry]:
        # List a folder that is unreadable, or was just swapped for a link, without looking inside.
        with suppress(PermissionError, FileNotFoundError, NotADirectoryError):
            yield from self._walk_folder(os.open(name, LISTING, dir_fd=folder), f"{prefix}{name}/", depth)

    def grep(self, search: Search) -> SearchResult:
        asked = self.jail.to_relative(search.path)
        with self.jail.open_place(asked, reading=True) as place:
            self.grant.require_read(asked, place)
        return self.finder.grep(replace(search, path=place.path))

    def glob(self, search: Search) -> SearchResult:
        asked = self.jail.to_relative(search.path)
        with self.jail.open_place(asked, reading=True) as place:
            if self.grant.bounds is not None:
                self.grant.bounds.require_place(asked, place)
        return self.finder.glob(replace(search, path=place.path))

    def remember(self, path: str, stamp: Stamp) -> None:
        if self.grant.bounds is None or not self.grant.bounds.rehearsal:
            self.seen.remember(path, stamp)

    def recall(self, path: str) -> Stamp | None:
        with self.jail.open_place(self.jail.to_relative(path), reading=True) as place:
            real = place.path
        return self.seen.recall(real)


def stat_existing(place: JailPath) -> os.stat_result:
    found = place.stat()
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return found


def build_entry(path: str, found: os.stat_result) -> DirectoryEntry:
    sorts = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link"))
    word = next((word for test, word in sorts if test(found.st_mode)), "other")
    return DirectoryEntry(path, word, found.st_size, found.st_mtime_ns, stat.S_IMODE(found.st_mode))


def _read_steadily(file: int, start: int, limit: int) -> tuple[bytes, bool, os.stat_result]:
    """Read again if the file changed meanwhile; after the last try, take a file that keeps changing as it is."""
    turn = 0
    while True:
        turn += 1
        before = os.fstat(file)
        data, to_the_end = _read_bytes(file, start, limit)
        after = os.fstat(file)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) or turn == TRIES:
            return data, to_the_end, after


def _read_bytes(file: int, start: int, limit: int) -> tuple[bytes, bool]:
    """Read up to `limit` bytes from `start`; also return whether that reached the end."""
    parts: list[bytes] = []
    left = limit
    while left > 0 and (part := os.pread(file, min(left, CHUNK), start)):
        parts.append(part)
        start += len(part)
        left -= len(part)
    return b"".join(parts), not os.pread(file, 1, start)
