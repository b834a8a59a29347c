"""How many processes may root's child start? A control group counts them, if one can be made.

No per-process limit holds root. Counting from outside comes too late: what doubles every millisecond is thousands
before anything looks.
"""

import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_server.guards.sandbox.launch import Launch

GROUPS = Path("/sys/fs/cgroup/pids")
NAME = "menugate-"
SHELL = "/bin/sh"
LEFT = 60.0
"""Seconds after which no process can still be about to join one."""
STEP = 'echo 0 > "$0"; exec "$@"'
"""A process that moves itself, by `0` instead of its number, moves at once. Anything else waits until every core has
seen it, which takes longer than the rest of a start."""


@dataclass(frozen=True)
class ProcessCgroup:
    folder: Path

    @classmethod
    def create(cls, most: int) -> "ProcessCgroup | None":
        """Create a group for at most this many; None if that is not allowed or not possible."""
        own = _find_own_group()
        if own is None:
            return None
        _remove_old_groups(own)
        fence = cls(own / f"{NAME}{os.getpid()}-{secrets.token_hex(4)}")
        try:
            fence.folder.mkdir()
            (fence.folder / "pids.max").write_text(str(most))
        except OSError:
            fence.remove()
            return None
        return fence

    def wrap_launch(self, launch: Launch) -> Launch:
        """Make the launched process join before it becomes the command, and so before it can start another."""
        door = str(self.folder / "tasks")
        if launch.plan is not None:
            return replace(launch, plan={**launch.plan, "fence": door})
        return replace(launch, argv=[SHELL, "-c", STEP, door, *launch.argv])

    def remove(self) -> None:
        """Remove it now if it is empty, otherwise when the next one is made."""
        with suppress(OSError):
            self.folder.rmdir()


def _find_own_group() -> Path | None:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    found = [line.split(":", 2)[2] for line in lines if "pids" in line.split(":", 2)[1].split(",")]
    return GROUPS / found[0].lstrip("/") if found and os.access(GROUPS, os.W_OK) else None


def _remove_old_groups(folder: Path) -> None:
    """Remove groups that were still in use at their end, here or in a server that was killed. Skip new ones: their
    process may not have joined yet."""
    old = time.time() - LEFT
    for left in folder.glob(f"{NAME}*"):
        with suppress(OSError):
            if left.stat().st_mtime < old:
                left.rmdir()
