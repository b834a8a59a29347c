"""Which sandbox works on this machine? Each is tried, because a kernel may only seem to support one."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_server.guards.processes import probe
from mcp_server.guards.sandbox.bubblewrap import Bubblewrap
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.model.policy import SandboxState
from mcp_server.model.processes import SandboxPolicy


@dataclass
class SandboxChooser:
    """Picks the first sandbox that works, when one is first needed."""

    rungs: tuple[Sandbox, ...]
    want: SandboxPolicy = SandboxPolicy.PREFERRED
    faults: dict[str, str] = field(default_factory=dict[str, str])
    """What was wrong with each sandbox tried; empty if it holds."""
    missing: Callable[[], None] = lambda: None
    """Called if none holds: from then on, whatever needs a sandbox is shown differently."""
    _chosen: Sandbox | None = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def name(self) -> str:
        return self._chosen.name if self._chosen else ""

    def get_sandbox_state(self) -> SandboxState:
        """As far as is known: an untried sandbox is assumed to hold."""
        if self.want is not SandboxPolicy.OFF and (self._chosen or len(self.faults) < len(self.rungs)):
            return SandboxState.THERE
        return SandboxState.REFUSED if self.want is SandboxPolicy.REQUIRED else SandboxState.MISSING

    async def choose_sandbox(self) -> Sandbox | None:
        """None if no sandbox holds, or they are switched off."""
        if self._chosen is not None or self.want is SandboxPolicy.OFF:
            return self._chosen
        async with self._lock:
            for rung in self.rungs:
                if self._chosen is None and rung.name not in self.faults:
                    self.faults[rung.name] = await probe.find_fault(rung)
                    self._chosen = None if self.faults[rung.name] else rung
            if self._chosen is None:
                self.missing()
        return self._chosen

    async def describe_sandbox(self) -> str:
        """Describe for the person which sandbox is in use, or why none."""
        held = await self.choose_sandbox()
        faults = "; ".join(f"{name}: {fault}" for name, fault in self.faults.items() if fault)
        if held is not None:
            return held.name + (f" ({faults})" if faults else "")
        why = (
            "switched off"
            if self.want is SandboxPolicy.OFF
            else f"none that holds ({faults or 'none for this system'})"
        )
        refused = self.want is SandboxPolicy.REQUIRED
        return f"{why}; {'commands are refused' if refused else 'commands need one profile more'}"


def find_bubblewrap(search_path: str) -> Bubblewrap | None:
    """Prefer the distribution's own: some systems let no other create a user namespace."""
    found = "/usr/bin/bwrap" if Path("/usr/bin/bwrap").exists() else shutil.which("bwrap", path=search_path)
    return Bubblewrap(found) if found else None
