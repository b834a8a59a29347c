"""How many processes may root's child start? A control group counts them, if we can create one.

No per-process limit applies to root. Counting from outside comes too late: a fork bomb that doubles every millisecond
has thousands of processes before anything looks.
"""

import os
import secrets
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.sandbox.launch import Launch

GROUPS = Path("/sys/fs/cgroup/pids")
NAME = "menugate-"
SHELL = "/bin/sh"
MIN_AGE_SECONDS = 60.0
"""After this long no process can still be about to join a group."""
JOIN_SCRIPT = 'echo 0 > "$0"; exec "$@"'
"""A process that moves itself, by `0` instead of its number, moves at once. Moving it by number would wait for every
core, which takes longer than the rest of a start."""


class ProcessCgroup(Struct, frozen=True):
    folder: Path

    @classmethod
    def create(cls, most: int) -> "ProcessCgroup | None":
        """Create a group for at most this many; None if that is not allowed or not possible."""
        own = _find_own_group()
        if own is None:
            return None
        # Groups that were still in use at their end, here or in a server that was killed. Not new ones: their process
        # may not have joined yet.
        for left in own.glob(f"{NAME}*"):
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - MIN_AGE_SECONDS:
                    left.rmdir()
        group = cls(own / f"{NAME}{os.getpid()}-{secrets.token_hex(4)}")
        try:
            group.folder.mkdir()
            (group.folder / "pids.max").write_text(str(most))
        except OSError:
            group.remove()
            return None
        return group

    def wrap_launch(self, launch: Launch) -> Launch:
        """Make the launched process join before it becomes the command, and so before it can start another."""
        tasks = str(self.folder / "tasks")
        if launch.plan is not None:
            return replace(launch, plan={**launch.plan, "group": tasks})
        return replace(launch, argv=[SHELL, "-c", JOIN_SCRIPT, tasks, *launch.argv])

    def remove(self) -> None:
        """Remove it now if it is empty, otherwise when the next one is made."""
        with suppress(OSError):
            self.folder.rmdir()


@cache
def _find_own_group() -> Path | None:
    """Find the group of this server, in which it may create others. Should it be moved, this one still counts."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    groups = [line.split(":", 2)[2] for line in lines if "pids" in line.split(":", 2)[1].split(",")]
    return GROUPS / groups[0].lstrip("/") if groups and os.access(GROUPS, os.W_OK) else None
