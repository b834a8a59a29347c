"""Which programs may a tool start? The port that `guards` implements, which is the only way to start a child process.

The grant of the call that starts a child settles what it may reach, not its command. A child lives in the sandbox its
profile allows, and dies with the call, the session or the server, whichever ends first. If a command cannot be
contained as its grant demands, nothing starts and `Refusal` says why.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem

MARK = "MENUGATE_STARTED_BY"
"""Set in the environment of a program that runs in no sandbox: the server that started it. A hint, not a proof: a
program can remove it, but it cannot change its ancestors."""
PROJECT_PROGRAMS = (".venv/bin", "venv/bin")
"""Where a command that does not only read finds its programs first, if it runs the user's project."""
CACHES = """
.cargo/registry .cargo/git .gradle/caches .m2/repository .npm/_cacache .cache/pip .cache/uv .cache/go-build
.cache/pypoetry .cache/yarn .cache/pre-commit .pnpm-store .nuget/packages .pub-cache .ccache
"""
"""Below a home: what commands write at `trusted`, besides the workspace."""


class SandboxPolicy(StrEnum):
    """What the operator wants of sandboxes."""

    REQUIRED = "required"
    """If no sandbox works, commands that need one do not run."""
    PREFERRED = "preferred"
    """If no sandbox works, commands that need one need the next higher profile."""
    OFF = "off"
    """No sandbox is used, as if none worked."""


class ProcessLimits(Struct, frozen=True):
    """How much one child and everything it starts may use."""

    processes: int = 256
    memory: int = 4 << 30
    """Bytes that one process may have for itself. Address space merely reserved does not count; interpreters reserve a
    lot."""
    file: int = 1 << 30
    """Bytes of one file."""


class Command(Struct, frozen=True):
    """One program with its arguments, never a line for a shell to split."""

    argv: tuple[str, ...]
    folder: str = ""
    """The folder in the workspace where it runs; checked on entering it."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables added to the few that every child gets."""
    stdin: bytes | None = None
    seconds: float = 60.0
    read_only: bool = False
    """True if it may write only in its own temporary folder, even if the grant allows more."""
    writable: tuple[str, ...] = ()
    """Protected places in the workspace that this program may change, as git may change `.git`; or the folder in which
    it may replace files (`.` for the whole workspace)."""
    apart: bool = False
    """True to keep its stderr separate from its output, for a program that keeps running and speaks a protocol."""
    sees_secrets: bool = False
    """True if it sees workspace files that usually hold secrets, for a program that needs every file to tell which one
    changed. Code that shows its output must leave their content out."""
    project_first: bool = False
    """True if, in a sandbox, it finds the programs of the project's own environment first, such as the `python` of its
    `.venv`. Never if the grant only reads."""
    lent: tuple[str, ...] = ()
    """Full paths of files in the user's home that it can read, although the home is hidden."""
    most_output: int = 16 << 20
    """How many bytes of each stream are kept. The rest is read and dropped, so that the program does not block."""
    no_more: bool = False
    """True to stop it once it has printed more than `most_output`, because the rest would be useless."""


class CommandResult(Struct, frozen=True):
    code: int
    """The exit code; after a signal, 128 plus its number, as in a shell."""
    out: bytes
    err: bytes
    timed_out: bool = False
    cut: bool = False
    """True if some of the output was dropped."""


def make_command_problem(failure: str) -> Problem:
    """Build the answer for a command that could not start or was cut off."""
    way_out = "Ask the user to run `menugate doctor`, which tries a command and says what is wrong."
    return Problem(Code.TOOL_FAILED, failure, way_out)


class ChildProcess(Protocol):
    """A program that keeps running: a shell session, a language server."""

    @property
    def pid(self) -> int: ...

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        ...

    @property
    def last_words(self) -> str:
        """The end of its stderr, if that is kept apart."""
        ...

    def output(self) -> AsyncIterator[bytes]:
        """Yield its output until it ends, including its stderr unless that is kept apart. A program that prints without
        end is slowed down to the speed of its reader, and waits if there is none."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def wait(self) -> int: ...

    async def find_planted_places(self) -> Sequence[str]:
        """Find files in the workspace that control other programs and did not exist when it started. No sandbox can
        protect a file that does not exist yet."""
        ...

    def find_current_folder(self) -> str:
        """Return the current folder of its shell; empty if unknown."""
        ...

    line: str | None
    """What a shell that stays open was given last; None if it runs one command."""

    def has_work(self) -> bool:
        """False if it has ended, or is a shell that waits for its next line and has left nothing running."""
        ...

    @property
    def cut_off(self) -> int | None:
        """How its sandbox ended, if the program never started or was cut off; None if it ended by itself or we ended
        it."""
        ...

    def describe_failure(self, printed: str) -> str:
        """Say why it never started, or what cut it off; empty if it ended by itself or we ended it. `printed` is the
        end of its output, where a sandbox says what is wrong."""
        ...

    async def kill(self, grace: float = 0.0) -> None:
        """Kill it and everything it started. With `grace`, first ask it to end, and wait at most that many seconds."""
        ...


class OutputOverflow(Protocol):
    """Disk space for output that is too large for memory. Its methods block, so call them in a thread."""

    @property
    def size(self) -> int:
        """How many characters are in it."""
        ...

    def add(self, text: str) -> None:
        """Append this text. If there is no space left, neither this text nor any later text is kept."""
        ...

    def read(self, start: int, most: int) -> str:
        """Return at most `most` characters from `start` on."""
        ...

    def close(self) -> None: ...


class Processes(Protocol):
    @property
    def sandbox(self) -> str:
        """The sandbox for a child of this grant: `bubblewrap`, `landlock`, `seatbelt` or `none`. Empty before the first
        start."""
        ...

    @property
    def network(self) -> bool:
        """True if a child of this grant can reach addresses other than its own loopback."""
        ...

    @property
    def profile(self) -> Profile:
        """The user's profile, which decides the sandbox."""
        ...

    @property
    def fixed(self) -> Sequence[str]:
        """Places in the workspace that menugate itself runs from; `.` means all of it. No child of this grant can
        change them."""
        ...

    def open_overflow(self) -> OutputOverflow:
        """Open an overflow for the output of one program; the caller closes it."""
        ...

    def find_program(self, program: str) -> str | None:
        """Return the program's absolute path, from the operator's search path and never from the workspace."""
        ...

    async def run(self, command: Command) -> CommandResult:
        """Run a program to its end and return the result. All its processes are killed if the call times out or is
        cancelled, and those it leaves behind are killed too."""
        ...

    async def start(self, command: Command, terminal: bool = False) -> ChildProcess:
        """Start a program and return without waiting, with pipes or with its own terminal."""
        ...
