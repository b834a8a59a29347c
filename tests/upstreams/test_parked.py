"""Does a call wait for an answer that comes with another request, and from its own caller alone?"""

from pathlib import Path

import pytest

from mcp_server.model.upstreams import Mount, ProtocolEra
from tests.upstreams.asking import BOTH, AskingAgain, CallEnded, ask
from tests.upstreams.ground import caller, grounded, script

pytestmark = pytest.mark.anyio


async def test_a_call_waits_for_an_answer_that_comes_with_another_request(tmp_path: Path, ordinary: Mount) -> None:
    client = AskingAgain(abilities=BOTH, answers={"action": "accept", "content": {"colour": "blue"}})
    async with grounded(tmp_path, ordinary) as ground:
        with pytest.raises(CallEnded):
            await ask(ground.servers, client)
        client.answer()
        assert (await ask(ground.servers, client))["content"] == {"colour": "blue"}
        assert len(client.asked) == 1


@pytest.mark.parametrize("other", [{"principal": "guest"}, {"session": "s2"}])
async def test_nobody_else_can_answer(tmp_path: Path, era: ProtocolEra, other: dict[str, str]) -> None:
    client = AskingAgain(abilities=BOTH)
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        with pytest.raises(CallEnded):
            await ask(ground.servers, client)
        client.answer()
        first = list(client.carried)
        # The keys are no secret to the client; the caller is what counts.
        with pytest.raises(CallEnded):
            await ground.servers.call_tool("ordinary", "ask", {}, caller(client, **other))
        assert list(client.carried) != first


async def test_other_arguments_are_another_call(tmp_path: Path, era: ProtocolEra) -> None:
    client = AskingAgain(abilities=BOTH)
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        with pytest.raises(CallEnded):
            await ask(ground.servers, client)
        client.answer()
        with pytest.raises(CallEnded):
            await ask(ground.servers, client, other="argument")
        assert len(client.asked) == 2
