"""Which process started which, and is it still the same one?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mcp_server.model.processes import MARK

MAX_DEPTH = 200
PS_SECONDS = 5.0


def read_start_time(pid: int) -> str:
    """Return when the process started, to tell it from a later one with the same number; empty if unknown."""
    if not sys.platform.startswith("linux"):
        return _ask_ps(pid, "lstart=")
    fields = _read_stat(pid)
    return fields[19] if len(fields) > 19 else ""


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
    return read_start_time(pid) != start_time or _read_stat(pid)[:1] in (["Z"], ["X"])


def find_ancestors(pid: int) -> Iterator[int]:
    """Yield its parent, the parent's parent, and so on, as far as we can see them."""
    seen = {pid}
    for _ in range(MAX_DEPTH):
        # Without /proc, the kernel still tells us our own parent.
        pid = _find_parent(pid) or (os.getppid() if pid == os.getpid() else 0)
        if pid < 1 or pid in seen:
            return
        seen.add(pid)
        yield pid


def read_server_mark(pid: int) -> str:
    """Return the mark of the server that started this process without a sandbox, from its initial environment."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    variable = next((entry for entry in environment.split(b"\0") if entry.startswith(f"{MARK}=".encode())), b"")
    return variable.partition(b"=")[2].decode("ascii", "replace")[:20]


def _find_parent(pid: int) -> int:
    if sys.platform.startswith("linux"):
        fields = _read_stat(pid)
        parent = fields[1] if len(fields) > 1 else ""
    else:
        parent = _ask_ps(pid, "ppid=")
    return int(parent) if parent.isdigit() else 0


def _read_stat(pid: int) -> list[str]:
    """Return the fields after the name, which may itself contain spaces and brackets."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return line.rpartition(")")[2].split()


def _ask_ps(pid: int, column: str) -> str:
    try:
        result = subprocess.run(  # noqa: S603  # every word is ours
            ["/bin/ps", "-o", column, "-p", str(pid)],
            env={"LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join(result.stdout.decode("ascii", "replace").split())
