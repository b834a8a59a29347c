"""How does a caller start a child in a sandbox? With a command line, and a tether to control the child by."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.proxy_socket import ProxySocket
from mcp_server.model.processes import ProcessLimits


class Tether(Protocol):
    """Controls a sandboxed child: lets it begin, and ends all its processes at once."""

    async def release_child(self, process: "subprocess.Popen[bytes]") -> int:
        """Let it run; return the process id below which everything it starts is found."""
        ...

    def kill_all(self) -> None:
        """End all of it, now."""
        ...

    def find_exit_code(self, ended: int, /) -> int | None:
        """Return the command's own exit code, given its sandbox's; None if the command never began or was killed."""
        ...

    @property
    def reason(self) -> str:
        """Why the sandbox could not be built, if it says so."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Launch:
    argv: list[str]
    tether: Tether
    lent: tuple[int, ...]
    """Descriptors that the child inherits and we close."""
    folder: str = "/"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the child must know about its surroundings."""
    plan: Mapping[str, Any] | None = None
    """If a supervisor stays beside the child: what it must know, with descriptors as numbered in our process."""
    counted: bool = False
    """True if we must count its processes because the kernel does not."""


@dataclass(frozen=True)
class LaunchSpec:
    """What to start, and within which limits."""

    argv: tuple[str, ...]
    reach: ChildAccess
    limits: ProcessLimits
    seconds: float
    terminal: bool = False
    lane: ProxySocket | None = None
    """The child's connection to the proxy, if it may have one."""


class Sandbox(Protocol):
    """One way to sandbox a child."""

    @property
    def name(self) -> str: ...

    @property
    def leads_out(self) -> bool:
        """Can a child inside reach the proxy?"""
        ...

    def build_launch(self, spec: LaunchSpec, /) -> Launch:
        """Build the command line and what goes with it."""
        ...
