"""Do calls reach the servers behind menugate, and do their results come back as they were sent?"""

import dataclasses
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from mcp_server.model.results import Code, Refusal
from mcp_server.model.upstreams import Catalogue, Mount, ProtocolEra, StdioTarget, ToolShape, UpstreamState
from mcp_server.policy.upstream_pins import compute_mount_digest
from tests.clients.waiting import async_becomes_true
from tests.upstreams.ground import FarServer, Recorder, caller, grounded, script

pytestmark = pytest.mark.anyio


async def test_a_call_reaches_its_server(tmp_path: Path, ordinary: Mount) -> None:
    era = ordinary.era
    async with grounded(tmp_path, ordinary) as ground:
        servers = ground.servers
        assert servers.get_status("ordinary").state is UpstreamState.IDLE
        found = await servers.get_catalogue("ordinary", caller())
        assert [tool["name"] for tool in found.tools][:8] == [
            "echo",
            "add",
            "fail",
            "slow",
            "progress",
            "ask",
            "log",
            "change",
        ]
        assert [one["uri"] for one in found.resources] == ["memo://notes"]
        assert found.instructions == "Be ordinary."
        assert found.protocol == ("2025-11-25" if era is ProtocolEra.LEGACY else "2026-07-28")
        result = await servers.call_tool("ordinary", "add", {"a": 1, "b": 2}, caller())
        assert result["structuredContent"] == {"sum": 3}
        failed = await servers.call_tool("ordinary", "fail", {}, caller())
        assert failed["isError"] is True
        client = Recorder()
        await servers.call_tool("ordinary", "progress", {}, caller(client))
        assert client.progressed == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        read = await servers.read_resource("ordinary", "memo://notes", caller())
        assert read["contents"][0]["text"] == "noted"
        assert servers.get_status("ordinary").state is UpstreamState.READY


async def test_a_cancelled_call_ends_on_its_server(tmp_path: Path, ordinary: Mount, far: FarServer) -> None:
    async with grounded(tmp_path, ordinary) as ground:
        await ground.servers.get_catalogue("ordinary", caller())
        log = ground.logs / "ordinary.log" if isinstance(ordinary.target, StdioTarget) else far.log

        def count() -> int:
            return log.read_text().count("cancelled") if log.exists() else 0

        before = count()
        with anyio.move_on_after(0.3):
            await ground.servers.call_tool("ordinary", "slow", {}, caller())
        assert await async_becomes_true(lambda: count() > before)


async def test_a_protocol_error_is_a_refusal_that_keeps_it(tmp_path: Path, ordinary: Mount) -> None:
    async with grounded(tmp_path, ordinary) as ground:
        with pytest.raises(Refusal) as refused:
            await ground.servers.get_prompt("ordinary", "none", {}, caller())
        assert refused.value.problem.code is Code.TOOL_FAILED
        assert refused.value.problem.data is not None
        assert refused.value.problem.data["error"]["code"] == -32601


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_was_started_again_is_reached_again(
    tmp_path: Path, transport: str, era: ProtocolEra
) -> None:
    server = FarServer.start(tmp_path / "errors")
    async with grounded(tmp_path, server.mount(transport, era)) as ground:
        for _ in range(2):
            result = await ground.servers.call_tool("ordinary", "echo", {"text": "there"}, caller())
            assert result["content"][0]["text"] == "there"
            server.stop()
            with pytest.raises(Refusal):
                await ground.servers.call_tool("ordinary", "echo", {"text": "gone"}, caller())
            server = FarServer.start(tmp_path / "errors", server.port)
        await ground.servers.call_tool("ordinary", "echo", {}, caller())
    server.stop()


async def test_a_session_that_expired_is_opened_again(tmp_path: Path) -> None:
    server = FarServer.start(tmp_path / "errors")
    async with grounded(tmp_path, server.mount("http", ProtocolEra.LEGACY)) as ground:
        await ground.servers.call_tool("ordinary", "echo", {}, caller())
        # Nothing is under way any more: not even the list of its tools, which is read beside the first call.
        await ground.servers.get_catalogue("ordinary", caller())
        server.stop()
        server = FarServer.start(tmp_path / "errors", server.port)
        # The new process knows nothing of the session; nothing ran there, so the call may be sent again.
        result = await ground.servers.call_tool("ordinary", "echo", {"text": "again"}, caller())
        assert result["content"][0]["text"] == "again"
    server.stop()


