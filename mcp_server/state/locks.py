"""Is there a running server that is not visible from here? Each holds a lock while it runs, which no namespace
hides."""

import fcntl
import json
import os
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_server.state.location import make_private_folder
from mcp_server.state.processes import get_own_pid, read_pid_namespace, read_start_time
from mcp_server.state.servers import FOLDER

FIRST = "pid:[4026531836]"
"""The machine's own PID namespace: the kernel gives it this number."""
MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class LifeLock:
    """Held by a server from before its first call until its last child has ended."""

    path: Path
    file: int

    @classmethod
    def take(cls, state: Path) -> "LifeLock":
        """Take a lock with a unique name: servers in two containers may have the same process id."""
        folder = state / FOLDER
        make_private_folder(folder)
        pid = get_own_pid()
        name = f"{pid}-{secrets.token_hex(4)}"
        draft, path = folder / f".{name}.tmp", folder / f"{name}.lock"
        file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(
                file, json.dumps({"pid": pid, "born": read_start_time(pid), "namespace": read_pid_namespace()}).encode()
            )
            # Rename only now, so that the file is found locked and complete.
            draft.rename(path)
        except BaseException:
            os.close(file)
            draft.unlink(missing_ok=True)
            raise
        return cls(path, file)

    def release(self) -> None:
        with suppress(OSError):
            self.path.unlink()
        os.close(self.file)


def find_unseen_server(state: Path) -> int | None:
    """Return the process id of a running server that /proc does not show here, as it reported it, or 0 if it reported
    none. None if there is no such server, or if it is in another container and we are on the machine itself."""
    if not sys.platform.startswith("linux"):
        return None
    for path in sorted((state / FOLDER).glob("*.lock")):
        if (said := _find_holder(path)) is None:
            continue
        pid, when, there = said
        here = read_pid_namespace()
        if not (pid and when and read_start_time(pid) == when) and (here != FIRST or there == here):
            return pid
    return None


def _find_holder(path: Path) -> tuple[int, str, str] | None:
    """Return what the lock's holder wrote about itself; None if nobody holds the lock, and then the file is removed."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared, so that two processes looking at the same time do not mistake each other for a server.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        path.unlink()
    except BlockingIOError:
        return _read_holder(file)
    except OSError:
        return None
    finally:
        os.close(file)
    return None


def _read_holder(file: int) -> tuple[int, str, str]:
    try:
        said = json.loads(os.read(file, MOST_BYTES))
        return int(said["pid"]), str(said["born"]), str(said["namespace"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0, "", ""
