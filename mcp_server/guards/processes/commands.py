"""How is a command started? The `Processes` port of one call, which finds, sandboxes and runs programs."""

import asyncio
import os
import stat
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.cgroup import ProcessCgroup
from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.choose import SandboxChooser, find_sandboxes
from mcp_server.guards.processes.output_file import OutputRoom, OverflowFile
from mcp_server.guards.processes.spawn import Standby, spawn
from mcp_server.guards.processes.streams import Source
from mcp_server.guards.sandbox.access import ChildAccess, HostPaths, build_child_access, find_program
from mcp_server.guards.sandbox.landlock import build_supervised_launch
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec, Sandbox
from mcp_server.guards.sandbox.planted_files import (
    PlantedSince,
    build_planted_refusal,
    find_obeyed_by_git,
    remove_planted_files,
)
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.guards.sandbox.proxy_socket import VARIABLES, Outlet, ProxySocket
from mcp_server.model.policy import SandboxState
from mcp_server.model.posture import Profile
from mcp_server.model.processes import (
    MARK,
    PROJECT_PROGRAMS,
    Command,
    CommandResult,
    ProcessLimits,
    SandboxPolicy,
    make_command_problem,
)
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_name
from mcp_server.model.tools import READING, Demand

DRAIN_SECONDS = 1.0
"""For the pipes of a child that has ended."""
OWN_PROCESSES = 3
"""Those between us and a command, which count with it."""

READING_GIT = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
}
"""A folder of the workspace may look like a repository whose settings name a program for `git diff` to start."""


@dataclass
class ChildRegistry:
    """Knows every running child, so that none is left when the server stops."""

    children: set[RunningChild] = field(default_factory=set[RunningChild])
    standby: Standby = field(default_factory=Standby)
    room: OutputRoom = field(default_factory=OutputRoom)
    on_start: Callable[[RunningChild], None] = lambda _: None
    """Called for each new child."""
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    def add_child(self, child: RunningChild) -> None:
        self.children.add(child)
        self.on_start(child)
        self.run_in_background(child.watch_until_end()).add_done_callback(lambda _: self.children.discard(child))

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        self.standby.close()
        async with anyio.create_task_group() as tasks:
            for child in list(self.children):
                tasks.start_soon(child.kill)


class CommandHost(Struct, frozen=True):
    """Where children are started; the same for every call."""

    paths: HostPaths
    jail: Jail
    watch: PathWatch
    limits: ProcessLimits
    registry: ChildRegistry
    chooser: SandboxChooser
    proxy: Outlet | None = None
    """What sandboxed children reach the network through; None if they get no network."""

    async def close(self) -> None:
        await self.registry.close()
        if self.proxy is not None:
            await self.proxy.close()

    def build_call_processes(self, demand: Demand, profile: Profile) -> "CallProcesses":
        return CallProcesses(self, demand, profile)


def build_command_host(
    host_paths: HostPaths,
    jail: Jail,
    policy: SandboxPolicy = SandboxPolicy.PREFERRED,
    limits: ProcessLimits | None = None,
    proxy: Outlet | None = None,
) -> CommandHost:
    return CommandHost(
        host_paths,
        jail,
        PathWatch(host_paths.workspace, frozenset(host_paths.private_inside)),
        limits or ProcessLimits(),
        ChildRegistry(),
        SandboxChooser(find_sandboxes(host_paths.search_path, host_paths.workspace), policy),
        proxy,
    )


