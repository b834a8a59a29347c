"""What does each running server judge by? Each says so in a small file of its own, for the person's commands."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from mcp_server.state.lives.lineage import born

FOLDER = "servers"
MOST_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Server:
    """What a server judges by."""

    pid: int
    born: str
    config: str | None = None
    """The operator's file, where there is one that counts."""
    profile: str | None = None
    """What was asked for at its start, beside the files."""
    max_profile: str | None = None
    menus: Sequence[str] = ()
    since: int = 0
    """When it began to judge by what it judges by now."""
    fault: str = ""
    """Why what is on disk now does not hold; the last that was valid does."""
    restart: Sequence[str] = ()
    """What changed on disk and holds from its next start on."""
    texts: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """What holds in place of what is on disk, by file, or that there is none; only where there is a fault."""

    @property
    def differs(self) -> list[str]:
        """What of the files does not hold in this server, in words for the person."""
        told: list[str] = []
        if self.fault:
            told.append(f"Process {self.pid} goes on under the last valid rules: {self.fault}.")
        if self.restart:
            names = ", ".join(f"`{name}`" for name in self.restart)
            told.append(f"Process {self.pid} runs without the changes to {names}; start it again for them to hold.")
        return told


def publish(state: Path, said: Server) -> None:
    """Whole or not at all: who reads it meanwhile finds the one before."""
    folder = state / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    draft = folder / f".{said.pid}.tmp"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(asdict(said), out)
    draft.replace(folder / f"{said.pid}.json")


def withdraw(state: Path, pid: int) -> None:
    """It serves no more; and neither do those that could not say so."""
    gone = [path for path in (state / FOLDER).glob("*.json") if _read(path) is None]
    for path in (state / FOLDER / f"{pid}.json", *gone):
        with suppress(OSError):
            path.unlink()


def servers(state: Path) -> list[Server]:
    """Those that are still there, the one of the lowest number first."""
    found = (_read(path) for path in (state / FOLDER).glob("*.json"))
    return sorted((one for one in found if one is not None), key=lambda one: one.pid)


def _read(path: Path) -> Server | None:
    """None where it cannot be read, or where its process is not the one that wrote it."""
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            return None
        fields: Any = json.loads(path.read_text("utf-8"))
        said = Server(**cast(dict[str, Any], fields))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return said if said.born and born(said.pid) == said.born else None
