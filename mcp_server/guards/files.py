"""What may this call do with the workspace's files? Reads, writes and deletes, within the call's grant.

Each method finds out where the path really leads before it acts: the decision saw only the path's text, and a link or
another spelling may lead to a place that needs more than was granted.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Protocol

from mcp_server.guards import atomic
from mcp_server.guards.atomic import (
    SCRATCH_PREFIX,
    Trash,
    copy_file_attributes,
    discard_draft,
    open_scratch_folder,
    rename_without_overwriting,
    sync_folder,
    write_draft,
)
from mcp_server.guards.grants import Grant
from mcp_server.guards.jail import Jail, JailPath, describe_file_kind
from mcp_server.guards.refusals import (
    build_dangling_link_refusal,
    build_entry_count_refusal,
    build_file_kind_refusal,
    build_move_refusal,
    build_not_folder_refusal,
    build_path_refusal,
    build_private_refusal,
    build_stale_refusal,
)
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


@dataclass(frozen=True, slots=True)
class WorkspaceFiles:
    """The `Files` port over one workspace. Without a grant it only reads, and nothing that usually holds secrets."""

    jail: Jail
    trash_can: Trash
    seen: ReadTracker
    finder: FileSearcher
    grant: Grant = field(default_factory=Grant)

    def limit_to_grant(
        self, demand: Demand, seen: ReadTracker | None = None, at: Profile = Profile.RESTRICTED
    ) -> "WorkspaceFiles":
        """Return the same files, limited to what this call of one session may do at this profile."""
        grant = Grant(demand) if at is Profile.UNRESTRICTED else Grant(demand, self.jail.is_installed)
        return replace(self, grant=grant, seen=seen or self.seen)

    @property
    def root(self) -> str:
        return str(self.jail.root)

    def read(self, path: str, limit: int, start: int = 0) -> Snapshot:
        asked = self.jail.to_relative(path)
        with self.jail.open_place(asked, reading=True) as place:
            self.grant.require_read(asked, place)
            return self._read_place(place, limit, start)

    def _read_place(self, place: JailPath, limit: int, start: int = 0) -> Snapshot:
        file = self.jail.open_at(place, os.O_RDONLY)
        try:
            found = os.fstat(file)
            first = max(0, found.st_size + start) if start < 0 else start
            data, to_the_end, found = _read_steadily(file, first, limit)
        finally:
            os.close(file)
        whole = first == 0 and to_the_end
        size = len(data) if whole else found.st_size
        stamp = Stamp(size, found.st_mtime_ns, sha256(data).hexdigest() if whole else "")
        return Snapshot(place.path, data, stamp, stat.S_IMODE(found.st_mode), whole)

    def get_info(self, path: str) -> DirectoryEntry:
        with self.jail.open_place(self.jail.to_relative(path), follow=False, reading=True) as place:
            return _build_entry(place.path, _stat_existing(place))

    def list_folder(self, path: str, depth: int = 1) -> Sequence[DirectoryEntry]:
        asked = self.jail.to_relative(path)
        found: list[DirectoryEntry] = []
        with self.jail.open_place(asked, reading=True) as place:
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
                    yield _build_entry(prefix + name, found)
                    if depth > 1 and stat.S_ISDIR(found.st_mode):
                        yield from self._walk_subfolder(folder, name, prefix, depth - 1)
        finally:
            os.close(folder)

    def _walk_subfolder(self, folder: int, name: str, prefix: str, depth: int) -> Iterator[DirectoryEntry]:
        # List a folder that is unreadable, or was just swapped for a link, without looking inside.
        with suppress(PermissionError, FileNotFoundError, NotADirectoryError):
            yield from self._walk_folder(os.open(name, LISTING, dir_fd=folder), f"{prefix}{name}/", depth)

    def write(self, path: str, data: bytes, expect: Stamp | None, mode: int | None = None) -> DirectoryEntry:
        asked = self.jail.to_relative(path)
        self.grant.require_write(asked)
        if expect is None:
            self._make_folders(asked.rpartition("/")[0] or ".")
        with self.jail.open_place(asked) as place:
            self.grant.require_change(asked, place)
            if expect is None:
                self._create(place, data, mode)
            else:
                self._replace(place, data, expect, mode)
            return _build_entry(place.path, _stat_existing(place))

    def _create(self, place: JailPath, data: bytes, mode: int | None) -> None:
        if place.linked and place.stat() is None:
            raise build_dangling_link_refusal(place.path)
        if place.stat() is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        name = write_draft(place.folder, data, None, mode)
        try:
            rename_without_overwriting((place.folder, name), (place.folder, place.name))
        finally:
            discard_draft(place.folder, name)
        sync_folder(place.folder)

    def _replace(self, place: JailPath, data: bytes, expect: Stamp, mode: int | None) -> None:
        if place.stat() is None:
            raise build_stale_refusal(place.path, "is gone")
        # Opened for writing, though only read: this fails for a file its owner made read-only, which must not be
        # replaced.
        old = self.jail.open_at(place, os.O_RDWR)
        try:
            name = write_draft(place.folder, data, os.fstat(old), mode)
            try:
                copy_file_attributes(old, place.folder, name)
                if not self._read_place(place, expect.size + 1 if expect.digest else 0).stamp.is_same_as(expect):
                    raise build_stale_refusal(place.path, "changed")
                os.rename(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            finally:
                discard_draft(place.folder, name)
        finally:
            os.close(old)
        sync_folder(place.folder)

    def make_folder(self, path: str) -> DirectoryEntry:
        asked = self.jail.to_relative(path)
        self.grant.require_write(asked)
        self._make_folders(asked)
        with self.jail.open_place(asked) as place:
            return _build_entry(place.path, _stat_existing(place))

    def _make_folders(self, relative: str) -> None:
        so_far = ""
        for name in relative.split("/"):
            so_far = f"{so_far}/{name}" if so_far else name
            with self.jail.open_place(so_far or ".") as place:
                found = place.stat()
                if found is None:
                    self.grant.require_change(so_far, place)
                    with suppress(FileExistsError):
                        os.mkdir(place.name, dir_fd=place.folder)
                elif not stat.S_ISDIR(found.st_mode):
                    raise build_not_folder_refusal(place.path)

    def move(self, source: str, destination: str, approved: atomic.ApprovalCheck = None) -> DirectoryEntry:
        old, new = self.jail.to_relative(source), self.jail.to_relative(destination)
        self.grant.require_write(new)
        with self.jail.open_place(old, follow=False) as here:
            found = self._check_movable(old, here)
            # Moving a secret needs the right to read it: under a new name, a later read would no longer ask.
            self.grant.require_read(old, here)
            if self.jail.has_private_below(here):
                raise build_private_refusal(old)
            self._make_folders(new.rpartition("/")[0] or ".")
            with self.jail.open_place(new, follow=False) as there:
                self.grant.require_put(new, there, here)
                try:
                    with atomic.move_aside(here, approved) as it:
                        atomic.put_in_place(it, there, approved)
                except OSError as error:
                    if error.errno not in (errno.EXDEV, errno.EINVAL):
                        raise
                    raise build_move_refusal(error, old, new) from error
                return _build_entry(there.path, found)

    def trash(self, path: str, approved: atomic.ApprovalCheck = None) -> str:
        asked = self.jail.to_relative(path)
        self.grant.require_destroy()
        with self.jail.open_place(asked, follow=False) as place:
            self._check_deletable(asked, place)
            with atomic.move_aside(place, approved) as it:
                return self.trash_can.move_to_trash(self.jail, it)

    def remove(self, path: str, approved: atomic.ApprovalCheck = None) -> None:
        asked = self.jail.to_relative(path)
        self.grant.require_destroy()
        with self.jail.open_place(asked, follow=False) as place:
            away = os.rmdir if stat.S_ISDIR(self._check_deletable(asked, place).st_mode) else os.unlink
            with atomic.move_aside(place, approved) as it:
                away(it.name, dir_fd=it.folder)

    def make_scratch_folder(self, below: str = ".") -> AbstractContextManager[str]:
        self.grant.require_write(SCRATCH_PREFIX)
        return open_scratch_folder(self.jail, below)

    def grep(self, search: Search) -> SearchResult:
        asked = self.jail.to_relative(search.path)
        with self.jail.open_place(asked, reading=True) as place:
            self.grant.require_read(asked, place)
        return self.finder.grep(replace(search, path=asked))

    def glob(self, search: Search) -> SearchResult:
        return self.finder.glob(replace(search, path=self.jail.to_relative(search.path)))

    def remember(self, path: str, stamp: Stamp) -> None:
        self.seen.remember(path, stamp)

    def recall(self, path: str) -> Stamp | None:
        with self.jail.open_place(self.jail.to_relative(path), reading=True) as place:
            real = place.path
        return self.seen.recall(real)

    def _check_movable(self, asked: str, place: JailPath) -> os.stat_result:
        self.grant.require_change(asked, place)
        if place.name == ".":
            raise build_path_refusal(
                "The workspace itself is neither moved nor taken away.", "Name a file or folder in it."
            )
        found = _stat_existing(place)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            raise build_file_kind_refusal(asked, describe_file_kind(found.st_mode))
        return found

    def _check_deletable(self, asked: str, place: JailPath) -> os.stat_result:
        found = self._check_movable(asked, place)
        if stat.S_ISDIR(found.st_mode):
            folder = os.open(place.name, LISTING, dir_fd=place.folder)
            try:
                with os.scandir(folder) as names:
                    if next(names, None) is not None:
                        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
            finally:
                os.close(folder)
        return found


def _stat_existing(place: JailPath) -> os.stat_result:
    found = place.stat()
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return found


def _build_entry(path: str, found: os.stat_result) -> DirectoryEntry:
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
