"""How does a child process run and end, together with everything it started?"""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from mcp_server.guards.processes.cgroup import ProcessCgroup
from mcp_server.guards.processes.streams import Sink, Source
from mcp_server.guards.sandbox.launch import Tether
from mcp_server.guards.sandbox.planted_files import PlantedSince

# Which processes belong to this child? Everything it started, and what those started, as the kernel lists them.

SHELLS = frozenset(("bash", "sh"))


def find_process_family(pid: int, most: int = 100_000) -> list[int]:
    """List the process and all below it, parents first; none if it is gone."""
    found: list[int] = []
    todo = [pid]
    while todo and len(found) < most:
        one = todo.pop()
        if Path(f"/proc/{one}").exists():
            found.append(one)
            todo.extend(_read_children(one))
    return found


def _read_children(pid: int) -> Iterator[int]:
    # A process and its threads may end while we look.
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                yield from map(int, (task / "children").read_text().split())


class FamilyMember(NamedTuple):
    since: int
    pid: int
    name: str


def list_family(pid: int) -> list[FamilyMember]:
    """List those that have not ended, oldest first."""
    found: list[FamilyMember] = []
    for one in find_process_family(pid):
        with suppress(OSError, ValueError, IndexError):
            name, _, rest = Path(f"/proc/{one}/stat").read_text("utf-8", "replace").rpartition(")")
            fields = rest.split()
            if fields[0] not in "ZX":
                found.append(FamilyMember(int(fields[19]), one, name.partition("(")[2]))
    return sorted(found)


def find_shell_folder(pid: int) -> str:
    """Return the folder of the family's oldest shell: whatever it started, even under a shell's name, is younger."""
    shell = next((one for one in list_family(pid) if one.name in SHELLS), None)
    with suppress(OSError):
        return str(Path(f"/proc/{shell.pid}/cwd").readlink()) if shell else ""
    return ""


def is_shell_alone(pid: int) -> bool:
    """True if nothing is younger than the family's oldest shell. What supervises it is older."""
    family = list_family(pid)
    at = next((at for at, one in enumerate(family) if one.name in SHELLS), None)
    return at is not None and at == len(family) - 1


def signal_processes(pids: list[int], signal: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal)


# How does a child run and end? Its streams, its exit, and the end of everything it started.

KILLED = 128 + signal.SIGKILL
MAX_ERROR_BYTES = 2000
COUNT_SECONDS = 0.2
"""Seconds between counts of a family that the kernel does not limit."""
SUPERVISOR_SECONDS = 0.3
"""Seconds the supervisor gets to end what a command started. A command can stop the supervisor (SIGSTOP); then we do it
ourselves."""
SWEEP_SECONDS = 0.02


