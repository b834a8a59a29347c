"""Which configuration does each running server use? Each writes it to a small file, for the person's commands."""

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from mcp_server.state.processes import is_process_gone, read_start_time

FOLDER = "servers"
MOST_BYTES = 2 << 20
STOP = signal.SIGUSR1
"""On this signal a server ends everything that runs: a signal needs no space on any disk."""
OBEYED, LOOK = 0, 0.02
"""A server sets its file to this date to say that it obeyed; a date needs no space either."""


CLOSED = (
    "{path} cannot be read, so which servers, clients and calls there are here is not known. "
    "Type `chmod {mode} {path}`, then look again."
)


@dataclass(frozen=True, slots=True)
class Server:
    """The configuration a server uses."""

    pid: int
    born: str
    config: str | None = None
    """The operator's file, if one applies."""
    profile: str | None = None
    """The profile requested at its start, beside the files."""
    max_profile: str | None = None
    menus: Sequence[str] = ()
    since: int = 0
    """Since when it uses this configuration."""
    fault: str = ""
    """Why the version now on disk does not apply; the last valid one still does."""
    restart: Sequence[str] = ()
    """What changed on disk and only applies after a restart."""
    texts: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """What applies instead of the file on disk, by file, or None if there is no such file; only if there is a fault."""
    older: Sequence[Mapping[str, str | None]] = ()
    """Earlier contents of the files that apply as well: what replaced them has not settled yet."""
    stoppable: bool = False
    """It handles `STOP`; any other process would die of that signal."""

    @property
    def differences(self) -> list[str]:
        """Say in words for the person which files' content does not apply in this server."""
        told: list[str] = []
        if self.fault:
            told.append(f"Process {self.pid} keeps using the last valid rules: {self.fault}.")
        if self.older:
            told.append(
                f"Process {self.pid} also forbids what these files forbade before, until a valid one has lain still."
            )
        if self.restart:
            names = ", ".join(f"`{name}`" for name in self.restart)
            told.append(f"Process {self.pid} runs without the changes to {names}; start it again for them to hold.")
        return told


def publish_server(state: Path, said: Server) -> None:
    """Atomic: a concurrent reader finds the previous version."""
    folder = state / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    draft = folder / f".{said.pid}.tmp"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(asdict(said), out)
    draft.replace(_get_server_path(state, said.pid))


def withdraw_server(state: Path, pid: int) -> None:
    """Remove the files of this process, and of those that died without doing so."""
    left = [path for path in (state / FOLDER).glob("*.json") if _read_server(path) is None]
    for path in (_get_server_path(state, pid), *left):
        with suppress(OSError):
            path.unlink()


def load_servers(state: Path) -> list[Server]:
    """Load those that still run, ordered by process number."""
    found = (_read_server(path) for path in (state / FOLDER).glob("*.json"))
    return sorted((one for one in found if one is not None), key=lambda one: one.pid)


def describe_unreadable_folder(state: Path) -> str:
    """Say why the running servers cannot be listed, and what to type; empty if they can."""
    folder = state / FOLDER
    try:
        every = [folder, *folder.iterdir()] if folder.exists() else []
    except OSError:
        every = []
        if not os.access(folder, os.R_OK | os.X_OK):
            return CLOSED.format(path=folder, mode="700")
    need = {True: os.R_OK | os.W_OK | os.X_OK, False: os.R_OK}
    shut = next((one for one in every if not one.name.startswith(".") and not os.access(one, need[one.is_dir()])), None)
    return CLOSED.format(path=shut, mode="700" if shut.is_dir() else "600") if shut and shut.exists() else ""


def stop_servers_by_signal(states: Sequence[Path], patience: float) -> tuple[list[int], list[int]]:
    """End everything by signal if no order can be written. Return this account's servers that obeyed in time, and those
    that did not."""
    found = [
        (state, one) for state in states for one in load_servers(state) if is_own_file(_get_server_path(state, one.pid))
    ]
    for state, one in found:
        with suppress(OSError):
            os.utime(_get_server_path(state, one.pid))
        # Check again: a signal like this must not hit a process that has taken over the number since.
        if one.stoppable and not is_process_gone(one.pid, one.born):
            with suppress(OSError):
                os.kill(one.pid, STOP)
    until = time.monotonic() + patience
    waiting = found
    while waiting and time.monotonic() < until:
        waiting = [
            (state, one)
            for state, one in waiting
            if not is_process_gone(one.pid, one.born) and not _has_obeyed(state, one.pid)
        ]
        time.sleep(LOOK if waiting else 0)
    silent = [one.pid for _, one in waiting]
    return [one.pid for _, one in found if one.pid not in silent], silent


def is_own_file(path: Path) -> bool:
    """Did this account write it? Another account's file could name any of our processes."""
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def mark_obeyed(state: Path, pid: int) -> None:
    """Say that nothing runs here any more."""
    with suppress(OSError):
        os.utime(_get_server_path(state, pid), (OBEYED, OBEYED))


def _has_obeyed(state: Path, pid: int) -> bool:
    try:
        return _get_server_path(state, pid).stat().st_mtime == OBEYED
    except OSError:
        return False


def _get_server_path(state: Path, pid: int) -> Path:
    return state / FOLDER / f"{pid}.json"


def _read_server(path: Path) -> Server | None:
    """None if it cannot be read, or if its process is not the one that wrote it."""
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            return None
        fields: Any = json.loads(path.read_text("utf-8"))
        said = Server(**cast(dict[str, Any], fields))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return said if said.born and read_start_time(said.pid) == said.born else None
