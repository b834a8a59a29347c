"""How much time does a sandbox add to a command? `true` is started without a sandbox and in each sandbox, in turn."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.choose import SandboxChooser, find_sandboxes
from mcp_server.guards.processes.commands import ChildRegistry, CommandHost
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command, ProcessLimits
from mcp_server.model.tools import Demand, Effect

PROGRAM = "/bin/true"
PAUSE = 0.1


def list_sandboxes() -> list[Sandbox]:
    return list(find_sandboxes(os.environ.get("PATH", os.defpath), Path.cwd()))


def measure_milliseconds(sandbox: Sandbox, rounds: int) -> list[tuple[float, float]]:
    """For each round, the time in the sandbox and without it."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure_rounds(sandbox, Path(folder).resolve(), rounds))


async def _measure_rounds(sandbox: Sandbox, folder: Path, rounds: int) -> list[tuple[float, float]]:
    (folder / ".menugate").mkdir()
    private = (folder / ".menugate",)
    paths = HostPaths(folder, Path.home(), private, f"{os.defpath}:{Path(sys.executable).parent}", {"PATH": os.defpath})
    watch = PathWatch(folder, frozenset({".menugate"}))
    host = CommandHost(
        paths, Jail(folder, private), watch, ProcessLimits(), ChildRegistry(), SandboxChooser((sandbox,))
    )
    sandboxed = host.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)

    async def ours() -> object:
        return await sandboxed.run(Command((PROGRAM,)))

    async def bare() -> object:
        return await (await asyncio.create_subprocess_exec(PROGRAM)).wait()

    try:
        await ours()
        return [(await _time_run(ours), await _time_run(bare)) for _ in range(rounds)]
    finally:
        await host.close()


async def _time_run(run: Callable[[], Awaitable[object]]) -> float:
    """Measure after a pause like a model's, in which the kernel drops caches that would make a second start cheaper."""
    await asyncio.sleep(PAUSE)
    begun = time.perf_counter()
    await run()
    return (time.perf_counter() - begun) * 1000
