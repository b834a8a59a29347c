"""What would be lost by a call, as an approval is bound to it? Where its paths lead, and what is there.

The same files always give the same digests: how much is read is limited by numbers and not by time.
"""

import hashlib
import json
import os
import posixpath
import re
import stat
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcp_server.guards.git_index import SUBMODULE, IndexEntry, TrackedFiles, Tracking, find_entries
from mcp_server.guards.jail import Jail, JailPath, format_identity, join_path
from mcp_server.guards.loss_sizes import BY_GIT, IN_FOLDER, find_differences, follows_links
from mcp_server.model.approvals import LostPath
from mcp_server.model.results import Refusal
from mcp_server.model.tools import Loss

MAX_NAMED = 100
"""Paths that are compared one by one. All further ones count as one."""
MAX_ENTRIES = 20_000
"""Files and folders that are looked at in all."""
MAX_HASHED_FILES, MAX_HASHED_BYTES = 500, 64 << 20
"""Of further files, size and times count instead of the content."""
WITH_CONTENT = frozenset(("deletes", "removes", "cleans", "cleans all", *IN_FOLDER))
"""Then what is in a folder would be lost as well."""
GIT = ".git"
GIT_PASSING = frozenset(("index", "index.lock", "FETCH_HEAD"))
"""Git writes these also when it only reads."""
SIGNS = re.compile(r"\[.*\]|[*?]")


def list_lost_paths(losses: Sequence[Loss]) -> list[LostPath]:
    """List the paths of these losses, as far as they are known."""
    known = [LostPath(loss.does, loss.path) for loss in losses if loss.known]
    fits = [LostPath(loss.does, pattern, fits=True) for loss in losses for pattern in loss.fits]
    return list(dict.fromkeys((*known, *fits)))


def find_lost(jail: Jail, paths: Sequence[LostPath]) -> tuple[LostPath, ...]:
    """Find where each path leads and what is there."""
    look = _LossLook(jail)
    found = [look.find(one) for one in paths]
    if len(found) > MAX_NAMED:
        found, rest = found[:MAX_NAMED], found[MAX_NAMED:]
        leads, holds = (_digest([getattr(one, part) for one in rest]) for part in ("leads", "holds"))
        found.append(LostPath("deletes", "", leads=leads, holds=holds))
    return tuple(found)