@dataclass(eq=False)
class RunningChild:
    """The `Child` port over a process and its tether."""

    process: "subprocess.Popen[bytes]"
    tether: Tether
    out: Source
    err: Source | None
    stdin: Sink | None
    pid: int = 0
    max_processes: int = 0
    """The process limit if we must count; 0 if the kernel does."""
    group: ProcessCgroup | None = None
    code: int | None = None
    line: str | None = None
    """What a shell that stays open was given last; None if it runs one command."""
    overrun: bool = False
    """True if it was ended because it started too many processes."""
    killed: bool = False
    cut_off: int | None = None
    """How the sandbox ended if nothing reports how the command did; negative for a signal."""
    since: PlantedSince | None = None
    """What existed when it began; None if that is not watched."""
    _ended: anyio.Event = field(default_factory=anyio.Event)
    _errors: bytes = b""

    @property
    def last_words(self) -> str:
        return self._errors.decode(errors="replace").strip()

    async def collect_errors(self) -> None:
        """Read its errors so that it never blocks on them, and keep the last part."""
        while self.err is not None and (piece := await self.err.read_piece()):
            self._errors = (self._errors + piece)[-MAX_ERROR_BYTES:]

    def close(self) -> None:
        """Stop reading its output."""
        for one in (self.out, self.err, self.stdin):
            if one is not None:
                one.close()

    async def output(self) -> AsyncIterator[bytes]:
        while data := await self.out.read_piece():
            yield data

    async def write(self, data: bytes) -> None:
        if self.stdin is not None:
            await self.stdin.write(data)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.code is not None
        return self.code

    async def find_planted_places(self) -> tuple[str, ...]:
        return await self.since.find_planted_paths() if self.since is not None else ()

    def has_work(self) -> bool:
        return self.code is None and (self.line is None or not is_shell_alone(self.pid))

    def find_current_folder(self) -> str:
        return find_shell_folder(self.pid)

    def describe_failure(self, printed: str) -> str:
        if self.cut_off is None:
            return ""
        if self.cut_off < 0:
            return f"The command was cut off: signal {-self.cut_off} from outside ended its sandbox."
        lines = printed.strip().splitlines() or [f"it ended with {self.cut_off}"]
        # A terminal echoes what was typed, after the sandbox's own message.
        why = self.tether.reason or next((one for one in lines if one.startswith("bwrap: ")), lines[-1])
        return f"The sandbox could not be built, so nothing ran: {why}"

    async def kill(self, grace: float = 0.0) -> None:
        with anyio.CancelScope(shield=True):
            if grace > 0 and self.code is None:
                family = [one for one in find_process_family(self.pid) if one != self.pid]
                # A shell at a terminal ignores SIGTERM, and a stopped process gets nothing until it continues.
                for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGCONT):
                    signal_processes(family, one)
                with anyio.move_on_after(grace):
                    await self._ended.wait()
            if self.code is None:
                self._kill_now()
            with anyio.move_on_after(SUPERVISOR_SECONDS):
                await self._ended.wait()
            while self.code is None:
                kill_all_below(self.process.pid)
                with anyio.move_on_after(SWEEP_SECONDS):
                    await self._ended.wait()

    async def watch_until_end(self) -> None:
        """Wait for its end and record it. Runs for as long as the child does."""
        try:
            async with anyio.create_task_group() as tasks:
                if self.max_processes:
                    tasks.start_soon(self._limit_processes)
                await _wait_for_exit(self.process)
                tasks.cancel_scope.cancel()
        finally:
            if self.process.poll() is None:
                self._kill_now()
                _force_exit(self.process)
            self._record_end(self.process.returncode)

    def _record_end(self, ended: int) -> None:
        code = self.tether.find_exit_code()
        self.cut_off = ended if code is None and not self.killed else None
        self.code = KILLED if code is None else code
        self.tether.close()
        for source in (self.out, self.err):
            if source is not None:
                source.stop_pacing()
        if self.group is not None:
            self.group.remove()
        if self.stdin is not None:
            self.stdin.close()
        self._ended.set()

    def _kill_now(self) -> None:
        self.killed = True
        self.tether.kill_all()

    async def _limit_processes(self) -> None:
        while True:
            await anyio.sleep(COUNT_SECONDS)
            if len(find_process_family(self.pid, self.max_processes + 2)) > self.max_processes:
                self.overrun = True
                self._kill_now()
                return


def kill_all_below(keeper: int) -> None:
    """End everything below the supervisor, then let it continue, with nothing left to do. Stop each process first, so
    that it cannot fork before it is killed; the next sweep catches what is missed."""
    below = [one for one in find_process_family(keeper) if one != keeper]
    signal_processes(below, signal.SIGSTOP)
    signal_processes([one for one in find_process_family(keeper) if one != keeper], signal.SIGKILL)
    signal_processes([keeper], signal.SIGCONT)


def _force_exit(process: "subprocess.Popen[bytes]") -> None:
    patience = SUPERVISOR_SECONDS
    while True:
        try:
            process.wait(timeout=patience)
            return
        except subprocess.TimeoutExpired:
            kill_all_below(process.pid)
            patience = SWEEP_SECONDS


async def _wait_for_exit(process: "subprocess.Popen[bytes]") -> None:
    """Wait without a thread if the kernel offers a pidfd."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    process.wait()