async def test_a_server_that_cannot_start_is_away(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("missing")) as ground:
        with pytest.raises(Refusal) as refused:
            await ground.servers.call_tool("missing", "x", {}, caller())
        assert refused.value.problem.code is Code.UPSTREAM_AWAY
        assert "exit code 2" in refused.value.problem.message
        assert ground.servers.get_status("missing").state is UpstreamState.AWAY


async def test_a_call_that_its_server_breaks_off_is_answered_at_once_and_the_next_one_served(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", "crash")) as ground:
        for _ in range(2):
            with anyio.fail_after(5), pytest.raises(Refusal) as refused:
                await ground.servers.call_tool("raw", "one", {}, caller())
            assert refused.value.problem.code is Code.UPSTREAM_FAULT
            assert "exit code 3" in refused.value.problem.message
            assert (await ground.servers.call_tool("raw", "two", {}, caller()))["content"][0]["text"] == "fine"


async def test_nothing_that_a_server_describes_is_lost(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw")) as ground:
        found = await ground.servers.get_catalogue("raw", caller())
        assert [tool["vendor"] for tool in found.tools] == [{"kept": True}] * 2


async def test_a_call_outlives_the_mount_that_it_was_judged_by(tmp_path: Path) -> None:
    mount = script("ordinary")
    async with grounded(tmp_path, mount) as ground, anyio.create_task_group() as tasks:
        await ground.servers.get_catalogue("ordinary", caller())
        results: list[object] = []
        client = Recorder(abilities=("elicitation",))
        asked = anyio.Event()

        async def answer(key: str, method: str, params: object, note: str = "") -> dict[str, object]:
            asked.set()
            await gone.wait()
            return {"action": "accept", "content": {"name": "Ada"}}

        gone = anyio.Event()
        client.request = answer

        async def call() -> None:
            results.append(await ground.servers.call_tool("ordinary", "ask", {}, caller(client)))

        tasks.start_soon(call)
        with anyio.fail_after(30):
            await asked.wait()
        ground.servers.set_mounts([])
        with pytest.raises(Refusal):
            await ground.servers.call_tool("ordinary", "echo", {"text": "x"}, caller())
        assert ground.host.registry.children, "its server runs for as long as the call does"
        gone.set()
        with anyio.fail_after(30):
            while not results:
                await anyio.sleep(0.01)
        assert await async_becomes_true(lambda: not ground.host.registry.children)


async def test_a_call_never_reaches_another_server_of_that_name(tmp_path: Path) -> None:
    judged_by = script("ordinary")
    other = script("raw", called="ordinary")
    async with grounded(tmp_path, judged_by) as ground:
        who = replace(caller(), definition=compute_mount_digest(judged_by))
        await ground.servers.call_tool("ordinary", "echo", {"text": "x"}, who)
        ground.servers.set_mounts([other])
        with pytest.raises(Refusal) as refused:
            await ground.servers.call_tool("ordinary", "echo", {"text": "x"}, who)
        assert refused.value.problem.code is Code.UPSTREAM_AWAY
        assert "nothing ran" in refused.value.problem.message


async def test_what_its_tools_count_as_is_no_reason_to_start_a_server_again(tmp_path: Path) -> None:
    mount = script("ordinary")
    async with grounded(tmp_path, mount) as ground:
        await ground.servers.get_catalogue("ordinary", caller())
        before = set(ground.host.registry.children)
        ground.servers.set_mounts([dataclasses.replace(mount, tools={"echo": ToolShape(description="Says it.")})])
        await ground.servers.call_tool("ordinary", "change", {}, caller())
        assert set(ground.host.registry.children) == before
        assert await async_becomes_true(lambda: _has_tool(ground.servers.get_status("ordinary").catalogue, "new"))
        ground.servers.set_mounts([dataclasses.replace(mount, idle_seconds=5.0)])
        await ground.servers.call_tool("ordinary", "echo", {"text": "x"}, caller())
        assert not before & set(ground.host.registry.children)


def _has_tool(catalogue: Catalogue | None, name: str) -> bool:
    return any(tool["name"] == name for tool in catalogue.tools) if catalogue else False