@dataclass
class _LossLook:
    jail: Jail
    entries: int = MAX_ENTRIES
    files: int = MAX_HASHED_FILES
    size: int = MAX_HASHED_BYTES

    def find(self, lost: LostPath) -> LostPath:
        if not lost.fits:
            leads, holds = self._look(lost, lost.path)
            return lost._replace(leads=_digest(leads), holds=_digest(holds))
        found = {path: self._look(lost, path) for path in self._list_matches(lost.path)}
        # New names may come and go, but not new folders.
        folders = sorted({leads.rpartition("/")[0] for leads, _ in found.values()})
        return lost._replace(leads=_digest(folders), holds=_digest(sorted(found.items())))

    def _look(self, lost: LostPath, path: str) -> tuple[str, Any]:
        """Return where the path leads and what is there; nothing if it may not be opened."""
        path = self._resolve_upwards(path)
        follow = follows_links(lost.does, path)
        with suppress(Refusal, OSError, ValueError), self.jail.open_deepest(path, follow, reading=True) as at:
            place, missing = at
            if missing:
                found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
                return join_path(place.path, missing), ["missing", format_identity(found)]
            return place.path, self._describe(lost, place)
        return "", None

    def _resolve_upwards(self, path: str) -> str:
        """Behind a link, `..` is another folder than the text says."""
        if ".." not in path.split("/"):
            return path
        above, _, name = path.rstrip("/").rpartition("/")
        inside = name not in ("", ".", "..")
        real = os.path.realpath(self.jail.root / (above if inside else path))
        return posixpath.join(real, name) if inside else real

    def _describe(self, lost: LostPath, place: JailPath) -> Any:
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        identity = format_identity(found)
        if lost.does in BY_GIT:
            return [identity, self._describe_for_git(lost, place, stat.S_ISDIR(found.st_mode))]
        if stat.S_ISDIR(found.st_mode):
            return [identity, self._describe_folder(lost, place) if lost.does in WITH_CONTENT else ""]
        self.entries -= 1
        return [identity, *self._describe_entry(place.name, place.folder, found)]

    def _describe_entry(self, name: str, folder: int, found: os.stat_result) -> list[Any]:
        if stat.S_ISLNK(found.st_mode):
            return ["link", os.readlink(name, dir_fd=folder)]
        if not stat.S_ISREG(found.st_mode):
            return [stat.S_IFMT(found.st_mode)]
        if self.files <= 0 or found.st_size > self.size:
            return ["file", found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        self.files, self.size = self.files - 1, self.size - found.st_size
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
            return ["file", found.st_size, hashlib.file_digest(file, "sha256").hexdigest()]

    def _describe_folder(self, lost: LostPath, place: JailPath, left: Container[str] = ()) -> str:
        """Digest what is in a folder and below it, but for the paths that are `left`."""
        digest, with_git = hashlib.sha256(), lost.does in ("deletes", "deletes in", "deletes some in")
        top = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place.folder)
        try:
            for above, folders, names, here in os.fwalk(".", dir_fd=top):
                folder = join_path(place.path, os.path.normpath(above))
                # Sorted, because the limits must meet the same ones each time.
                folders[:] = sorted(one for one in folders if self._is_counted(one, here, with_git))
                for name in sorted((*folders, *names)):
                    path = join_path(folder, name)
                    if path in left or (name in GIT_PASSING and posixpath.basename(folder) == GIT):
                        continue
                    if self.entries <= 0:
                        return digest.hexdigest()
                    self.entries -= 1
                    digest.update(_encode([path, *self._describe_below(name, here)]))
        finally:
            os.close(top)
        return digest.hexdigest()

    def _is_counted(self, name: str, folder: int, with_git: bool) -> bool:
        """Menugate's own state changes with every call, and no command gets to it."""
        return (with_git or name != GIT) and not self.jail.is_private(folder, name)

    def _describe_below(self, name: str, folder: int) -> list[Any]:
        try:
            return self._describe_entry(name, folder, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError as error:
            return [error.errno]

    # What would git discard or clean?

    def _describe_for_git(self, lost: LostPath, place: JailPath, is_folder: bool) -> str:
        path = place.path
        if lost.does == "resets":
            around = find_entries(self.jail, path, inside=True)
            path = around.top if isinstance(around, TrackedFiles) else path
        tracked = find_entries(self.jail, path, inside=is_folder)
        if isinstance(tracked, Tracking):
            return tracked
        if lost.does in ("discards", "resets"):
            return _digest(list(self._describe_changed(tracked)))
        names = {join_path(tracked.top, os.fsdecode(entry.path)) for entry in tracked.entries}
        return self._describe_folder(lost, place, names) if is_folder else ""

    def _describe_changed(self, tracked: TrackedFiles) -> Iterator[list[Any]]:
        for entry in tracked.entries:
            if self.entries <= 0:
                return
            self.entries -= 1
            path = join_path(tracked.top, os.fsdecode(entry.path))
            with suppress(OSError, ValueError):
                found = os.lstat(self.jail.root / path)
                if entry.mode == SUBMODULE or _is_as_git_saw_it(found, entry):
                    continue
                if any(find_differences(self.jail, tracked, entry)):
                    with self.jail.open_place(path, follow=False, reading=True) as place:
                        yield [path, *self._describe_below(place.name, place.folder)]

    # Which names does a pattern fit?

    def _list_matches(self, pattern: str) -> list[str]:
        """List every path that it could fit, and perhaps more: a sign stands for anything."""
        found = ["/" if pattern.startswith("/") else "."]
        for part in pattern.split("/"):
            if part in ("", "."):
                continue
            if SIGNS.search(part) is None:
                found = [posixpath.join(folder, part) for folder in found]
                continue
            found = [posixpath.join(folder, name) for folder in found for name in self._list_names(folder, part)]
        slash = "/" if pattern.endswith("/") else ""
        return [path + slash for path in found]

    def _list_names(self, folder: str, part: str) -> list[str]:
        start, *_, end = SIGNS.split(part)
        names: list[str] = []
        with suppress(Refusal, OSError, ValueError):
            opened = self.jail.open_folder(self._resolve_upwards(folder))
            try:
                with os.scandir(opened) as found:
                    names = sorted(one.name for one in found)
            finally:
                os.close(opened)
        fitting = (one for one in names if one.startswith(start) and one.endswith(end))
        names = [one for one in fitting if start or not one.startswith(".")][: max(self.entries, 0)]
        self.entries -= len(names)
        return names


def _is_as_git_saw_it(found: os.stat_result, entry: IndexEntry) -> bool:
    times = int(found.st_mtime), found.st_mtime_ns % 10**9
    same_kind = stat.S_ISREG(found.st_mode) and stat.S_ISREG(entry.mode)
    return same_kind and found.st_size & 0xFFFFFFFF == entry.size and times == (entry.seconds, entry.nanoseconds)


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _digest(value: Any) -> str:
    return hashlib.sha256(_encode(value)).hexdigest()
