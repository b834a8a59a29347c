"""What is a sandbox to whoever starts a child? Words to start it with, and a tether to hold it by."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.proxy_socket import ProxySocket
from mcp_server.model.processes import ProcessLimits


class Tether(Protocol):
    """What a sandbox leaves in our hand: the way to let its child begin, and the way to end all of it at once."""

    async def release_child(self, process: "subprocess.Popen[bytes]") -> int:
        """Let it run; its process id, where what it starts is found below."""
        ...

    def kill_all(self) -> None:
        """End all of it, now."""
        ...

    def find_exit_code(self, ended: int, /) -> int | None:
        """How the command itself ended, from how its sandbox did; None where it never began, or was killed."""
        ...

    @property
    def reason(self) -> str:
        """Why the sandbox could not be built, where it says so."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Launch:
    argv: list[str]
    tether: Tether
    lent: tuple[int, ...]
    """Descriptors that the child is given and we close."""
    folder: str = "/"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the child has to know about where it is."""
    plan: Mapping[str, Any] | None = None
    """Where somebody stays beside it: what that one has to know, with descriptors by our numbers."""
    counted: bool = False
    """Does somebody have to count its processes, because the kernel does not?"""


@dataclass(frozen=True)
class LaunchSpec:
    """What is to be started, and within what."""

    argv: tuple[str, ...]
    reach: ChildAccess
    limits: ProcessLimits
    seconds: float
    terminal: bool = False
    lane: ProxySocket | None = None
    """The way out, where there is to be one."""


class Sandbox(Protocol):
    """One way to shut a child in."""

    @property
    def name(self) -> str: ...

    @property
    def leads_out(self) -> bool:
        """Can a way out be laid through it?"""
        ...

    def build_launch(self, start: LaunchSpec) -> Launch:
        """The words to start it with, and what goes with them."""
        ...
