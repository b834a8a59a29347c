"""Does a question of a server reach the client of the call that it belongs to, marked as the server's, in both eras?"""

from pathlib import Path

import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.model.upstreams import Mount, ProtocolEra
from tests.clients.waiting import async_becomes_true
from tests.upstreams.asking import BOTH, ask, text_of
from tests.upstreams.ground import Recorder, caller, grounded, script

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["form", "url"])
async def test_a_question_reaches_the_client_and_its_answer_the_server(
    tmp_path: Path, ordinary: Mount, mode: str
) -> None:
    era = ordinary.era
    client = Recorder(abilities=BOTH, answers={"action": "accept", "content": {"colour": "red"}})
    async with grounded(tmp_path, ordinary) as ground:
        answer = await ask(ground.servers, client, mode=mode)
        assert answer["action"] == "accept" and answer["content"] == {"colour": "red"}
        assert answer.get("state") == ("state of the server" if era is ProtocolEra.MODERN else None)
        ((method, params),) = client.asked
        assert method == "elicitation/create"
        assert params["message"].startswith("The server `ordinary` asks (this approves nothing in menugate):\n")
        if mode == "url":
            assert params["url"] == "https://a.example/in" and params["elicitationId"]


async def test_a_client_that_cannot_be_asked_is_not_asked(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("ordinary", era=ProtocolEra.MODERN), script("raw", "ask")) as ground:
        client = Recorder()
        with pytest.raises(Refusal) as refused:
            await ask(ground.servers, client)
        assert refused.value.problem.code is Code.TOOL_FAILED
        told = text_of(await ground.servers.call_tool("raw", "one", {}, caller(client)))
        assert "does not support elicitation" in told["message"]
        assert client.asked == []


async def test_a_server_is_refused_what_menugate_does_not_offer(tmp_path: Path) -> None:
    for roots, answer in (
        (False, -32601),
        (True, {"roots": [{"uri": (tmp_path / "work").as_uri(), "name": "workspace"}]}),
    ):
        async with grounded(tmp_path, script("raw", "other_requests", roots=roots)) as ground:
            replies = dict(text_of(await ground.servers.call_tool("raw", "one", {}, caller())))
        assert replies == {"sampling/createMessage": -32601, "roots/list": answer, "ping": {}, "nonsense": -32601}


@pytest.mark.parametrize("later", [False, True])
async def test_the_client_learns_that_the_user_is_done_in_the_browser(tmp_path: Path, later: bool) -> None:
    client = Recorder(abilities=BOTH)
    async with grounded(tmp_path, script("raw", "ask_url")) as ground:
        await ground.servers.call_tool("raw", "one", {"later": later}, caller(client))
        assert await async_becomes_true(lambda: client.ended == ["e1"])
