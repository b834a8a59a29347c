"""Is a shared server there while anybody uses it, and what do the others see when it ends?"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import Mount, ProtocolEra, StdioTarget, UpstreamState
from mcp_server.upstreams.sharing import guest as guest_module
from mcp_server.upstreams.sharing.relay import GuestRelay
from tests.clients.waiting import async_becomes_true
from tests.guards.processes.test_child import gone, number
from tests.sizes import scale
from tests.upstreams.ground import Ground, Recorder, caller, script
from tests.upstreams.sharing.ground import BASE, count, get_text, sharing

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
        assert await async_becomes_true(lambda: not list((tmp_path / "keys" / "instances").iterdir()))
        await guest.servers.call_tool("raw", "two", {}, caller())
        assert (count(holder), count(guest)) == (0, 1)


class Slow(Recorder):
    """A client that takes its time, so that its process is done with a call later than the holder."""

    async def note_progress(self, done: float, /, total: float | None = None, message: str | None = None) -> None:
        await anyio.sleep(0.2)


async def test_guests_go_before_the_holder_and_see_no_fault_in_it(tmp_path: Path) -> None:
    mount = script("ordinary", idle_seconds=0.4)
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        await holder.servers.call_tool("ordinary", "echo", {}, caller())
        await guest.servers.call_tool("ordinary", "progress", {}, caller(Slow()))
        status = guest.servers.get_status
        assert await async_becomes_true(lambda: status("ordinary").state is not UpstreamState.READY)
        assert status("ordinary").state is UpstreamState.IDLE, status("ordinary").reason
        assert await async_becomes_true(lambda: holder.servers.get_status("ordinary").state is UpstreamState.IDLE)


def change(mount: Mount) -> Mount:
    assert isinstance(mount.target, StdioTarget)
    return replace(mount, target=replace(mount.target, env={"CHANGED": "yes"}))


@pytest.mark.parametrize("changes", ["holder", "guest"])
async def test_a_change_in_one_process_leaves_the_others_alone(tmp_path: Path, changes: str) -> None:
    """A call that is running finishes on the server that it was judged by, whoever runs it."""
    mount, answered = script("ordinary"), anyio.Event()

    class Thinking(Recorder):
        async def request_all(self, questions: Any) -> Any:
            thinking.append(self)
            await answered.wait()
            return await super().request_all(questions)

    thinking: list[Recorder] = []
    clients = [Thinking(abilities=("elicitation",), answers={"action": "accept"}) for _ in range(2)]
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        for ground in (holder, guest):
            await ground.servers.call_tool("ordinary", "echo", {}, caller())
        changing, other = (holder, guest) if changes == "holder" else (guest, holder)
        answers: list[str] = []

        async def ask(ground: Ground, client: Recorder) -> None:
            answers.append(get_text(await ground.servers.call_tool("ordinary", "ask", {}, caller(client))))

        async with anyio.create_task_group() as tasks:
            for ground, client in zip((holder, guest), clients, strict=True):
                tasks.start_soon(ask, ground, client)
            assert await async_becomes_true(lambda: len(thinking) == 2)
            changing.servers.set_mounts([change(mount)])
            with anyio.fail_after(10):
                await changing.servers.call_tool("ordinary", "echo", {}, caller())
            answered.set()
        assert len(answers) == 2 and all('"accept"' in one for one in answers)
        await other.servers.call_tool("ordinary", "echo", {}, caller())
        assert await async_becomes_true(lambda: (count(changing), count(other)) == (1, 1))
        other.servers.set_mounts([change(mount)])
        await other.servers.call_tool("ordinary", "echo", {}, caller())
        assert await async_becomes_true(lambda: (count(changing), count(other)) == (1, 0)), "they share the new one"
        changing.servers.set_mounts([])
        await other.servers.call_tool("ordinary", "echo", {}, caller())
        assert await async_becomes_true(lambda: (count(changing), count(other)) == (0, 1))


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
