"""Which sandbox works on this machine? We try each, because a kernel may only seem to support one."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_server.guards.processes import probe
from mcp_server.guards.sandbox.access import find_program
from mcp_server.guards.sandbox.bubblewrap import Bubblewrap
from mcp_server.guards.sandbox.landlock import Landlock
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.seatbelt import find_seatbelt
from mcp_server.model.policy import SandboxState
from mcp_server.model.processes import SandboxPolicy


@dataclass
class SandboxChooser:
    """Picks the first sandbox that works, when one is first needed."""

    candidates: tuple[Sandbox, ...]
    policy: SandboxPolicy = SandboxPolicy.PREFERRED
    faults: dict[str, str] = field(default_factory=dict[str, str])
    """What is wrong with each sandbox tried; empty if it works."""
    on_missing: Callable[[], None] = lambda: None
    """Called if none works: from then on, tools that need a sandbox are listed differently."""
    _chosen: Sandbox | None = None
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def name(self) -> str:
        return self._chosen.name if self._chosen else ""

    def get_sandbox_state(self) -> SandboxState:
        """Return what is known so far: an untried sandbox is assumed to work."""
        if self.policy is not SandboxPolicy.OFF and (self._chosen or len(self.faults) < len(self.candidates)):
            return SandboxState.THERE
        return SandboxState.REFUSED if self.policy is SandboxPolicy.REQUIRED else SandboxState.MISSING

    async def choose_sandbox(self) -> Sandbox | None:
        """Return None if no sandbox works, or they are switched off."""
        if self._chosen is not None or self.policy is SandboxPolicy.OFF:
            return self._chosen
        async with self._lock:
            for candidate in self.candidates:
                if self._chosen is None and candidate.name not in self.faults:
                    self.faults[candidate.name] = await probe.find_fault(candidate)
                    self._chosen = None if self.faults[candidate.name] else candidate
            if self._chosen is None:
                self.on_missing()
        return self._chosen

    def describe_faults(self) -> str:
        return "; ".join(f"{name}: {fault}" for name, fault in self.faults.items() if fault)

    async def describe_sandbox(self) -> str:
        """Describe for the user which sandbox is used, or why none is."""
        chosen, faults = await self.choose_sandbox(), self.describe_faults()
        if chosen is not None:
            return chosen.name + (f" ({faults})" if faults else "")
        why = (
            "switched off"
            if self.policy is SandboxPolicy.OFF
            else f"none works here ({faults or 'none exists for this system'})"
        )
        refused = self.policy is SandboxPolicy.REQUIRED
        return f"{why}; {'commands are refused' if refused else 'commands need the next higher profile'}"


def find_bubblewrap(search_path: str, workspace: Path) -> Bubblewrap | None:
    """Prefer the distribution's own: some systems let no other create a user namespace."""
    program = "/usr/bin/bwrap" if Path("/usr/bin/bwrap").exists() else find_program("bwrap", search_path, workspace)
    return Bubblewrap(program) if program else None


def find_sandboxes(search_path: str, workspace: Path) -> tuple[Sandbox, ...]:
    """List the sandboxes that could work on this system, best first."""
    bubblewrap = find_bubblewrap(search_path, workspace)
    candidates = [bubblewrap, Landlock() if sys.platform == "linux" else None, find_seatbelt()]
    return tuple(sandbox for sandbox in candidates if sandbox is not None)
