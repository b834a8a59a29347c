"""Is a shared server there while anybody uses it, and what do the others see when it ends?"""

import os
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import ProtocolEra
from mcp_server.upstreams.sharing import guest as guest_module
from mcp_server.upstreams.sharing.relay import GuestRelay
from tests.clients.waiting import async_becomes_true
from tests.guards.processes.test_child import gone, number
from tests.sizes import scale
from tests.upstreams.ground import Ground, caller, script
from tests.upstreams.sharing.ground import BASE, count, sharing

pytestmark = pytest.mark.anyio


async def test_when_the_holder_ends_the_next_call_works(tmp_path: Path) -> None:
    async with sharing(tmp_path, BASE) as guest:
        async with sharing(tmp_path, BASE) as holder:
            await holder.servers.call_tool("raw", "two", {}, caller())
            await guest.servers.call_tool("raw", "two", {}, caller())
            assert count(guest) == 0
        with anyio.fail_after(10):
            await guest.servers.call_tool("raw", "two", {}, caller())
        assert count(guest) == 1


async def test_a_crash_is_reported_to_the_caller_and_the_next_call_works(tmp_path: Path) -> None:
    mount = script("raw", "crash")
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        for ground in (holder, guest):
            await ground.servers.call_tool("raw", "two", {}, caller())
        with pytest.raises(Refusal) as refused:
            await guest.servers.call_tool("raw", "one", {}, caller())
        assert "exit code 3" in refused.value.problem.message
        for ground in (guest, holder):
            await ground.servers.call_tool("raw", "two", {}, caller())
        assert count(holder, guest) == 1


async def test_a_server_that_cannot_start_says_why_everywhere(tmp_path: Path) -> None:
    mount = script("raw", "dead")
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        for ground in (holder, guest):
            with pytest.raises(Refusal) as refused:
                await ground.servers.call_tool("raw", "two", {}, caller())
            assert "exit code 1" in refused.value.problem.message


async def test_an_unused_instance_stops_when_nobody_uses_it(tmp_path: Path) -> None:
    mount = replace(BASE, idle_seconds=0.5)
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        await holder.servers.call_tool("raw", "two", {}, caller())
        for _ in range(10):
            # The guest's calls keep it running for the holder, too.
            await guest.servers.call_tool("raw", "two", {}, caller())
            await anyio.sleep(0.1)
            assert count(holder, guest) == 1
        assert await async_becomes_true(lambda: count(holder, guest) == 0)
        assert not list((tmp_path / "keys" / "instances").iterdir())
        await guest.servers.call_tool("raw", "two", {}, caller())
        assert (count(holder), count(guest)) == (0, 1)


async def test_a_call_waits_until_the_holder_has_started_it(tmp_path: Path) -> None:
    mount = script("raw", "ignores", era=ProtocolEra.AUTO)  # takes three seconds to start
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        async with anyio.create_task_group() as tasks:

            async def call(ground: Ground) -> None:
                await ground.servers.call_tool("raw", "two", {}, caller())

            tasks.start_soon(call, holder)
            assert await async_becomes_true(lambda: count(holder) == 1)
            tasks.start_soon(call, guest)
        assert count(holder, guest) == 1


@pytest.mark.heavy
async def test_nothing_is_left_after_many_starts_and_stops(tmp_path: Path) -> None:
    mark = number()
    mount = script("raw", "daemon", mark, idle_seconds=0.0)
    async with sharing(tmp_path, mount) as one, sharing(tmp_path, mount) as other:
        for turn in range(scale(200)):
            first, second = (one, other) if turn % 2 else (other, one)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call_tool, first, "one")
                tasks.start_soon(call_tool, second, "two")
            assert await async_becomes_true(lambda: not count(one, other))
        assert await gone(mark)
        assert await async_becomes_true(lambda: not list((tmp_path / "keys" / "instances").iterdir()))
        assert not [path for path in Path("/proc/self/fd").iterdir() if "instances" in os.path.realpath(path)]


async def call_tool(ground: Ground, tool: str) -> None:
    await ground.servers.call_tool("raw", tool, {}, caller())


async def test_a_holder_that_falls_silent_during_a_call_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_module, "SILENCE_SECONDS", 0.3)
    mount = script("raw", "hang")
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount, seconds=0.3) as guest:
        for ground in (holder, guest):
            await ground.servers.call_tool("raw", "two", {}, caller())
        # As if it were stopped: its socket is open, and nobody reads it.
        monkeypatch.setattr(GuestRelay, "_take", ignore)
        began = anyio.current_time()
        with anyio.fail_after(20):
            await guest.servers.call_tool("raw", "two", {}, caller())
        assert count(holder, guest) == 2 and anyio.current_time() - began < 10


def ignore(*given: object) -> None:
    return None