class CallProcesses(Struct, frozen=True):
    """The `Processes` port as one call may use it."""

    host: CommandHost
    demand: Demand
    profile: Profile

    @property
    def sandbox(self) -> str:
        return self.host.chooser.name if self.profile is not Profile.UNRESTRICTED else "none"

    @property
    def network(self) -> bool:
        if self.profile is Profile.UNRESTRICTED or self.host.chooser.get_sandbox_state() is SandboxState.MISSING:
            return True
        return self.profile is Profile.TRUSTED and self.host.proxy is not None

    @property
    def fixed(self) -> tuple[str, ...]:
        if self.profile is Profile.UNRESTRICTED:
            return ()
        paths = self.host.paths
        found = paths.find_installation_inside((str(paths.workspace),))
        return tuple(inside for path in found if (inside := paths.to_workspace_path(path)))

    def find_program(self, program: str) -> str | None:
        return find_program(program, self.host.paths.search_path, self.host.paths.workspace)

    def open_overflow(self) -> OverflowFile:
        folder = next((path for path in self.host.paths.private if path.is_dir()), None)
        return OverflowFile(folder, self.host.registry.room)

    async def run(self, command: Command) -> CommandResult:
        workspace = self.host.paths.workspace
        before = find_obeyed_by_git(workspace, command.writable)
        child = await self._start_child(command, terminal=False, apart=True)
        out, err = CappedOutput(command.most_output), CappedOutput(command.most_output)
        timed_out = True
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(collect_output, out, child.out, child if command.no_more else None)
                tasks.start_soon(collect_output, err, child.err)
                tasks.start_soon(_write_input, child, command.stdin)
                with anyio.move_on_after(command.seconds):
                    await child.wait()
                    timed_out = False
                await child.kill()
                tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
        finally:
            await child.kill()
            child.close()
            planted = remove_planted_files(before, workspace, command.writable)
        _raise_if_broken(child, err.data)
        if planted:
            raise build_planted_refusal(planted)
        assert child.code is not None
        return CommandResult(child.code, bytes(out.data), bytes(err.data), timed_out, out.cut or err.cut)

    async def start(self, command: Command, terminal: bool = False) -> RunningChild:
        child = await self._start_child(command, terminal, apart=command.apart)
        if command.apart:
            self.host.registry.run_in_background(child.collect_errors())
        return child

    async def _start_child(self, command: Command, terminal: bool, apart: bool) -> RunningChild:
        host = self.host
        if any("\0" in word for word in (*command.argv, *command.env.values())):
            raise Refusal(Problem(Code.INVALID_ARGUMENTS, "The command contains a NUL character.", "Leave it out."))
        with host.jail.open_place(host.jail.to_relative(command.folder or "."), reading=True) as place:
            stats = place.stat()
            if stats is None or not stat.S_ISDIR(stats.st_mode):
                raise Refusal(
                    Problem(
                        Code.NOT_FOUND, f"`{escape_name(command.folder)}` is not a folder.", "Name one that exists."
                    )
                )
            folder = str(host.paths.workspace / place.path)
        access: ChildAccess | None = None
        since: PlantedSince | None = None
        sandbox: Sandbox | None = None
        if command.read_only or self.profile is not Profile.UNRESTRICTED:
            protected = await host.watch.get_protected_paths()
            access = build_child_access(host.paths, protected, self.profile, self.demand, command, folder)
            since = PlantedSince(host.watch, protected) if access.writable else None
            sandbox = await host.chooser.choose_sandbox()
        program = command.argv[0] if "/" in command.argv[0] else self.find_program(command.argv[0])
        if program is None:
            raise Refusal(
                Problem(Code.NOT_FOUND, f"`{command.argv[0]}` is not installed here.", "Ask the user to install it.")
            )
        argv = (program, *command.argv[1:])
        if access is None or sandbox is None:
            self._check_run_without_sandbox(command, access)
            # Without a sandbox it could run the user's own commands. These variables tell them which state to use, and
            # who started them.
            variables = {**host.paths.outside, MARK: str(os.getpid())}
            launch = replace(build_supervised_launch(argv, terminal), variables=variables)
            child = await self._spawn_child(launch, command, folder, terminal, apart)
        else:
            spec = LaunchSpec(argv, access, host.limits, command.seconds, terminal)
            command = self._put_project_first(command)
            child = await self._start_in_sandbox(sandbox, spec, command, apart)
        child.since = since
        return child

    def _check_run_without_sandbox(self, command: Command, access: ChildAccess | None) -> None:
        """Without a sandbox a command needs the next higher profile, if it may run at all."""
        if access is None:
            return
        enough = self.profile.covers(self.demand.profile.next_higher)
        if self.host.chooser.policy is SandboxPolicy.REQUIRED or command.read_only or not enough:
            raise Refusal(
                Problem(
                    Code.NOT_GRANTED,
                    f"This must run in a sandbox, and no sandbox works here ({self._describe_missing_sandbox()}); "
                    "nothing ran.",
                    "Ask the user to install bubblewrap (on Debian: `apt-get install bubblewrap`), or to raise the "
                    "profile.",
                )
            )
        if self.fixed:
            names = ", ".join(f"`{path}`" for path in self.fixed)
            raise Refusal(
                Problem(
                    Code.NOT_GRANTED,
                    f"menugate runs from {names} in this workspace, and without a sandbox a command could change that "
                    f"({self._describe_missing_sandbox()}); nothing ran.",
                    "Tell the user that a menugate installed outside the workspace can serve it instead.",
                )
            )

    def _describe_missing_sandbox(self) -> str:
        if self.host.chooser.policy is SandboxPolicy.OFF:
            return "the operator switched it off"
        return self.host.chooser.describe_faults() or "none exists for this system"

    def _put_project_first(self, command: Command) -> Command:
        """Put the project's own environment first on its PATH. A call that only reads runs nothing that the project
        brought along."""
        if not command.project_first:
            return command
        if self.demand.effect in READING:
            return replace(command, env={**READING_GIT, **command.env})
        workspace = self.host.paths.workspace
        folders = [str(workspace / name) for name in PROJECT_PROGRAMS if (workspace / name).is_dir()]
        search_path = os.pathsep.join((*folders, self.host.paths.variables.get("PATH", os.defpath)))
        return replace(command, env={**command.env, "PATH": search_path}) if folders else command

    async def _start_in_sandbox(
        self, sandbox: Sandbox, spec: LaunchSpec, command: Command, apart: bool
    ) -> RunningChild:
        proxy = self.host.proxy if sandbox.leads_out and spec.access.network else None
        if proxy is None:
            return await self._spawn_child(sandbox.build_launch(spec), command, "/", spec.terminal, apart)
        proxy_socket = ProxySocket.create()
        try:
            launch = sandbox.build_launch(replace(spec, proxy_socket=proxy_socket))
        except BaseException:
            proxy_socket.abandon()
            raise
        launch = replace(launch, variables={**launch.variables, **VARIABLES})
        child = await self._spawn_child(launch, command, "/", spec.terminal, apart)
        self.host.registry.run_in_background(proxy_socket.serve_child(proxy, child))
        return child

    async def _spawn_child(
        self, launch: Launch, command: Command, folder: str, terminal: bool, apart: bool
    ) -> RunningChild:
        return await spawn_child(self.host, launch, command.env, folder, terminal, apart)


