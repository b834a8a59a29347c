"""Why does a commit not wait for its file to grow? Because the engine's log has its length before it is needed.

A commit that makes the log longer has to put the new length on the disk too, which costs nearly as much again as the
row itself. The engine reads its log up to the first frame that was never written, so zeros behind the last one say
nothing to it; and it starts over from the front at this length in any case.
"""

import contextlib
import os
from pathlib import Path

FRAME = 4096 + 24
FULL_LENGTH = 32 + 1000 * FRAME
STEP = 128 * FRAME
"""What is written at once: little enough that a call which comes meanwhile hardly notices."""


def lengthen(database: Path) -> bool:
    """One step, for whoever holds the engine's write lock; False where there is no more to do."""
    try:
        log = os.open(f"{database}-wal", os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        length = os.fstat(log).st_size
        missing = min(FULL_LENGTH - length, STEP)
        if length == 0 or missing <= 0:
            return False
        # On a full disk less is written, or nothing: then commits grow the file as they would have anyway.
        with contextlib.suppress(OSError):
            os.pwrite(log, bytes(missing), length)
            os.fdatasync(log)
            return os.fstat(log).st_size < FULL_LENGTH
        return False
    finally:
        os.close(log)
