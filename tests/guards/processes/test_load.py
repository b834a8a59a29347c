"""Do many programs that print without end leave the server its memory and its time?"""

import resource
import time
from pathlib import Path

import anyio
import pytest

from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.model.posture import Profile
from mcp_server.model.processes import ChildProcess, Command
from mcp_server.model.tools import Demand, Effect
from tests.guards.processes.ground import opened
from tests.sizes import FULL, scale
from tools.shell.output import Screen

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]
SHELLS = scale(24, 4)
KEPT, SLACK = 32 << 10, 4 << 20
SECONDS = 3.0 if FULL else 0.6


async def late(seconds: float) -> float:
    """How much later than asked somebody is woken, in the worst of a hundred times but one."""
    found: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        await anyio.sleep(0.005)
        found.append(time.monotonic() - begun)
    return sorted(found)[int(len(found) * 0.99) - 1]


async def drink(child: ChildProcess, screen: Screen) -> None:
    async for piece in child.output():
        screen.add(piece)
        screen.take_overflow()


async def test_a_crowd_that_prints_without_end_is_borne(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)
        children = [await processes.start(Command(("yes",), seconds=60)) for _ in range(SHELLS)]
        screens = [Screen(KEPT, KEPT) for _ in children]
        before = after = 0
        crowded = 0.0
        async with anyio.create_task_group() as tasks:
            for child, screen in zip(children, screens, strict=True):
                tasks.start_soon(drink, child, screen)
            await anyio.sleep(SECONDS / 2)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            crowded = await late(SECONDS)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for child in children:
                tasks.start_soon(child.kill)
        quiet = await late(SECONDS / 2)
    # What is kept is bounded; what is printed after that leaves no trace.
    assert all(screen.total > 2 * KEPT for screen in screens)
    assert after - before < (SHELLS * 2 * KEPT + SLACK) / 1024
    assert crowded < max(40 * quiet, 0.25)
