"""What may this call change among the workspace's files? Writes, moves and deletes, within the call's grant."""

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

from mcp_server.guards import atomic
from mcp_server.guards.atomic import (
    SCRATCH_PREFIX,
    copy_file_attributes,
    discard_draft,
    open_scratch_folder,
    rename_without_overwriting,
    replace_exactly,
    sync_folder,
    write_draft,
)
from mcp_server.guards.file_reads import LISTING, ReadableFiles, build_entry, stat_existing
from mcp_server.guards.jail import JailPath
from mcp_server.guards.refusals import (
    build_dangling_link_refusal,
    build_file_kind_refusal,
    build_move_refusal,
    build_not_folder_refusal,
    build_path_refusal,
    build_private_refusal,
    build_ruled_out_refusal,
    build_stale_refusal,
    describe_file_kind,
)
from mcp_server.model.files import DirectoryEntry, Stamp
from mcp_server.model.results import Refusal

MOST_DEPTH = 64
"""Levels of a folder that is moved which are looked through."""


class WorkspaceFiles(ReadableFiles, frozen=True):
    """The `Files` port over one workspace. Without a grant it only reads.

    In a rehearsal, each method makes every check, and ends the call before it changes anything.
    """

    def write(self, path: str, data: bytes, expect: Stamp | None, mode: int | None = None) -> DirectoryEntry:
        asked = self.jail.to_relative(path)
        allow = partial(self.grant.require_change, asked)
        if expect is None:
            with self._make_place(asked, allow) as place:
                self._create(place, data, mode)
                return self._settle(asked, place)
        self.grant.require_write(asked)
        with self.jail.open_place(asked) as place:
            allow(place)
            self._replace(asked, place, data, expect, mode)
            return self._settle(asked, place)

    def _settle(self, asked: str, place: JailPath) -> DirectoryEntry:
        """Return what the call has made there, which is its own from now on."""
        if self.grant.bounds is not None:
            self.grant.bounds.settle(asked, place.path)
        return build_entry(place.path, stat_existing(place))

    def _create(self, place: JailPath, data: bytes, mode: int | None) -> None:
        if place.linked and place.stat() is None:
            raise build_dangling_link_refusal(place.path)
        if place.stat() is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        self.grant.end_rehearsal()
        name = write_draft(place.folder, data, None, mode)
        try:
            rename_without_overwriting((place.folder, name), (place.folder, place.name))
        finally:
            discard_draft(place.folder, name)
        sync_folder(place.folder)

    def _replace(self, asked: str, place: JailPath, data: bytes, expect: Stamp, mode: int | None) -> None:
        if place.stat() is None:
            raise build_stale_refusal(place.path, "is gone")
        # Opened for writing, though only read: this fails for a file its owner made read-only, which must not be
        # replaced.
        old = self.jail.open_at(place, os.O_RDWR)
        try:
            before = os.fstat(old)
            now = self._read_place(place, expect.size + 1 if expect.digest else 0, 0, asked, old)
            if self.grant.bounds is not None:
                self.grant.bounds.require_object(asked, place, before, old)
            if not now.stamp.is_same_as(expect):
                raise build_stale_refusal(place.path, "changed")
            self.grant.end_rehearsal()
            self._swap_draft(place, data, old, mode)
        finally:
            os.close(old)

    def _swap_draft(self, place: JailPath, data: bytes, old: int, mode: int | None) -> None:
        before = os.fstat(old)
        name = write_draft(place.folder, data, before, mode)
        try:
            copy_file_attributes(old, place.folder, name)
            if not replace_exactly((place.folder, name), (place.folder, place.name), before):
                raise build_stale_refusal(place.path, "changed")
        finally:
            discard_draft(place.folder, name)
        sync_folder(place.folder)

    def make_folder(self, path: str) -> DirectoryEntry:
        asked = self.jail.to_relative(path)
        with self._make_place(asked, partial(self.grant.require_change, asked)) as place:
            if place.stat() is None:
                self.grant.end_rehearsal()
            with suppress(FileExistsError):
                os.mkdir(place.name, dir_fd=place.folder)
            found = stat_existing(place)
            if not stat.S_ISDIR(found.st_mode):
                raise build_not_folder_refusal(place.path)
            return self._settle(asked, place)

    @contextmanager
    def _make_place(
        self, asked: str, allow: Callable[[JailPath], None], follow: bool = True
    ) -> Generator[JailPath, None, None]:
        """Open a place, and make the folders above it that are missing."""
        self.grant.require_write(asked)
        try:
            with self.jail.make_place(asked, allow, follow, self.grant.is_rehearsal) as place:
                yield place
        except Refusal as refusal:
            if isinstance(refusal.__cause__, NotADirectoryError):
                raise build_not_folder_refusal(asked.rpartition("/")[0]) from refusal
            raise

    def move(self, source: str, destination: str, approved: atomic.ApprovalCheck = None) -> DirectoryEntry:
        old, new = self.jail.to_relative(source), self.jail.to_relative(destination)
        with self.jail.open_place(old, follow=False) as here:
            found = self._check_movable(old, here)
            # Moving a secret needs the right to read it: under a new name, a later read would no longer ask.
            self.grant.require_read(old, here)
            if self.jail.has_private_below(here):
                raise build_private_refusal(old)
            allow = partial(self.grant.require_put, new, source=here)
            with self._make_place(new, allow, follow=False) as there:
                if there.stat() is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                self.grant.end_rehearsal()
                check = self._build_tree_check(here, there, found, approved)
                try:
                    with atomic.move_aside(here, check) as it:
                        self._require_same(old, here, it)
                        # The check looks at the new path, where the user was shown nothing.
                        if self.grant.bounds is not None:
                            self.grant.bounds.settle(new, there.path)
                        atomic.put_in_place(it, there, check)
                except OSError as error:
                    if error.errno not in (errno.EXDEV, errno.EINVAL):
                        raise
                    raise build_move_refusal(error, old, new) from error
                return build_entry(there.path, found)

    def trash(self, path: str, approved: atomic.ApprovalCheck = None) -> str:
        asked = self.jail.to_relative(path)
        self.grant.require_destroy()
        with self.jail.open_place(asked, follow=False) as place:
            self._check_deletable(asked, place)
            self.grant.end_rehearsal()
            with atomic.move_aside(place, approved) as it:
                self._require_same(asked, place, it)
                return self.trash_can.move_to_trash(self.jail, it)

    def remove(self, path: str, approved: atomic.ApprovalCheck = None) -> None:
        asked = self.jail.to_relative(path)
        self.grant.require_destroy()
        with self.jail.open_place(asked, follow=False) as place:
            away = os.rmdir if stat.S_ISDIR(self._check_deletable(asked, place).st_mode) else os.unlink
            self.grant.end_rehearsal()
            with atomic.move_aside(place, approved) as it:
                self._require_same(asked, place, it)
                away(it.name, dir_fd=it.folder)

    def _require_same(self, asked: str, place: JailPath, held: JailPath) -> None:
        """Raise unless what was moved aside is what the user was shown under its own name."""
        if self.grant.bounds is not None:
            self.grant.bounds.require_object(asked, place, stat_existing(held))

    def _build_tree_check(
        self, here: JailPath, there: JailPath, found: os.stat_result, approved: atomic.ApprovalCheck
    ) -> atomic.ApprovalCheck:
        """Build the check of a folder that is moved: everything in it is judged again, where it is and where it goes,
        because the decision saw what was in it before."""
        bounds = self.grant.bounds
        if bounds is None or not stat.S_ISDIR(found.st_mode) or not (bounds.is_kept or bounds.is_kept_as_target):
            return approved

        def check(path: str) -> None:
            if approved is not None:
                approved(path)
            for entry in self.list_folder(path, MOST_DEPTH):
                inner = entry.path[len(path) :]
                for is_kept, top in ((bounds.is_kept, here.path), (bounds.is_kept_as_target, there.path)):
                    if is_kept is not None and is_kept(top + inner):
                        raise build_ruled_out_refusal(top, top + inner)

        return check

    def _check_movable(self, asked: str, place: JailPath) -> os.stat_result:
        self.grant.require_change(asked, place)
        if place.name == ".":
            raise build_path_refusal("The workspace itself cannot be moved or deleted.", "Name a file or folder in it.")
        found = stat_existing(place)
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

    def make_scratch_folder(self, below: str = ".") -> AbstractContextManager[str]:
        self.grant.require_write(SCRATCH_PREFIX)
        return open_scratch_folder(self.jail, below)
