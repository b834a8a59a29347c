"""Which process started which, and is it still the same one?"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from mcp_server.model.processes import MARK

MAX_DEPTH = 200
PS_SECONDS = 5.0


class _Status(NamedTuple):
    """What the system says about a process; empty if it cannot be seen."""

    state: str = ""
    parent: int = 0
    start_time: str = ""


def read_start_time(pid: int) -> str:
    """Return when the process started, to tell it from a later one with the same number; empty if unknown."""
    return _read_status(pid).start_time


def get_own_pid() -> int:
    """Return our own number in /proc. `getpid` returns another in a namespace without a /proc of its own."""
    try:
        return int(Path("/proc/self").readlink().name)
    except (OSError, ValueError):
        return os.getpid()


def read_pid_namespace() -> str:
    """Identify the namespace that our process numbers belong to; empty if unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def is_process_gone(pid: int, start_time: str) -> bool:
    """Has the process that started at this time ended? A zombie counts as ended."""
    status = _read_status(pid)
    return status.start_time != start_time or status.state in ("Z", "X")


def has_ended_or_changed(pid: int, start_time: str) -> bool:
    """Is a process number that is in use that of a zombie, or of another process than the one that started at this
    time? False if we cannot tell. `start_time`: empty if unknown."""
    status = _read_status(pid)
    return status.state in ("Z", "X") or ("" not in (start_time, status.start_time) and status.start_time != start_time)


def find_ancestors(pid: int) -> dict[int, str]:
    """Find its parent, the parent's parent, and so on, as far as we can see them, and when each started."""
    ancestors: dict[int, str] = {}
    # Without /proc, the kernel still tells us our own parent.
    parent = _read_status(pid).parent or (os.getppid() if pid == os.getpid() else 0)
    while parent > 0 and parent not in (pid, *ancestors) and len(ancestors) < MAX_DEPTH:
        status = _read_status(parent)
        ancestors[parent] = status.start_time
        parent = status.parent
    return ancestors


def read_server_mark(pid: int) -> str:
    """Return the mark of the server that started this process without a sandbox, from its initial environment. Ours is
    unreadable once `forbid_memory_reading` was called, so look before that."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    variable = next((entry for entry in environment.split(b"\0") if entry.startswith(f"{MARK}=".encode())), b"")
    return variable.partition(b"=")[2].decode("ascii", "replace")[:20]


def _read_status(pid: int) -> _Status:
    if not sys.platform.startswith("linux"):
        return _ask_ps(pid)
    try:
        line = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return _Status()
    # The name before them may itself contain spaces and brackets.
    fields = line.rpartition(")")[2].split()
    return _Status(fields[0], int(fields[1]), fields[19]) if len(fields) > 19 else _Status()


def _ask_ps(pid: int) -> _Status:
    try:
        result = subprocess.run(  # noqa: S603  # every word is ours
            ["/bin/ps", "-o", "stat=", "-o", "ppid=", "-o", "lstart=", "-p", str(pid)],
            env={"LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return _Status()
    words = result.stdout.decode("ascii", "replace").split()
    return _Status(words[0][0], int(words[1]), " ".join(words[2:])) if len(words) > 2 else _Status()
