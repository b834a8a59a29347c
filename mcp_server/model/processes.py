"""What may a tool start? The port that `guards` implements: the one door to every child process.

What a child may reach is settled by the grant of the call that starts it, not by the command: a child lives in the
sandbox its profile allows, and dies with the call, the session or the server, whichever ends first. Where a command
cannot be contained as its grant demands, nothing starts and `Refusal` says why.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem

MARK = "MENUGATE_STARTED_BY"
"""What a program that runs in no sandbox finds in its environment: the server that started it. A hint and no proof, for
whoever wants to can take it out; its ancestors it cannot."""
CACHES = """
.cargo/registry .cargo/git .gradle/caches .m2/repository .npm/_cacache .cache/pip .cache/uv .cache/go-build
.cache/pypoetry .cache/yarn .cache/pre-commit .pnpm-store .nuget/packages .pub-cache .ccache
"""
"""Below a home: what commands write at `trusted`, besides the workspace."""


class SandboxPolicy(StrEnum):
    """What the operator says about sandboxes."""

    REQUIRED = "required"
    """Where none holds, what needs one does not run."""
    PREFERRED = "preferred"
    """Where none holds, what needs one asks for one profile more."""
    OFF = "off"
    """None is used, and so as if none held."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """How much one child and all it starts may use."""

    processes: int = 256
    memory: int = 4 << 30
    """Bytes one process may have for itself. Room merely reserved is not counted; interpreters reserve a lot."""
    file: int = 1 << 30
    """Bytes of one file."""


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
    """Protected places beneath the workspace that this program is trusted to keep, as git is with `.git`; or the
    folder, `.` for all of it, in which it is trusted to put files in the place of others."""
    apart: bool = False
    """For one that goes on running and speaks a protocol: its errors do not come among its output."""
    sees_secrets: bool = False
    """Files of the workspace that usually hold secrets are there as they are: for a program that has to know every file
    to tell which one changed. Whoever shows what it says leaves their content out."""
    lent: tuple[str, ...] = ()
    """Whole paths of files that are there to be read, though what they lie in is not: the person's home."""
    most_output: int = 16 << 20
    """Bytes of each stream that are kept; the rest is read and thrown away, so that nobody blocks."""
    no_more: bool = False
    """Ended once it has said more than that, where what it would go on saying is of no use to anybody."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    """128 and more for a signal, as a shell counts."""
    out: bytes
    err: bytes
    timed_out: bool = False
    cut: bool = False
    """There was more output than was kept."""


def make_command_problem(failure: str) -> Problem:
    """What a caller is told where a command could not start, or was cut off."""
    way_out = "Have the person run `menugate doctor`, which tries a command and names what is wrong."
    return Problem(Code.TOOL_FAILED, failure, way_out)


class ChildProcess(Protocol):
    """A program that goes on running: a shell session, a language server."""

    @property
    def pid(self) -> int: ...

    @property
    def code(self) -> int | None:
        """None while it runs."""
        ...

    @property
    def last_words(self) -> str:
        """The end of its errors, where they came apart."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """What it writes, its errors among it unless they come apart, in pieces, until it ends. A program that
        prints without end is slowed down to what a reader can bear, and waits where there is no reader."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def wait(self) -> int: ...

    async def find_planted_places(self) -> Sequence[str]:
        """Places of the workspace that other programs obey, which were not there when it began. No sandbox can hold
        what is not there yet."""
        ...

    def find_current_folder(self) -> str:
        """Where the shell in it stands now; empty where that cannot be told."""
        ...

    def describe_failure(self, printed: str) -> str:
        """Why it never began, or what cut it off, where it did not end by itself and nobody here ended it; empty
        otherwise. `printed` is the end of its output, on which a sandbox says what is wrong."""
        ...

    async def kill(self, grace: float = 0.0) -> None:
        """It and everything it started; first politely, where there is time for that."""
        ...


class OutputOverflow(Protocol):
    """Room on the disk for what is too much to keep in memory. Its methods block and are called in a thread."""

    @property
    def size(self) -> int:
        """Characters in it."""
        ...

    def add(self, text: str) -> None:
        """Keep this behind the rest; where there is no room left, neither this nor what comes later."""
        ...

    def read(self, start: int, most: int) -> str:
        """At most so many characters from this one on."""
        ...

    def close(self) -> None: ...


class Processes(Protocol):
    @property
    def sandbox(self) -> str:
        """What contains a child of this grant: `bubblewrap`, `landlock`, `seatbelt` or `none`; empty until it is known,
        which it is from the first start on."""
        ...

    @property
    def network(self) -> bool:
        """Does a child of this grant reach any address but its own?"""
        ...

    @property
    def profile(self) -> Profile:
        """The person's, whose sandbox it is."""
        ...

    @property
    def fixed(self) -> Sequence[str]:
        """Places of the workspace that menugate itself runs from, which no child of this grant changes; `.` for all."""
        ...

    def open_overflow(self) -> OutputOverflow:
        """For the output of one program; whoever asks for it closes it."""
        ...

    def find_program(self, program: str) -> str | None:
        """The program's absolute path, by the operator's search path and never from the workspace."""
        ...

    async def run(self, command: Command) -> CommandResult:
        """Start, wait, collect. Cancelled, timed out or left behind, the whole family of processes is gone."""
        ...

    async def start(self, command: Command, terminal: bool = False) -> ChildProcess:
        """Start and go on, over pipes or with a terminal of its own."""
        ...
