"""Does everything a command started end with it? When it is over, too long, taken back, or the server is killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.tools import Demand, Effect
from tests.clients.waiting import async_becomes_true
from tests.guards.processes.ground import opened, sh

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parents[3]
LEAVING = "setsid sleep {0} & (sleep {0} &) ; nohup sleep {0} >/dev/null 2>&1 & trap '' TERM HUP INT; "
EVERYWHERE = [Profile.NORMAL, Profile.UNRESTRICTED]


def asleep(mark: str) -> list[int]:
    """The processes, seen from here, that sleep for so long: a number nobody else sleeps for."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", mark.encode()]:
                found.append(int(folder.name))
    return found


def number() -> str:
    return f"{5000 + os.getpid() % 1000}.{time.monotonic_ns() % 10**9}"


async def gone(mark: str) -> bool:
    return await async_becomes_true(lambda: not asleep(mark))


async def there(mark: str) -> bool:
    """All three of them; what was started is not at once what it becomes."""
    return await async_becomes_true(lambda: len(asleep(mark)) == 3)


@pytest.mark.parametrize("profile", EVERYWHERE)
async def test_what_is_left_behind_ends_with_the_command(box: Sandbox, work: Path, profile: Profile) -> None:
    mark = number()
    async with opened(work, box) as made:
        ran = await sh(made, LEAVING.format(mark) + "sleep 0.2; echo done", profile)
        assert ran.out == b"done\n"
        assert await gone(mark)


@pytest.mark.parametrize("profile", EVERYWHERE)
async def test_it_ends_when_its_time_is_over_and_when_it_is_taken_back(
    box: Sandbox, work: Path, profile: Profile
) -> None:
    mark = number()
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), profile)
        line = LEAVING.format(mark) + f"sleep {mark}"
        ran = await processes.run(Command(("bash", "-c", line), seconds=0.4))
        assert ran.timed_out
        assert await gone(mark)
        with anyio.move_on_after(0.4):
            await processes.run(Command(("bash", "-c", line)))
        assert await gone(mark)


async def test_a_killed_shell_takes_its_family_along(box: Sandbox, work: Path) -> None:
    mark = number()
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)
        child = await processes.start(Command(("bash", "-c", LEAVING.format(mark) + "echo ready; sleep 100")), True)
        async for piece in child.output():
            if b"ready" in piece:
                break
        assert await there(mark)
        await child.kill(grace=0.1)
        assert await gone(mark)


async def test_a_terminal_is_the_childs_own(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)
        child = await processes.start(Command(("bash", "-c", "stty size; read -r x; echo got $x; sleep 50")), True)
        said = b""
        async for piece in child.output():
            said += piece
            if b"40 160" in said and b"hello" not in said:
                await child.write(b"hello\n")
            if b"got hello" in said:
                await child.write(b"\x03")
        assert await child.wait() == 130


@pytest.mark.parametrize("profile", EVERYWHERE)
async def test_who_prints_to_nobody_ends_without_a_word(box: Sandbox, work: Path, profile: Profile) -> None:
    async with opened(work, box) as made:
        ran = await sh(made, "yes | head -1; echo ${PIPESTATUS[0]}", profile)
        assert (ran.out, ran.err) == (b"y\n141\n", b"")


STARTER = """
import asyncio, sys
from pathlib import Path
from mcp_server.model.processes import Command
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect
from tests.guards.processes.ground import sandbox, shop
async def main(work, box, profile, line):
    made = shop(Path(work), sandbox(box))
    processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile(profile))
    child = await processes.start(Command(("bash", "-c", line), seconds=100))
    async for piece in child.output():
        print(piece.decode(), flush=True)
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("profile", EVERYWHERE)
async def test_nothing_outlives_a_server_that_is_killed(box: Sandbox, work: Path, profile: Profile) -> None:
    mark = number()
    line = LEAVING.format(mark) + "echo ready; sleep 100"
    words = [sys.executable, "-c", STARTER, str(work), box.name, profile, line]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=HERE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            assert await there(mark)
        finally:
            server.kill()
        assert await gone(mark)


def test_programs_are_never_found_in_the_workspace(work: Path) -> None:
    program = work / "bin" / "canary"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    from msgspec.structs import replace

    from tests.guards.processes.ground import shop

    made = shop(work, None)
    paths: HostPaths = replace(made.paths, search_path=f"{program.parent}:bin:{made.paths.search_path}")
    processes = replace(made, paths=paths).build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)
    assert processes.find_program("canary") is None
    assert processes.find_program("bash") == "/usr/bin/bash"
