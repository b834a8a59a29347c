"""How does a caller start a child in a sandbox? With a command line, and a tether to control the child by."""

import subprocess
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.pinned_files import PinnedFile
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

    def find_exit_code(self) -> int | None:
        """Return the command's own exit code; None if the command never began or was killed."""
        ...

    @property
    def reason(self) -> str:
        """Why the sandbox could not be built, if it says so."""
        ...

    def close(self) -> None: ...


class Launch(Struct, frozen=True):
    argv: list[str]
    tether: Tether
    descriptors: tuple[int, ...]
    """The child inherits them and we close ours."""
    folder: str = "/"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the environment of the child."""
    plan: Mapping[str, Any] | None = None
    """For a child with a supervisor: what the supervisor must know, with descriptors as numbered in our process."""
    counted: bool = False
    """True if we must count its processes because the kernel does not."""


class LaunchSpec(Struct, frozen=True):
    """What to start, and within which limits."""

    argv: tuple[str, ...]
    access: ChildAccess
    limits: ProcessLimits
    seconds: float
    terminal: bool = False
    pinned: tuple[PinnedFile, ...] = ()
    """Copies that the child finds in the place of these files, if the sandbox can mount."""
    proxy_socket: ProxySocket | None = None
    """The child's connection to the proxy, if it may have one."""


class Sandbox(Protocol):
    """One way to sandbox a child."""

    @property
    def name(self) -> str: ...

    @property
    def leads_out(self) -> bool:
        """Can a child inside reach the proxy?"""
        ...

    @property
    def mounts(self) -> bool:
        """Can it put a copy in the place of a file?"""
        ...

    def build_launch(self, spec: LaunchSpec, /) -> Launch:
        """Build the command line and what goes with it."""
        ...
