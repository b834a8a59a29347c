"""How is a command started? Found, shut in, run or kept running: the `Processes` port of one call.

Everything is started by the thread of the event loop: what asks the kernel to end a child with its parent means the
thread that started it.
"""

import asyncio
import os
import pty
import shutil
import subprocess
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.child import Running
from mcp_server.guards.processes.choosing import Ladder
from mcp_server.guards.processes.launching import Launch
from mcp_server.guards.processes.limits import Limits
from mcp_server.guards.processes.places import Watch
from mcp_server.guards.processes.reach import Ground, Reach, contained, reach
from mcp_server.guards.processes.streams import Sink, Source
from mcp_server.model.ending import Code, Problem, Refusal
from mcp_server.model.ports.processes import Command, Ran
from mcp_server.model.posture import Profile
from mcp_server.model.tool import Demand

ROWS, COLUMNS = 40, 160
AFTER = 1.0
"""Seconds for what is still in the pipes of a child that has ended."""


@dataclass
class Nursery:
    """Every child that runs, so that none is left when the server stops."""

    children: set[Running] = field(default_factory=set[Running])
    _following: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def take(self, child: Running) -> None:
        self.children.add(child)
        task = asyncio.get_running_loop().create_task(child.follow())
        self._following.add(task)

        def over(done: "asyncio.Task[None]") -> None:
            self.children.discard(child)
            self._following.discard(done)

        task.add_done_callback(over)

    async def close(self) -> None:
        async with anyio.create_task_group() as tasks:
            for child in list(self.children):
                tasks.start_soon(child.kill)


@dataclass(frozen=True)
class Workshop:
    """Where children are started: the same for every call."""

    ground: Ground
    jail: Jail
    watch: Watch
    limits: Limits
    nursery: Nursery
    ladder: Ladder

    def granted(self, demand: Demand, profile: Profile) -> "Granted":
        return Granted(self, demand, profile)


@dataclass(frozen=True)
class Granted:
    """The `Processes` port as one call may use it."""

    shop: Workshop
    demand: Demand
    profile: Profile

    @property
    def sandbox(self) -> str:
        return self.shop.ladder.name if self.profile is not Profile.UNRESTRICTED else "none"

    def find(self, program: str) -> str | None:
        folders = [one for one in self.shop.ground.search_path.split(os.pathsep) if one.startswith("/")]
        found = shutil.which(program, path=os.pathsep.join(folders)) if "/" not in program else program
        if found is None or self.shop.ground.inside(Path(found).resolve()) is not None:
            return None
        return found if os.access(found, os.X_OK) else None

    async def run(self, command: Command) -> Ran:
        child = await self._start(command, terminal=False, apart=True)
        out, err = Kept(command.most_output), Kept(command.most_output)
        timed_out = True
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_fill, out, child.out)
                tasks.start_soon(_fill, err, child.err)
                tasks.start_soon(_feed, child, command.stdin)
                with anyio.move_on_after(command.seconds):
                    await child.wait()
                    timed_out = False
                await child.kill()
                tasks.cancel_scope.deadline = anyio.current_time() + AFTER
        finally:
            await child.kill()
            child.close()
        _say_if_broken(child, err.data)
        assert child.code is not None
        return Ran(child.code, bytes(out.data), bytes(err.data), timed_out, out.cut or err.cut)

    async def start(self, command: Command, terminal: bool = False) -> Running:
        return await self._start(command, terminal, apart=False)

    async def _start(self, command: Command, terminal: bool, apart: bool) -> Running:
        shop = self.shop
        with shop.jail.place(shop.jail.relative(command.folder or "."), reading=True) as place:
            folder = str(shop.ground.workspace / place.path)
        within: Reach | None = None
        if contained(self.profile, command):
            places = await shop.watch.places()
            within = reach(shop.ground, places, self.profile, self.demand, command, folder)
        sandbox = await shop.ladder.chosen(needed=within is not None)
        argv = (*TERMINAL, *command.argv) if terminal else command.argv
        launch = sandbox.launch(argv, within, shop.limits, command.seconds)
        env = {**shop.ground.variables, **command.env}
        child = _spawn(launch, env, folder if within is None else "/", terminal, apart)
        shop.nursery.take(child)
        child.most = shop.limits.processes if launch.counted else 0
        try:
            child.pid = await child.tether.begin(child.process)
        except BaseException:
            await child.kill()
            raise
        return child


TERMINAL = ("setsid", "-c", "-w")
"""Makes the terminal the child's own, without which it has no job control and nobody can interrupt it."""


def _spawn(launch: Launch, env: Mapping[str, str], folder: str, terminal: bool, apart: bool) -> Running:
    """`apart`: errors come on a pipe of their own."""
    ours, theirs = _ends(terminal, apart)
    try:
        process = subprocess.Popen(  # noqa: S603  # the words are a command's own, and no shell reads them
            launch.argv,
            stdin=theirs[0],
            stdout=theirs[1],
            stderr=theirs[2],
            env=dict(env),
            cwd=folder,
            pass_fds=launch.lent,
            start_new_session=True,
        )
    except BaseException:
        for one in ours:
            os.close(one)
        launch.tether.close()
        raise
    finally:
        for one in {*theirs, *launch.lent}:
            os.close(one)
    out = Source(ours[0])
    err = Source(ours[2]) if len(ours) > 2 else None
    return Running(process, launch.tether, out, err, Sink(ours[1]))


def _ends(terminal: bool, apart: bool) -> tuple[list[int], list[int]]:
    """Ours: to read from, to write to, and to read errors from; theirs as a program counts them."""
    if terminal:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
        return [ours, os.dup(ours)], [theirs, theirs, theirs]
    stdin, to_them = os.pipe()
    from_them, stdout = os.pipe()
    if not apart:
        return [from_them, to_them], [stdin, stdout, stdout]
    errors, stderr = os.pipe()
    return [from_them, to_them, errors], [stdin, stdout, stderr]


@dataclass
class Kept:
    """The beginning of what came, and whether there was more."""

    most: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def add(self, piece: bytes) -> None:
        room = self.most - len(self.data)
        self.data += piece[:room]
        self.cut = self.cut or len(piece) > room


async def _fill(kept: Kept, source: Source | None) -> None:
    while source is not None and (piece := await source.piece()):
        kept.add(piece)


async def _feed(child: Running, data: bytes | None) -> None:
    if child.stdin is not None:
        await child.stdin.write(data or b"")
        child.stdin.close()


def _say_if_broken(child: Running, errors: bytearray) -> None:
    if not child.begun:
        said = bytes(errors[-500:]).decode(errors="replace").strip() or f"it ended with {child.process.returncode}"
        raise Refusal(Problem(Code.TOOL_FAILED, f"The sandbox could not be built: {said}", "Nothing ran."))
    if child.overrun:
        raise Refusal(
            Problem(
                Code.TOO_LARGE,
                f"The command started more than {child.most} processes, and all of it was ended.",
                "Start fewer at a time.",
            )
        )
