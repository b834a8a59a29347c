"""Do calls reach the servers behind menugate, and do their results come back as they were sent?"""

from pathlib import Path

import anyio
import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.model.upstreams import ProtocolEra, UpstreamState
from tests.clients.waiting import async_becomes_true
from tests.upstreams.ground import Recorder, caller, grounded, script

pytestmark = pytest.mark.anyio
ERAS = [ProtocolEra.AUTO, ProtocolEra.LEGACY, ProtocolEra.MODERN]


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_reaches_its_server(tmp_path: Path, era: ProtocolEra) -> None:
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        servers = ground.servers
        assert servers.get_status("ordinary").state is UpstreamState.IDLE
        found = await servers.get_catalogue("ordinary", caller())
        assert [tool["name"] for tool in found.tools] == [
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


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_ends_on_its_server(tmp_path: Path, era: ProtocolEra) -> None:
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        await ground.servers.get_catalogue("ordinary", caller())
        with anyio.move_on_after(0.3):
            await ground.servers.call_tool("ordinary", "slow", {}, caller())
        log = ground.logs / "ordinary.log"
        assert await async_becomes_true(lambda: log.exists() and "cancelled" in log.read_text())


@pytest.mark.parametrize("era", ERAS)
async def test_a_protocol_error_is_a_refusal_that_keeps_it(tmp_path: Path, era: ProtocolEra) -> None:
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        with pytest.raises(Refusal) as refused:
            await ground.servers.get_prompt("ordinary", "none", {}, caller())
        assert refused.value.problem.code is Code.TOOL_FAILED
        assert refused.value.problem.data is not None
        assert refused.value.problem.data["error"]["code"] == -32601


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
