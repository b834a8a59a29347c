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
    """When the process began, by which it is told from a later one of the same number; empty where nobody knows."""
    if not sys.platform.startswith("linux"):
        return _ask_ps(pid, "lstart=")
    fields = _read_stat(pid)
    return fields[19] if len(fields) > 19 else ""


def get_own_pid() -> int:
    """Our own number as /proc counts. A namespace that was made without a /proc of its own tells us another one."""
    try:
        return int(Path("/proc/self").readlink().name)
    except (OSError, ValueError):
        return os.getpid()


def read_pid_namespace() -> str:
    """Which processes number each other as ours does; empty where nobody says."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def is_process_gone(pid: int, since: str) -> bool:
    """Did the process that began then end? One that only waits for its parent to hear of it did."""
    return read_start_time(pid) != since or _read_stat(pid)[:1] in (["Z"], ["X"])


def find_ancestors(pid: int) -> Iterator[int]:
    """Who started it, who started that one, and so on, as far as they can be seen."""
    seen = {pid}
    for _ in range(DEEPEST):
        # Where /proc is hidden, the kernel still says who started us.
        pid = _find_parent(pid) or (os.getppid() if pid == os.getpid() else 0)
        if pid < 1 or pid in seen:
            return
        seen.add(pid)
        yield pid


def read_server_mark(pid: int) -> str:
    """The server that started this process in no sandbox, by what the process was given at its start."""
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
    """What comes after the name, which may hold anything."""
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
