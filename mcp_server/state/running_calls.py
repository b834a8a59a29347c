"""What is each server running right now, and for whom? Each writes a small file about it, for `menugate status`.

The file is no record. It is written a moment after something begins or ends, so it delays nothing. If it cannot be
written, `menugate pause` still asks the servers themselves.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.parts import asdict
from mcp_server.state.location import is_own_file
from mcp_server.state.processes import get_own_pid, is_process_gone, read_start_time
from mcp_server.state.servers import FOLDER, MAX_BYTES, remove_server_files, write_server_file

SUFFIX = ".runs"


class RunningClient(Struct, frozen=True):
    """A session whose client is connected and has made calls."""

    session: str
    principal: str
    name: str
    """What the client calls itself; empty if it gave no name."""


class RunningWork(Struct, frozen=True):
    """A call in progress, or what it left running."""

    tool: str
    about: str
    """What the call is about, shortened and without secrets."""
    since: int
    principal: str
    session: str
    client: str
    over: bool = False
    """True if the call itself has ended."""
    processes: Sequence[tuple[int, str]] = ()
    """Each by its number and its start time."""
    server: int = 0
    changes: bool = False
    """It may change something."""

    @property
    def is_running(self) -> bool:
        return not self.over or bool(self.living_processes)

    @property
    def living_processes(self) -> list[int]:
        return [pid for pid, since in self.processes if not is_process_gone(pid, since)]


def write_running_calls(state: Path, clients: Sequence[RunningClient], works: Sequence[RunningWork]) -> None:
    pid = get_own_pid()
    fields = {
        "born": read_start_time(pid),
        "clients": [asdict(entry) for entry in clients],
        "works": [asdict(entry) for entry in works],
    }
    with suppress(OSError):
        write_server_file(state, f"{pid}{SUFFIX}", json.dumps(fields))


def remove_running_calls(state: Path) -> None:
    """Remove the files of this process, and of those that died without removing theirs."""
    own_path = state / FOLDER / f"{get_own_pid()}{SUFFIX}"
    stale = [
        path for path in (state / FOLDER).glob(f"*{SUFFIX}") if path == own_path or _read_running_file(path) is None
    ]
    remove_server_files(state, [path.name for path in stale])


def read_running_calls(
    states: Sequence[Path], besides: int | None = None
) -> tuple[list[RunningClient], list[RunningWork]]:
    """Read what this account's servers run, oldest first. `besides`: a server to leave out."""
    paths = (path for state in states for path in (state / FOLDER).glob(f"*{SUFFIX}") if is_own_file(path))
    paths = (path for path in paths if path.name != f"{besides}{SUFFIX}")
    files = [content for path in paths if (content := _read_running_file(path)) is not None]
    clients = [client for file_clients, _ in files for client in file_clients]
    works = [work for _, file_works in files for work in file_works if work.is_running]
    return clients, sorted(works, key=lambda work: work.since)


def _read_running_file(path: Path) -> tuple[list[RunningClient], list[RunningWork]] | None:
    """Return None if it cannot be read, or if the process that wrote it is gone."""
    try:
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return None
        pid = int(path.name.removesuffix(SUFFIX))
        fields = cast(dict[str, Any], json.loads(path.read_text("utf-8")))
        if not fields["born"] or is_process_gone(pid, fields["born"]):
            return None
        return [RunningClient(**entry) for entry in fields["clients"]], [
            replace(RunningWork(**entry), server=pid) for entry in fields["works"]
        ]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
