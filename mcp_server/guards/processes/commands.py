"""How is a command started? Found, sandboxed, run or kept running: the `Processes` port of one call."""

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.cgroup import ProcessCgroup
from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.choose import SandboxChooser
from mcp_server.guards.processes.output_file import OutputRoom, OverflowFile
from mcp_server.guards.processes.spawn import Standby, spawn
from mcp_server.guards.processes.streams import Source
from mcp_server.guards.sandbox.access import ChildAccess, HostPaths, build_child_access, is_sandbox_needed
from mcp_server.guards.sandbox.landlock import build_supervised_launch
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec, Sandbox
from mcp_server.guards.sandbox.planted_files import (
    PlantedSince,
    build_planted_refusal,
    find_existing_obeyed,
    find_obeyed_by_git,
    remove_planted_files,
)
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.guards.sandbox.proxy_socket import VARIABLES, Outlet, ProxySocket
from mcp_server.model.policy import SandboxState
from mcp_server.model.posture import Profile
from mcp_server.model.processes import MARK, Command, CommandResult, ProcessLimits, SandboxPolicy, make_command_problem
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import READING, Demand

NONE = "none"
AFTER = 1.0
"""Seconds to drain the pipes of a child that has ended."""
PROJECT_PROGRAMS = (".venv/bin", "venv/bin")
OWN = 3
"""Our own processes between us and a command, which count with it."""


@dataclass
class ChildRegistry:
    """Knows every running child, so that none is left when the server stops."""

    children: set[RunningChild] = field(default_factory=set[RunningChild])
    standby: Standby = field(default_factory=Standby)
    room: OutputRoom = field(default_factory=OutputRoom)
    born: Callable[[RunningChild], None] = lambda _: None
    """Called for each new child; set by whoever created this registry."""
    _following: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def add_child(self, child: RunningChild) -> None:
        self.children.add(child)
        self.born(child)
        self.run_in_background(child.watch_until_end()).add_done_callback(lambda _: self.children.discard(child))

    def start_collecting_errors(self, child: RunningChild) -> None:
        self.run_in_background(child.collect_errors())

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._following.add(task)
        task.add_done_callback(self._following.discard)
        return task

    async def close(self) -> None:
        self.standby.close()
        async with anyio.create_task_group() as tasks:
            for child in list(self.children):
                tasks.start_soon(child.kill)


@dataclass(frozen=True)
class CommandHost:
    """Where children are started; the same for every call."""

    ground: HostPaths
    jail: Jail
    watch: PathWatch
    limits: ProcessLimits
    nursery: ChildRegistry
    ladder: SandboxChooser
    outlet: Outlet | None = None
    """The proxy that sandboxed children reach; None if they get no network."""

    async def close(self) -> None:
        await self.nursery.close()
        if self.outlet is not None:
            await self.outlet.close()

    def build_call_processes(self, demand: Demand, profile: Profile) -> "CallProcesses":
        return CallProcesses(self, demand, profile)


