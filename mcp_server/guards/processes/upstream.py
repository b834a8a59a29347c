"""How is a mounted server started? Like a command without a sandbox, except that it outlives the call.

You configured the server and approved it, so it gets no sandbox here. It gets the environment of every child and its
own variables, never ours, and the supervisor that ends everything it starts.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from msgspec.structs import replace

from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.commands import DRAIN_SECONDS, CappedOutput, CommandHost, collect_output
from mcp_server.guards.processes.spawn import spawn
from mcp_server.guards.sandbox.access import find_program, is_folder
from mcp_server.guards.sandbox.landlock import build_supervised_launch
from mcp_server.model.processes import MARK, CommandResult

MAX_INSTALLER_BYTES = 4 << 20
"""Kept of what a package manager prints."""


class UpstreamNotStarted(Exception):
    """The server did not start; the message says why."""


@dataclass(frozen=True, slots=True)
class UpstreamProgram:
    """What exactly is started."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(repr=False)
    """All of them, except for the mark that names our process."""
    folder: str


def find_upstream_program(
    host: CommandHost, argv: Sequence[str], env: Mapping[str, str], folder: str
) -> UpstreamProgram:
    """Find out what would be started, or raise `UpstreamNotStarted`."""
    if any("\0" in word for word in (*argv, *env, *env.values())):
        raise UpstreamNotStarted("its command contains a NUL character")
    place = Path(host.paths.workspace, folder)
    if not is_folder(str(place)):
        raise UpstreamNotStarted(f"the folder {place} does not exist")
    command = (_find_command(host, argv[0], place), *argv[1:])
    return UpstreamProgram(command, {**host.paths.variables, **env}, str(place))


async def start_upstream(host: CommandHost, argv: Sequence[str], env: Mapping[str, str], folder: str) -> RunningChild:
    """Start the server in `folder`; its errors get a pipe of their own."""
    program = find_upstream_program(host, argv, env, folder)
    launch = build_supervised_launch(program.argv, terminal=False)
    launch = replace(launch, plan={**(launch.plan or {}), "nice": 0})
    variables = {**program.variables, MARK: str(os.getpid())}
    try:
        child = spawn(launch, variables, program.folder, False, True, host.registry.standby)
    except OSError as error:
        raise UpstreamNotStarted((error.strerror or str(error)).lower()) from None
    host.registry.add_child(child)
    try:
        child.pid = await child.tether.release_child(child.process)
    except BaseException:
        await child.kill()
        raise
    return child


def _find_command(host: CommandHost, program: str, folder: Path) -> str:
    """A bare name is looked up on your search path, and never in the workspace, where a model could plant it."""
    if "/" in program:
        return str(folder / program)
    found = find_program(program, host.paths.search_path, host.paths.workspace)
    if found is None:
        raise UpstreamNotStarted(f"`{program}` is not on the search path")
    return found


async def run_installer(
    host: CommandHost, argv: Sequence[str], env: Mapping[str, str], folder: str, seconds: float
) -> CommandResult:
    """Run a package manager to its end. It gets no sandbox: it needs your account's settings for its registries."""
    child = await start_upstream(host, argv, env, folder)
    out, err = CappedOutput(MAX_INSTALLER_BYTES), CappedOutput(MAX_INSTALLER_BYTES)
    timed_out = True
    try:
        if child.stdin is not None:
            child.stdin.close()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect_output, out, child.out)
            tasks.start_soon(collect_output, err, child.err)
            with anyio.move_on_after(seconds):
                await child.wait()
                timed_out = False
            await child.kill()
            tasks.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
    finally:
        await child.kill()
        child.close()
    return CommandResult(child.code or 0, bytes(out.data), bytes(err.data), timed_out, out.cut or err.cut)
