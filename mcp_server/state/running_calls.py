"""What is each server running right now, and for whom? Each writes a small file about it, for `menugate status`.

The file is no record and delays nothing: it is written a moment after something begins or ends. If it cannot be
written, `menugate pause` still asks the servers themselves.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from mcp_server.state.processes import get_own_pid, is_process_gone, read_start_time
from mcp_server.state.servers import FOLDER, MOST_BYTES, is_own_file

ENDING = ".runs"


@dataclass(frozen=True, slots=True)
class RunningClient:
    """A session whose client is connected and has made calls."""

    session: str
    principal: str
    name: str
    """What the client calls itself; empty if it gave no name."""


@dataclass(frozen=True, slots=True)
class RunningWork:
    """A call in progress, or what it left running."""

    tool: str
    about: str
    """The first words of its subject, without secrets."""
    since: int
    principal: str
    session: str
    client: str
    over: bool = False
    """True if the call itself has ended."""
    processes: Sequence[tuple[int, str]] = ()
    """Each by its number and its start time."""
    server: int = 0

    @property
    def is_running(self) -> bool:
        return not self.over or bool(self.living_processes)

    @property
    def living_processes(self) -> list[int]:
        return [pid for pid, since in self.processes if not is_process_gone(pid, since)]


def write_running_calls(state: Path, clients: Sequence[RunningClient], works: Sequence[RunningWork]) -> None:
    """Atomic: a concurrent reader finds the previous version."""
    folder, pid = state / FOLDER, get_own_pid()
    fields = {
        "born": read_start_time(pid),
        "clients": [asdict(one) for one in clients],
        "works": [asdict(one) for one in works],
    }
    draft = folder / f".{pid}{ENDING}.tmp"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            json.dump(fields, out)
        draft.replace(folder / f"{pid}{ENDING}")


def remove_running_calls(state: Path) -> None:
    """Remove the files of this process, and of those that died without doing so."""
    mine = state / FOLDER / f"{get_own_pid()}{ENDING}"
    left = [path for path in (state / FOLDER).glob(f"*{ENDING}") if path == mine or _read_running_file(path) is None]
    for path in left:
        with suppress(OSError):
            path.unlink()


def read_running_calls(states: Sequence[Path]) -> tuple[list[RunningClient], list[RunningWork]]:
    """Read those of every server of this account that still runs, oldest first."""
    paths = (path for state in states for path in (state / FOLDER).glob(f"*{ENDING}") if is_own_file(path))
    found = [one for path in paths if (one := _read_running_file(path)) is not None]
    works = [work for _, every in found for work in every if work.is_running]
    return [client for every, _ in found for client in every], sorted(works, key=lambda one: one.since)


def _read_running_file(path: Path) -> tuple[list[RunningClient], list[RunningWork]] | None:
    """None if it cannot be read, or if its process is not the one that wrote it."""
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            return None
        pid = int(path.name.removesuffix(ENDING))
        said = cast(dict[str, Any], json.loads(path.read_text("utf-8")))
        if not said["born"] or is_process_gone(pid, said["born"]):
            return None
        return [RunningClient(**one) for one in said["clients"]], [
            replace(RunningWork(**one), server=pid) for one in said["works"]
        ]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