@dataclass(frozen=True)
class CallProcesses:
    """The `Processes` port as one call may use it."""

    shop: CommandHost
    demand: Demand
    profile: Profile

    @property
    def sandbox(self) -> str:
        return self.shop.ladder.name if self.profile is not Profile.UNRESTRICTED else NONE

    @property
    def network(self) -> bool:
        if self.profile is Profile.UNRESTRICTED or self.shop.ladder.get_sandbox_state() is SandboxState.MISSING:
            return True
        return self.profile is Profile.TRUSTED and self.shop.outlet is not None

    @property
    def fixed(self) -> tuple[str, ...]:
        ground = self.shop.ground
        found = (
            ground.find_installation_inside((str(ground.workspace),))
            if self.profile is not Profile.UNRESTRICTED
            else ()
        )
        return tuple(inside for one in found if (inside := ground.to_workspace_path(one)))

    def find_program(self, program: str) -> str | None:
        ground, found = self.shop.ground, program if "/" in program else None
        for folder in ground.search_path.split(os.pathsep) if found is None else ():
            found = shutil.which(program, path=folder) if folder.startswith("/") else None
            if found is not None and ground.to_workspace_path(Path(folder).resolve()) is None:
                break
            found = None
        if found is None or ground.to_workspace_path(Path(found).resolve()) is not None:
            return None
        return found if os.access(found, os.X_OK) else None

    def open_overflow(self) -> OverflowFile:
        return OverflowFile(
            next((one for one in self.shop.ground.private if one.is_dir()), None), self.shop.nursery.room
        )

    def _check_run_without_sandbox(self, command: Command, within: ChildAccess | None) -> None:
        """Without a sandbox a command needs one profile higher, if it may run at all."""
        if within is None:
            return
        enough = self.profile.covers(self.demand.profile.next_higher)
        if self.shop.ladder.want is SandboxPolicy.REQUIRED or command.read_only or not enough:
            raise build_no_sandbox_refusal(self.shop.ladder)
        if self.fixed:
            raise build_rewritable_refusal(self.shop.ladder, self.fixed)

    def _find_program(self, name: str) -> str:
        if found := name if "/" in name else self.find_program(name):
            return found
        raise Refusal(Problem(Code.NOT_FOUND, f"`{name}` is not installed here.", "Have the person install it."))

    async def run(self, command: Command) -> CommandResult:
        workspace = self.shop.ground.workspace
        before = find_obeyed_by_git(workspace, command.writable)
        child = await self._start_child(command, terminal=False, apart=True)
        out, err = CappedOutput(command.most_output), CappedOutput(command.most_output)
        timed_out = True
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_collect_output, out, child.out, child if command.no_more else None)
                tasks.start_soon(_collect_output, err, child.err)
                tasks.start_soon(_write_input, child, command.stdin)
                with anyio.move_on_after(command.seconds):
                    await child.wait()
                    timed_out = False
                await child.kill()
                tasks.cancel_scope.deadline = anyio.current_time() + AFTER
        finally:
            await child.kill()
            child.close()
            strays = remove_planted_files(before, workspace, command.writable)
        _raise_if_broken(child, err.data)
        if strays:
            raise build_planted_refusal(strays)
        assert child.code is not None
        return CommandResult(child.code, bytes(out.data), bytes(err.data), timed_out, out.cut or err.cut)

    async def start(self, command: Command, terminal: bool = False) -> RunningChild:
        child = await self._start_child(command, terminal, apart=command.apart)
        if command.apart:
            self.shop.nursery.start_collecting_errors(child)
        return child

    async def _start_child(self, command: Command, terminal: bool, apart: bool) -> RunningChild:
        shop = self.shop
        if any("\0" in word for word in (*command.argv, *command.env.values())):
            raise Refusal(Problem(Code.INVALID_ARGUMENTS, "The command holds a NUL character.", "Leave it out."))
        with shop.jail.open_place(shop.jail.to_relative(command.folder or "."), reading=True) as place:
            found = place.stat()
            if found is None or not stat.S_ISDIR(found.st_mode):
                raise Refusal(Problem(Code.NOT_FOUND, f"`{command.folder}` is no folder.", "Name one that is there."))
            folder = str(shop.ground.workspace / place.path)
        within: ChildAccess | None = None
        since: PlantedSince | None = None
        if is_sandbox_needed(self.profile, command):
            places = await shop.watch.get_protected_paths()
            within = build_child_access(shop.ground, places, self.profile, self.demand, command, folder)
            since = PlantedSince(shop.watch, find_existing_obeyed(shop.watch.root, places)) if within.writable else None
        argv = (self._find_program(command.argv[0]), *command.argv[1:])
        sandbox = await shop.ladder.choose_sandbox() if within is not None else None
        if within is None or sandbox is None:
            self._check_run_without_sandbox(command, within)
            # Not sandboxed, it could reach the person's own commands: this tells them which state to use, and who
            # started it.
            launch = replace(
                build_supervised_launch(argv, terminal), variables={**shop.ground.outside, MARK: str(os.getpid())}
            )
            child = await self._spawn_child(launch, command, folder, terminal, apart)
        else:
            start = LaunchSpec(argv, within, shop.limits, command.seconds, terminal)
            command = self._put_project_first(command)
            child = await self._start_in_sandbox(sandbox, start, command, apart)
        child.since = since
        return child

    def _put_project_first(self, command: Command) -> Command:
        """Put the project's own environment first on its PATH. A call that only reads runs nothing that the project
        brought along."""
        if not command.project_first or self.demand.effect in READING:
            return command
        workspace = self.shop.ground.workspace
        folders = [str(workspace / name) for name in PROJECT_PROGRAMS if (workspace / name).is_dir()]
        search_path = os.pathsep.join((*folders, self.shop.ground.variables.get("PATH", os.defpath)))
        return replace(command, env={**command.env, "PATH": search_path}) if folders else command

    async def _start_in_sandbox(
        self, sandbox: Sandbox, start: LaunchSpec, command: Command, apart: bool
    ) -> RunningChild:
        outlet = self.shop.outlet if sandbox.leads_out and start.reach.network else None
        if outlet is None:
            return await self._spawn_child(sandbox.build_launch(start), command, "/", start.terminal, apart)
        lane = ProxySocket.create()
        try:
            launch = sandbox.build_launch(replace(start, lane=lane))
        except BaseException:
            lane.abandon()
            raise
        launch = replace(launch, variables={**launch.variables, **VARIABLES})
        child = await self._spawn_child(launch, command, "/", start.terminal, apart)
        self.shop.nursery.run_in_background(lane.serve_child(outlet, child))
        return child

    async def _spawn_child(
        self, launch: Launch, command: Command, folder: str, terminal: bool, apart: bool
    ) -> RunningChild:
        shop = self.shop
        env = {**shop.ground.variables, **command.env, **launch.variables}
        fence = ProcessCgroup.create(shop.limits.processes + OWN) if launch.counted else None
        launch = fence.wrap_launch(launch) if fence else launch
        try:
            child = spawn(launch, env, folder, terminal, apart, shop.nursery.standby)
        except OSError as error:
            if fence:
                fence.remove()
            raise Refusal(make_command_problem(f"The command could not start: {error.strerror or error}.")) from None
        shop.nursery.add_child(child)
        child.fence, child.most = fence, shop.limits.processes if launch.counted else 0
        try:
            child.pid = await child.tether.release_child(child.process)
        except BaseException:
            await child.kill()
            raise
        return child


