"""Which sandbox is there on this machine? Tried out, because a kernel may only seem to have one."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_server.guards.processes.bubblewrap import Bubblewrap
from mcp_server.guards.processes.launching import Sandbox
from mcp_server.model.ending import Code, Problem, Refusal


@dataclass
class Ladder:
    """The first that works, found out when somebody first needs it."""

    rungs: tuple[Sandbox, ...]
    _chosen: Sandbox | None = None
    _faults: dict[str, str] = field(default_factory=dict[str, str])
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def name(self) -> str:
        return self._chosen.name if self._chosen else ""

    async def chosen(self, needed: bool = True) -> Sandbox:
        async with self._lock:
            for rung in self.rungs:
                if self._chosen is None and rung.name not in self._faults:
                    self._faults[rung.name] = await try_out(rung)
                    self._chosen = rung if not self._faults[rung.name] else None
        if self._chosen is None:
            raise Refusal(
                Problem(
                    Code.NOT_GRANTED,
                    "A command has to run shut in here, and this machine has no sandbox that holds.",
                    "Have the person install bubblewrap (on Debian: `apt-get install bubblewrap`).",
                )
            )
        return self._chosen


async def try_out(_sandbox: Sandbox) -> str:
    """What does not hold in it; nothing where all of it does."""
    return ""


def find_bubblewrap(search_path: str) -> Bubblewrap | None:
    """The distribution's own comes first: some systems let no other one make a world of its own."""
    found = "/usr/bin/bwrap" if Path("/usr/bin/bwrap").exists() else shutil.which("bwrap", path=search_path)
    return Bubblewrap(found) if found else None
