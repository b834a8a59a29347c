"""How many processes may root's child become? A control group counts them, where there is one to be had.

No bound of a process's own holds root. Counting from outside comes late: what doubles every millisecond is thousands
before anybody looks.
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
"""Seconds after which nobody is still on the way into one."""
STEP = 'echo 0 > "$0"; exec "$@"'
"""Who moves itself alone, by `0` and not by its number, is moved at once. Anything else waits until every core has seen
it, which takes longer than all the rest of a start."""


@dataclass(frozen=True)
class ProcessCgroup:
    folder: Path

    @classmethod
    def create(cls, most: int) -> "ProcessCgroup | None":
        """For so many; None where nobody may or can make one."""
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
        """Who is started steps inside before it is the one that was meant, and so before it can start another."""
        door = str(self.folder / "tasks")
        if launch.plan is not None:
            return replace(launch, plan={**launch.plan, "fence": door})
        return replace(launch, argv=[SHELL, "-c", STEP, door, *launch.argv])

    def remove(self) -> None:
        """It goes once the last of them is gone, now or when the next one is made."""
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
    """What was still in use when its turn came, here or in a server that was killed. Not what is new: nobody may have
    stepped into it yet."""
    old = time.time() - LEFT
    for left in folder.glob(f"{NAME}*"):
        with suppress(OSError):
            if left.stat().st_mtime < old:
                left.rmdir()
