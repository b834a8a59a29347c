"""Which sandbox is there on this machine? Tried out, because a kernel may only seem to have one."""

import shutil
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import anyio

from mcp_server.guards.processes import probe
from mcp_server.guards.processes.bubblewrap import Bubblewrap
from mcp_server.guards.processes.launching import Sandbox


class Want(StrEnum):
    """What the operator says about sandboxes."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


@dataclass
class Ladder:
    """The first that works, found out when somebody first needs it."""

    rungs: tuple[Sandbox, ...]
    want: Want = Want.PREFERRED
    faults: dict[str, str] = field(default_factory=dict[str, str])
    """What was found wrong with those that were tried; nothing where they hold."""
    _chosen: Sandbox | None = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def name(self) -> str:
        return self._chosen.name if self._chosen else ""

    async def chosen(self) -> Sandbox | None:
        """None where there is none."""
        if self._chosen is not None or self.want is Want.OFF:
            return self._chosen
        async with self._lock:
            for rung in self.rungs:
                if self._chosen is None and rung.name not in self.faults:
                    self.faults[rung.name] = await probe.fault(rung)
                    self._chosen = None if self.faults[rung.name] else rung
        return self._chosen


def find_bubblewrap(search_path: str) -> Bubblewrap | None:
    """The distribution's own comes first: some systems let no other one make a world of its own."""
    found = "/usr/bin/bwrap" if Path("/usr/bin/bwrap").exists() else shutil.which("bwrap", path=search_path)
    return Bubblewrap(found) if found else None