async def spawn_child(
    host: CommandHost, launch: Launch, variables: Mapping[str, str], folder: str, terminal: bool, apart: bool
) -> RunningChild:
    env = {**host.paths.variables, **variables, **launch.variables}
    group = ProcessCgroup.create(host.limits.processes + OWN_PROCESSES) if launch.counted else None
    launch = group.wrap_launch(launch) if group else launch
    try:
        child = spawn(launch, env, folder, terminal, apart, host.registry.standby)
    except OSError as error:
        if group:
            group.remove()
        raise Refusal(make_command_problem(f"The command could not start: {error.strerror or error}.")) from None
    host.registry.add_child(child)
    child.group, child.max_processes = group, host.limits.processes if launch.counted else 0
    try:
        child.pid = await child.tether.release_child(child.process)
    except BaseException:
        await child.kill()
        raise
    return child


@dataclass
class CappedOutput:
    """The beginning of the output, and whether there was more."""

    max_bytes: int
    data: bytearray = field(default_factory=bytearray)
    cut: bool = False

    def add(self, piece: bytes) -> None:
        room = self.max_bytes - len(self.data)
        self.data += piece[:room]
        self.cut = self.cut or len(piece) > room


async def collect_output(output: CappedOutput, source: Source | None, to_kill: RunningChild | None = None) -> None:
    """`to_kill`: the child to end once its output is longer than what is kept."""
    while source is not None and (piece := await source.read_piece()):
        output.add(piece)
        if output.cut and to_kill is not None:
            return await to_kill.kill()


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
                f"The command started more than {child.max_processes} processes, so all of them were ended.",
                "Start fewer at a time.",
            )
        )
