"""What may a tool start? The port that `guards` implements: the only way to start a child process.

The grant of the call that starts a child settles what it may reach, not its command. A child lives in the sandbox its
profile allows, and dies with the call, the session or the server, whichever ends first. If a command cannot be
contained as its grant demands, nothing starts and `Refusal` says why.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem

MARK = "MENUGATE_STARTED_BY"
"""Set in the environment of a program that runs in no sandbox: the server that started it. A hint, not a proof: a
program can remove it, but it cannot change its ancestors."""
CACHES = """
.cargo/registry .cargo/git .gradle/caches .m2/repository .npm/_cacache .cache/pip .cache/uv .cache/go-build
.cache/pypoetry .cache/yarn .cache/pre-commit .pnpm-store .nuget/packages .pub-cache .ccache
"""
"""Below a home: what commands write at `trusted`, besides the workspace."""


class SandboxPolicy(StrEnum):
    """What the operator says about sandboxes."""

    REQUIRED = "required"
    """If no sandbox works, what needs one does not run."""
    PREFERRED = "preferred"
    """If no sandbox works, what needs one needs the next higher profile."""
    OFF = "off"
    """No sandbox is used, just as if none worked."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """How much one child and everything it starts may use."""

    processes: int = 256
    memory: int = 4 << 30
    """Bytes that one process may have for itself. Address space merely reserved does not count; interpreters reserve a
    lot."""
    file: int = 1 << 30
    """Bytes of one file."""


@dataclass(frozen=True, slots=True)
class Command:
    """One program with its arguments, never a line for a shell to split."""

    argv: tuple[str, ...]
    folder: str = ""
    """Where it runs, beneath the workspace; checked when it is entered."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the few variables that every child gets."""
    stdin: bytes | None = None
    seconds: float = 60.0
    read_only: bool = False
    """It writes only in its own temporary folder, whatever the grant says."""
    writable: tuple[str, ...] = ()
    """Protected places beneath the workspace that this program is trusted to maintain, as git is with `.git`; or the
    folder, `.` for all of it, in which it is trusted to replace files."""
    apart: bool = False
    """For a program that keeps running and speaks a protocol: its stderr stays out of its output."""
    sees_secrets: bool = False
    """It sees files of the workspace that usually hold secrets: for a program that must know every file to tell which
    one changed. Whoever shows its output must leave their content out."""
    project_first: bool = False
    """In a sandbox it finds the programs of the project's own environment first, such as the `python` of its `.venv`;
    never if the grant only reads."""
    lent: tuple[str, ...] = ()
    """Full paths of files it can read although their folder, the person's home, is hidden."""
    most_output: int = 16 << 20
    """Bytes kept of each stream. The rest is read and dropped, so that nothing blocks."""
    no_more: bool = False
    """Stop it once it has printed more than that, if the rest would be of no use."""


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
    """Build what a caller is told if a command could not start, or was cut off."""
    way_out = "Ask the user to run `menugate doctor`, which tries a command and says what is wrong."
    return Problem(Code.TOOL_FAILED, failure, way_out)


class ChildProcess(Protocol):
    """A program that keeps running: a shell session, a language server."""

    @property
    def pid(self) -> int: ...

    @property
    def code(self) -> int | None:
        """None while it runs."""
        ...

    @property
    def last_words(self) -> str:
        """The end of its stderr, if that was kept apart."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """Yield what it writes, with its stderr unless that is kept apart, until it ends. A program that prints without
        end is slowed down to its reader's speed, and waits if there is no reader."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def wait(self) -> int: ...

    async def find_planted_places(self) -> Sequence[str]:
        """Find places of the workspace that other programs obey and that did not exist when it began. No sandbox can
        protect what does not exist yet."""
        ...

    def find_current_folder(self) -> str:
        """Return the current folder of the shell in it; empty if that is unknown."""
        ...

    @property
    def cut_off(self) -> int | None:
        """How its sandbox ended if it never began or was cut off; None if it ended by itself or we ended it."""
        ...

    def describe_failure(self, printed: str) -> str:
        """Say why it never began, or what cut it off; empty if it ended by itself or we ended it. `printed` is the end
        of its output, in which a sandbox says what is wrong."""
        ...

    async def kill(self, grace: float = 0.0) -> None:
        """Kill it and everything it started; politely first, if there is time for that."""
        ...


class OutputOverflow(Protocol):
    """Disk space for what is too much to keep in memory. Its methods block and are called in a thread."""

    @property
    def size(self) -> int:
        """Characters in it."""
        ...

    def add(self, text: str) -> None:
        """Append this. If there is no space left, neither this nor anything later is kept."""
        ...

    def read(self, start: int, most: int) -> str:
        """Return at most that many characters, from this one on."""
        ...

    def close(self) -> None: ...


class Processes(Protocol):
    @property
    def sandbox(self) -> str:
        """What contains a child of this grant: `bubblewrap`, `landlock`, `seatbelt` or `none`. Empty until it is known,
        from the first start on."""
        ...

    @property
    def network(self) -> bool:
        """True if a child of this grant can reach any address but its own."""
        ...

    @property
    def profile(self) -> Profile:
        """The person's profile, which decides the sandbox."""
        ...

    @property
    def fixed(self) -> Sequence[str]:
        """Places of the workspace that menugate itself runs from, which no child of this grant can change; `.` for all
        of it."""
        ...

    def open_overflow(self) -> OutputOverflow:
        """Open an overflow for the output of one program; the caller closes it."""
        ...

    def find_program(self, program: str) -> str | None:
        """Return the program's absolute path, from the operator's search path and never from the workspace."""
        ...

    async def run(self, command: Command) -> CommandResult:
        """Start, wait, collect. If it is cancelled, times out or is left behind, all its processes are killed."""
        ...

    async def start(self, command: Command, terminal: bool = False) -> ChildProcess:
        """Start it and return, with pipes or with a terminal of its own."""
        ...
