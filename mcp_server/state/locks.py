"""Is a server running that we cannot see? Each holds a file lock while it runs, which no PID namespace hides."""

import fcntl
import json
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from mcp_server.state.location import make_private_folder
from mcp_server.state.processes import get_own_pid, read_pid_namespace, read_start_time
from mcp_server.state.servers import FOLDER

INITIAL_NAMESPACE = "pid:[4026531836]"
"""The machine's own PID namespace, which always has this number."""
MAX_BYTES = 4096


class LifeLock(Struct, frozen=True):
    """A lock that a server holds from before its first call until its last child has ended."""

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
            # Rename only now, so that nobody finds the file unlocked or incomplete.
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
    """Return the process id of a running server that /proc does not show here, 0 if it wrote none.

    None if there is no such server. On the machine itself, servers in containers do not count.
    """
    if not sys.platform.startswith("linux"):
        return None
    for path in sorted((state / FOLDER).glob("*.lock")):
        if (holder := _find_holder(path)) is None:
            continue
        pid, born, namespace = holder
        here = read_pid_namespace()
        is_visible = pid and born and read_start_time(pid) == born
        if not is_visible and (here != INITIAL_NAMESPACE or namespace == here):
            return pid
    return None


def _find_holder(path: Path) -> tuple[int, str, str] | None:
    """Return what the lock's holder wrote about itself. If nobody holds the lock, remove the file and return None."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared, so that two processes that look at the same time do not take each other for a server.
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
        fields = json.loads(os.read(file, MAX_BYTES))
        return int(fields["pid"]), str(fields["born"]), str(fields["namespace"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0, "", ""
