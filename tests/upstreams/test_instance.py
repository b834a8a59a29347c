"""Does a server run when it is needed, stop when it is not, and leave nothing behind?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import Serve, UpstreamState
from tests.clients.waiting import async_becomes_true, wait_until
from tests.guards.processes.test_child import asleep, gone, number
from tests.sizes import scale
from tests.upstreams.ground import caller, grounded, script

pytestmark = pytest.mark.anyio


async def test_an_unused_server_stops_and_the_next_call_starts_it(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", idle_seconds=0.1)) as ground:
        for _ in range(2):
            await ground.servers.call_tool("raw", "two", {}, caller())
            assert await async_becomes_true(lambda: not ground.host.registry.children)
            assert await async_becomes_true(lambda: ground.servers.get_status("raw").state is UpstreamState.IDLE)
        assert len((await ground.servers.get_catalogue("raw", caller())).tools) == 2


@pytest.mark.heavy
async def test_a_server_that_fails_again_and_again_is_left_alone_for_longer_and_longer(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", "dead")) as ground:
        began, messages = time.monotonic(), list[str]()
        while not messages or "tried again in" not in messages[-1]:
            with pytest.raises(Refusal) as refused:
                await ground.servers.call_tool("raw", "two", {}, caller())
            messages.append(refused.value.problem.message)
        assert len(messages) > 3 and time.monotonic() - began > 2
        started = time.monotonic()
        for _ in range(100):
            with pytest.raises(Refusal):
                await ground.servers.call_tool("raw", "two", {}, caller())
        assert time.monotonic() - started < 0.5


async def test_a_server_that_failed_once_is_tried_again_at_once(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", "crash_at_start", str(tmp_path / "count"))) as ground:
        with pytest.raises(Refusal):
            await ground.servers.call_tool("raw", "two", {}, caller())
        await ground.servers.call_tool("raw", "two", {}, caller())


async def test_at_most_four_servers_start_at_once(tmp_path: Path) -> None:
    mounts = [script("raw", "hang_at_start", called=f"raw{n}", start_seconds=60.0) for n in range(6)]
    async with grounded(tmp_path, *mounts) as ground, anyio.create_task_group() as tasks:
        for mount in mounts:
            tasks.start_soon(ground.servers.get_catalogue, mount.name, caller())
        assert await async_becomes_true(lambda: len(ground.host.registry.children) == 4)
        await anyio.sleep(0.5)
        assert len(ground.host.registry.children) == 4
        tasks.cancel_scope.cancel()


async def test_each_session_has_its_own_instance_and_is_told_when_its_state_is_gone(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", "crash", serve=Serve.SESSION)) as ground:
        for session in ("s1", "s2"):
            result = await ground.servers.call_tool("raw", "two", {}, caller(session=session))
            assert [block["text"] for block in result["content"]] == ["fine"]
        assert len(ground.host.registry.children) == 2
        with pytest.raises(Refusal):
            await ground.servers.call_tool("raw", "one", {}, caller(session="s1"))
        result = await ground.servers.call_tool("raw", "two", {}, caller(session="s1"))
        assert "is gone" in result["content"][0]["text"] and result["content"][1]["text"] == "fine"
        for session in ("s1", "s2"):
            result = await ground.servers.call_tool("raw", "two", {}, caller(session=session))
            assert [block["text"] for block in result["content"]] == ["fine"]
        ground.servers.end_session("s1")
        assert await async_becomes_true(lambda: len(ground.host.registry.children) == 1)


@pytest.mark.parametrize(
    ("serve", "instances"), [(Serve.ALL, 2), (Serve.PRINCIPAL, 3), (Serve.SESSION, 4)], ids=lambda value: str(value)
)
async def test_who_shares_an_instance(tmp_path: Path, serve: Serve, instances: int) -> None:
    async with grounded(tmp_path, script("raw", serve=serve)) as ground:
        for principal, session in (("owner", "s1"), ("owner", "s2"), ("guest", "s3"), ("other", "s4")):
            await ground.servers.call_tool("raw", "two", {}, caller(session=session, principal=principal))
        assert len(ground.host.registry.children) == instances


async def test_a_server_gets_its_own_variables_and_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_OF_OURS", "canary")
    async with grounded(tmp_path, script("raw", "environment")) as ground:
        result = await ground.servers.call_tool("raw", "one", {}, caller())
        assert "canary" not in result["content"][0]["text"]


async def test_a_daemon_two_forks_deep_ends_with_its_server(tmp_path: Path) -> None:
    mark = number()
    async with grounded(tmp_path, script("raw", "daemon", mark)) as ground:
        await ground.servers.call_tool("raw", "one", {}, caller())
        assert await async_becomes_true(lambda: len(asleep(mark)) == 2)
    assert await gone(mark)


@pytest.mark.heavy
async def test_nothing_is_left_after_many_starts_and_stops(tmp_path: Path) -> None:
    mark = number()
    async with grounded(tmp_path, script("raw", "daemon", mark, idle_seconds=0.0)) as ground:
        for _ in range(scale(200)):
            await ground.servers.call_tool("raw", "one", {}, caller())
            assert await async_becomes_true(lambda: not ground.host.registry.children)
        assert await gone(mark)


PARENT = """
import os, sys
from pathlib import Path
import anyio
from tests.upstreams.ground import caller, grounded, script

async def main():
    async with grounded(Path(sys.argv[1]), script("raw", "daemon", sys.argv[2])) as ground:
        await ground.servers.call_tool("raw", "one", {}, caller())
        print("ready", flush=True)
        await anyio.sleep(600)

anyio.run(main)
"""


def test_a_killed_menugate_leaves_no_server_behind(tmp_path: Path) -> None:
    mark = number()
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), mark], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"ready\n"
        wait_until(lambda: len(asleep(mark)) == 2)
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not asleep(mark))
