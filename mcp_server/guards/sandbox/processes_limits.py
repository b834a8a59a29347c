"""How much may a child use? Bounds that the kernel keeps, set before it runs its first instruction."""

import os
import resource
from contextlib import suppress
from pathlib import Path

from mcp_server.model.processes import ProcessLimits

NICENESS = 5
"""Whoever waits for an answer of ours comes before whoever computes."""
OPEN_FILES = 4096
LESS_DEAR = 500
"""Where memory runs out, the kernel ends a child before it ends the server."""


def bounds(limits: ProcessLimits, seconds: float) -> dict[int, int]:
    """By the kernel's numbers; computing for longer than all cores could in that time is a bug of the clock."""
    cores = os.cpu_count() or 1
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(seconds * cores) + 5,
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_NPROC: limits.processes,
    }


def lay_on(pid: int, found: dict[int, int]) -> None:
    """On a process that is held back until this is done; never looser than what holds for us."""
    for kind, most in found.items():
        hard = resource.getrlimit(kind)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, kind, (bound, bound))
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(LESS_DEAR))
