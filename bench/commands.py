"""What does it add to a command that it runs shut in? `true`, started plainly and in each sandbox in turns."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.build import find_sandboxes
from mcp_server.guards.processes.choose import SandboxChooser
from mcp_server.guards.processes.commands import ChildRegistry, CommandHost
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command, ProcessLimits
from mcp_server.model.tools import Demand, Effect

PROGRAM = "/bin/true"
PAUSE = 0.1


def sandboxes() -> list[Sandbox]:
    return list(find_sandboxes(os.environ.get("PATH", os.defpath)))


def milliseconds(sandbox: Sandbox, rounds: int) -> list[tuple[float, float]]:
    """Of each round: shut in, and bare."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(sandbox, Path(folder).resolve(), rounds))


async def _measured(sandbox: Sandbox, folder: Path, rounds: int) -> list[tuple[float, float]]:
    (folder / ".menugate").mkdir()
    private = (folder / ".menugate",)
    ground = HostPaths(
        folder, Path.home(), private, f"{os.defpath}:{Path(sys.executable).parent}", {"PATH": os.defpath}
    )
    watch = PathWatch(folder, frozenset({".menugate"}))
    shop = CommandHost(
        ground, Jail(folder, private), watch, ProcessLimits(), ChildRegistry(), SandboxChooser((sandbox,))
    )
    shut_in = shop.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)

    async def ours() -> object:
        return await shut_in.run(Command((PROGRAM,)))

    async def bare() -> object:
        return await (await asyncio.create_subprocess_exec(PROGRAM)).wait()

    try:
        await ours()
        return [(await _timed(ours), await _timed(bare)) for _ in range(rounds)]
    finally:
        await shop.close()


async def _timed(run: Callable[[], Awaitable[object]]) -> float:
    """After a pause, as a model makes one: the kernel forgets within it what makes a second start cheaper."""
    await asyncio.sleep(PAUSE)
    begun = time.perf_counter()
    await run()
    return (time.perf_counter() - begun) * 1000
