"""Which configuration does each running server use? Each writes it to a small file, for commands at the terminal."""

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field

from mcp_server.model.parts import asdict
from mcp_server.state.location import is_own_file, open_real_folder, write_private_file
from mcp_server.state.processes import is_process_gone

FOLDER = "servers"
MAX_BYTES = 2 << 20
STOP_SIGNAL = signal.SIGUSR1
"""Makes a server end everything that runs, even when the disk is full."""
OBEYED_TIME, POLL_SECONDS = 0, 0.02
"""A server sets its file's date to this when it has obeyed, which needs no disk space either."""
UNREADABLE = (
    "{path} cannot be read, so the servers, clients and calls running here are unknown. "
    "Run `chmod {mode} {path}`, then try again."
)


class Server(Struct, frozen=True):
    """The configuration a server uses."""

    pid: int
    born: str
    config: str | None = None
    """The operator's file, if there is one."""
    profile: str | None = None
    """The profile given at its start, by flag or environment."""
    max_profile: str | None = None
    menus: Sequence[str] = ()
    since: int = 0
    """When it began to use this configuration."""
    fault: str = ""
    """Why the files on disk do not apply; the last valid ones still do."""
    restart: Sequence[str] = ()
    """Settings that changed on disk but only apply after a restart."""
    texts: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """If there is a fault: the content that applies instead, by file, None if there was no such file."""
    older: Sequence[Mapping[str, str | None]] = ()
    """Earlier contents that still apply too, because the files changed only a moment ago."""
    stoppable: bool = False
    """True if it handles `STOP_SIGNAL`, which would kill any other process."""

    @property
    def differences(self) -> list[str]:
        """For the user: how this server's configuration differs from the files on disk."""
        sentences: list[str] = []
        if self.fault:
            sentences.append(f"Process {self.pid} keeps using the last valid rules: {self.fault}.")
        if self.older:
            sentences.append(
                f"Process {self.pid} also forbids what earlier versions of these files forbade, until a valid version "
                "stays unchanged for a moment."
            )
        if self.restart:
            names = ", ".join(f"`{name}`" for name in self.restart)
            sentences.append(f"Process {self.pid} runs without the changes to {names}; restart it to apply them.")
        return sentences


def publish_server(state: Path, server: Server) -> None:
    write_server_file(state, f"{server.pid}.json", json.dumps(asdict(server)))


def write_server_file(state: Path, name: str, text: str) -> None:
    with open_real_folder(state, FOLDER) as folder:
        write_private_file(Path(name), text, folder=folder)


def withdraw_server(state: Path, pid: int) -> None:
    """Remove the files of this process, and of those that died without removing theirs."""
    stale = [path for path in (state / FOLDER).glob("*.json") if _read_server(path) is None]
    remove_server_files(state, [_get_server_path(state, pid).name, *(path.name for path in stale)])


def remove_server_files(state: Path, names: Sequence[str]) -> None:
    with suppress(OSError), open_real_folder(state, FOLDER) as folder:
        for name in names:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)


def load_servers(state: Path) -> list[Server]:
    """Load the servers that still run, by process number."""
    servers = (_read_server(path) for path in (state / FOLDER).glob("*.json"))
    return sorted((server for server in servers if server is not None), key=lambda server: server.pid)


def describe_unreadable_folder(state: Path) -> str:
    """Say why the running servers cannot be listed and what to do; empty if they can."""
    folder = state / FOLDER
    try:
        paths = [folder, *folder.iterdir()] if folder.exists() else []
    except OSError:
        paths = []
        if not os.access(folder, os.R_OK | os.X_OK):
            return UNREADABLE.format(path=folder, mode="700")
    needed_rights = {True: os.R_OK | os.W_OK | os.X_OK, False: os.R_OK}
    for path in paths:
        if not path.name.startswith(".") and path.exists() and not os.access(path, needed_rights[path.is_dir()]):
            return UNREADABLE.format(path=path, mode="700" if path.is_dir() else "600")
    return ""


def stop_servers_by_signal(states: Sequence[Path], seconds: float) -> tuple[list[int], list[int]]:
    """End everything by signal, for when no order can be written. Return this account's servers that obeyed in time,
    and those that did not."""
    servers = [
        (state, server)
        for state in states
        for server in load_servers(state)
        if is_own_file(_get_server_path(state, server.pid))
    ]
    for state, server in servers:
        with suppress(OSError):
            os.utime(_get_server_path(state, server.pid))
        # Check again: this signal would kill another process that has got the number in the meantime.
        if server.stoppable and not is_process_gone(server.pid, server.born):
            with suppress(OSError):
                os.kill(server.pid, STOP_SIGNAL)
    deadline = time.monotonic() + seconds
    waiting = servers
    while waiting and time.monotonic() < deadline:
        waiting = [
            (state, server)
            for state, server in waiting
            if not is_process_gone(server.pid, server.born) and not _has_obeyed(state, server.pid)
        ]
        time.sleep(POLL_SECONDS if waiting else 0)
    unresponsive = [server.pid for _, server in waiting]
    return [server.pid for _, server in servers if server.pid not in unresponsive], unresponsive


def mark_obeyed(state: Path, pid: int) -> None:
    """Tell the sender of the signal that nothing runs here any more."""
    with suppress(OSError):
        os.utime(_get_server_path(state, pid), (OBEYED_TIME, OBEYED_TIME))


def _has_obeyed(state: Path, pid: int) -> bool:
    try:
        return _get_server_path(state, pid).stat().st_mtime == OBEYED_TIME
    except OSError:
        return False


def _get_server_path(state: Path, pid: int) -> Path:
    return state / FOLDER / f"{pid}.json"


def _read_server(path: Path) -> Server | None:
    """Return None if it cannot be read, or if the process that wrote it is gone."""
    try:
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return None
        fields: Any = json.loads(path.read_text("utf-8"))
        server = Server(**cast(dict[str, Any], fields))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return server if server.born and not is_process_gone(server.pid, server.born) else None
