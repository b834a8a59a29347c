"""Does the one that waits for the next command serve one command and no other, and is it gone when nobody needs it?"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from mcp_server.guards.processes.cgroup import ProcessCgroup
from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.processes.spawn import StandbyProcess
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.model.posture import Profile
from mcp_server.model.processes import Command
from mcp_server.model.tools import Demand, Effect
from tests.clients.served import PATIENCE
from tests.guards.processes.ground import opened, sandbox, sh
from tests.guards.processes.test_child import HERE

pytestmark = pytest.mark.anyio
CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


async def waiting(made: CommandHost) -> StandbyProcess:
    """The one that is started a moment after each command."""
    with anyio.fail_after(PATIENCE):
        while (found := made.registry.standby.ready) is None:
            await anyio.sleep(0.01)
    return found


def ours() -> set[int]:
    return set(map(int, CHILDREN.read_text().split()))


@pytest.mark.parametrize("profile", [Profile.NORMAL, Profile.UNRESTRICTED])
async def test_each_command_has_one_of_its_own(box: Sandbox, work: Path, profile: Profile) -> None:
    if profile is Profile.NORMAL and box.name == "bubblewrap":
        pytest.skip("bubblewrap has nobody beside its children")
    before = ours()
    async with opened(work, box) as made:
        assert (await sh(made, "echo one", profile)).out == b"one\n"
        first = await waiting(made)
        assert (await sh(made, "echo two; exit 3", profile)).code == 3
        assert first.process.wait() == 0
        second = await waiting(made)
        assert second.process.pid != first.process.pid
    assert second.process.returncode == -signal.SIGKILL
    assert ours() <= before


async def test_the_next_command_runs_though_who_waited_was_killed(work: Path) -> None:
    async with opened(work, sandbox("landlock")) as made:
        await sh(made, "true", Profile.UNRESTRICTED)
        first = await waiting(made)
        first.process.kill()
        first.process.wait()
        assert (await sh(made, "echo still", Profile.UNRESTRICTED)).out == b"still\n"


async def test_a_command_knows_nothing_of_the_socket_its_keeper_was_told_through(box: Sandbox, work: Path) -> None:
    async with opened(work, box) as made:
        for profile in (Profile.NORMAL, Profile.UNRESTRICTED):
            await sh(made, "true", profile)
            seen = await sh(made, "ls -l /proc/self/fd; echo; cat /proc/$PPID/cmdline | tr '\\0' ' '", profile)
            assert b"socket:" not in seen.out, profile


STARTER = """
import sys
from mcp_server.guards.processes.spawn import StandbyProcess
waiting = StandbyProcess.start()
print(waiting.process.pid, flush=True)
sys.stdin.read()
"""


async def test_it_ends_with_a_server_that_is_killed() -> None:
    words = [sys.executable, "-c", STARTER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        # Held from before, so that no other process of this number is meant.
        held = os.pidfd_open(pid)
        server.kill()
        with anyio.fail_after(PATIENCE):
            await anyio.wait_readable(held)
        os.close(held)


async def test_where_the_kernel_can_count_it_counts_each_command_from_its_beginning(box: Sandbox, work: Path) -> None:
    """Also those that begin at once: what one has just made is not swept away as left behind by the next."""
    fence = ProcessCgroup.create(10)
    if fence is None:
        pytest.skip("no control group can be made here")
    fence.remove()
    async with opened(work, box) as made:
        processes = made.build_call_processes(Demand(Effect.EXEC, Profile.NORMAL), Profile.NORMAL)
        await processes.run(Command(("true",)))
        children: list[RunningChild] = []

        async def one() -> None:
            children.append(await processes.start(Command(("cat",))))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(one)
        for child in children:
            await child.write(b"it runs\n")
            assert await anext(child.output()) == b"it runs\n"
            assert child.group is not None
            assert len((child.group.folder / "cgroup.procs").read_text().split()) > 1
