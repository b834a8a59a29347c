"""Which disk space is claimed before it is needed? The engine's log, so that no commit waits for the file to grow, and
a reserve for when the disk is full.

A commit that makes the log longer must also write the new length to disk, which costs nearly as much again as the row
itself. The engine reads its log up to the first frame that was never written, so zeros after the last one mean nothing
to it; and at this length it starts over from the front in any case.
"""

import contextlib
import errno
import os
from pathlib import Path

from msgspec import Struct

FRAME = 4096 + 24
FULL_LENGTH = 32 + 1000 * FRAME
STEP = 128 * FRAME
"""Bytes per write: few enough that a call arriving meanwhile hardly notices."""
RESERVE_BYTES = 1 << 20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
FULL = "the disk with `{}` is full: no call runs until there is space again."


def lengthen_log(database: Path) -> bool:
    """Lengthen by one step, while holding the engine's write lock; False if there is nothing more to do."""
    try:
        log = os.open(f"{database}-wal", os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        length = os.fstat(log).st_size
        missing = min(FULL_LENGTH - length, STEP)
        if length == 0 or missing <= 0:
            return False
        # On a full disk less is written, or nothing: commits then grow the file as they would have anyway.
        with contextlib.suppress(OSError):
            os.pwrite(log, bytes(missing), length)
            os.fdatasync(log)
            return os.fstat(log).st_size < FULL_LENGTH
        return False
    finally:
        os.close(log)


def is_disk_full(state: Path) -> bool:
    """Is the disk too full to record another call? Tested with an unnamed file that is gone at once."""
    needed = FRAME if (state / "state.reserve").exists() else RESERVE_BYTES
    try:
        file = os.open(state, os.O_WRONLY | os.O_CLOEXEC | os.O_TMPFILE, 0o600)
    except (OSError, AttributeError) as wrong:
        # Not every system has such files; the reported free space is the next best.
        return getattr(wrong, "errno", None) in NO_ROOM or _get_free_bytes(state) < needed
    try:
        return os.write(file, bytes(needed)) < needed
    except OSError as wrong:
        return wrong.errno in NO_ROOM
    finally:
        os.close(file)


def _get_free_bytes(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return RESERVE_BYTES
    return found.f_bavail * found.f_frsize


class DiskReserve(Struct, frozen=True):
    """A file that exists only to be given up: without it, a full disk can still take what has already happened."""

    path: Path

    def keep(self) -> bool:
        """Create the file if missing; False if there is no room."""
        if self.path.exists():
            return True
        file = None
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.write(file, bytes(RESERVE_BYTES))
            kept = os.fstat(file).st_size == RESERVE_BYTES
        except OSError:
            kept = False
        finally:
            if file is not None:
                os.close(file)
        if not kept:
            self.spend()
        return kept

    def spend(self) -> bool:
        """Delete the file; False if there was none."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True
