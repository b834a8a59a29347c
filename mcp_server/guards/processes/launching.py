"""What is a sandbox to whoever starts a child? Words to start it with, and a tether to hold it by."""

import subprocess
from dataclasses import dataclass
from typing import Protocol

from mcp_server.guards.processes.limits import Limits
from mcp_server.guards.processes.reach import Reach


class Tether(Protocol):
    """What a sandbox leaves in our hand: the way to let its child begin, and the way to end all of it at once."""

    async def begin(self, process: "subprocess.Popen[bytes]") -> int:
        """Let it run; its process id, where what it starts is found below."""
        ...

    def cut(self) -> None:
        """End all of it, now."""
        ...

    def code(self, ended: int) -> int | None:
        """How the command itself ended, from how its sandbox did; None where it never began, or was killed."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Launch:
    argv: list[str]
    tether: Tether
    lent: tuple[int, ...]
    """Descriptors that the child is given and we close."""
    folder: str = "/"
    counted: bool = False
    """Does somebody have to count its processes, because the kernel does not?"""


class Sandbox(Protocol):
    """One way to shut a child in."""

    @property
    def name(self) -> str: ...

    def launch(self, argv: tuple[str, ...], reach: Reach | None, limits: Limits, seconds: float) -> Launch:
        """The words to start it with. Without a reach nothing is shut in, and all of it still ends together."""
        ...