def build_rewritable_refusal(ladder: SandboxChooser, fixed: Sequence[str]) -> Refusal:
    """Refuse: without a sandbox, nothing stops a command from changing menugate's own installation."""
    names = ", ".join(f"`{one}`" for one in fixed)
    return Refusal(
        Problem(
            Code.NOT_GRANTED,
            f"menugate runs from {names} in this workspace, and without a sandbox a command could change that "
            f"({_describe_missing_sandbox(ladder)}); nothing ran.",
            "Tell the user: a menugate that is installed outside the workspace can serve it instead.",
        )
    )


def build_no_sandbox_refusal(ladder: SandboxChooser) -> Refusal:
    why = _describe_missing_sandbox(ladder)
    return Refusal(
        Problem(
            Code.NOT_GRANTED,
            f"This has to run shut in, and there is no sandbox here ({why}).",
            "Have the person install bubblewrap (on Debian: `apt-get install bubblewrap`), or raise the profile.",
        )
    )


def _describe_missing_sandbox(ladder: SandboxChooser) -> str:
    tried = "; ".join(f"{name}: {fault}" for name, fault in ladder.faults.items() if fault)
    return (
        "the operator switched it off" if ladder.want is SandboxPolicy.OFF else tried or "there is none for this system"
    )


@dataclass
class CappedOutput:
    """The beginning of the output, and whether there was more."""

    most: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def add(self, piece: bytes) -> None:
        room = self.most - len(self.data)
        self.data += piece[:room]
        self.cut = self.cut or len(piece) > room


async def _collect_output(kept: CappedOutput, source: Source | None, ending: RunningChild | None = None) -> None:
    while source is not None and (piece := await source.read_piece()):
        kept.add(piece)
        if kept.cut and ending is not None:
            return await ending.kill()


async def _write_input(child: RunningChild, data: bytes | None) -> None:
    if child.stdin is not None:
        await child.stdin.write(data or b"")
        child.stdin.close()


def _raise_if_broken(child: RunningChild, errors: bytearray) -> None:
    if failure := child.describe_failure(bytes(errors[-500:]).decode(errors="replace")):
        raise Refusal(make_command_problem(failure))
    if child.overrun:
        raise Refusal(
            Problem(
                Code.TOO_LARGE,
                f"The command started more than {child.most} processes, and all of it was ended.",
                "Start fewer at a time.",
            )
        )
