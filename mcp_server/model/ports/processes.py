"""What may a tool start? The port that `guards` implements: the one door to every child process.

What a child may reach is settled by the grant of the call that starts it, not by the command: a child lives in the
sandbox its profile allows, and dies with the call, the session or the server, whichever ends first. Where a command
cannot be contained as its grant demands, nothing starts and `Refusal` says why.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Command:
    """One program with its arguments, never a line for a shell to take apart."""

    argv: tuple[str, ...]
    folder: str = ""
    """Where it runs, beneath the workspace; checked where it is entered."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """On top of the few variables every child gets."""
    stdin: bytes | None = None
    seconds: float = 60.0
    read_only: bool = False
    """Writes nowhere but in its own temporary folder, whatever the grant says."""
    writable: tuple[str, ...] = ()
    """Protected places beneath the workspace that this program is trusted to keep, as git is with `.git`."""
    most_output: int = 16 << 20
    """Bytes of each stream that are kept; the rest is read and thrown away, so that nobody blocks."""


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    """128 and more for a signal, as a shell counts."""
    out: bytes
    err: bytes
    timed_out: bool = False
    cut: bool = False
    """There was more output than was kept."""


class Child(Protocol):
    """A program that goes on running: a shell session, a language server."""

    @property
    def pid(self) -> int: ...

    @property
    def code(self) -> int | None:
        """None while it runs."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """What it writes, errors among it, in pieces, until it ends. A program that prints without end is slowed down
        to what a reader can bear, and waits where there is no reader."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def wait(self) -> int: ...

    async def kill(self, grace: float = 0.0) -> None:
        """It and everything it started; first politely, where there is time for that."""
        ...


class Processes(Protocol):
    @property
    def sandbox(self) -> str:
        """What contains a child of this grant: `bubblewrap`, `landlock`, `seatbelt` or `none`; empty until it is known,
        which it is from the first start on."""
        ...

    def find(self, program: str) -> str | None:
        """The program's absolute path, by the operator's search path and never from the workspace."""
        ...

    async def run(self, command: Command) -> Ran:
        """Start, wait, collect. Cancelled, timed out or left behind, the whole family of processes is gone."""
        ...

    async def start(self, command: Command, terminal: bool = False) -> Child:
        """Start and go on, over pipes or with a terminal of its own."""
        ...
