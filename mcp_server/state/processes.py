"""Which process started which, and is it still the same one?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mcp_server.model.processes import MARK

DEEPEST = 200
SECONDS = 5.0


def read_start_time(pid: int) -> str:
    """Return when the process began, which tells it from a later one with the same number; empty if unknown."""
    if not sys.platform.startswith("linux"):
        return _ask_ps(pid, "lstart=")
    fields = _read_stat(pid)
    return fields[19] if len(fields) > 19 else ""


def get_own_pid() -> int:
    """Return our own number as /proc counts. In a namespace without a /proc of its own, getpid returns another."""
    try:
        return int(Path("/proc/self").readlink().name)
    except (OSError, ValueError):
        return os.getpid()


def read_pid_namespace() -> str:
    """Identify the namespace in which process numbers mean the same as for us; empty if unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def is_process_gone(pid: int, since: str) -> bool:
    """Has the process that began then ended? A zombie counts as ended."""
    return read_start_time(pid) != since or _read_stat(pid)[:1] in (["Z"], ["X"])


def find_ancestors(pid: int) -> Iterator[int]:
    """Yield its parent, the parent's parent, and so on, as far as they are visible."""
    seen = {pid}
    for _ in range(DEEPEST):
        # If /proc is hidden, the kernel still tells our own parent.
        pid = _find_parent(pid) or (os.getppid() if pid == os.getpid() else 0)
        if pid < 1 or pid in seen:
            return
        seen.add(pid)
        yield pid


def read_server_mark(pid: int) -> str:
    """Return the server that started this process without a sandbox, from the process's initial environment."""
    try:
        given = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    found = next((one for one in given.split(b"\0") if one.startswith(f"{MARK}=".encode())), b"")
    return found.partition(b"=")[2].decode("ascii", "replace")[:20]


def _find_parent(pid: int) -> int:
    if sys.platform.startswith("linux"):
        fields = _read_stat(pid)
        found = fields[1] if len(fields) > 1 else ""
    else:
        found = _ask_ps(pid, "ppid=")
    return int(found) if found.isdigit() else 0


def _read_stat(pid: int) -> list[str]:
    """Return the fields after the name, which may contain anything."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return said.rpartition(")")[2].split()


def _ask_ps(pid: int, what: str) -> str:
    try:
        ran = subprocess.run(  # noqa: S603  # every word is ours
            ["/bin/ps", "-o", what, "-p", str(pid)],
            env={"LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return " ".join(ran.stdout.decode("ascii", "replace").split())
