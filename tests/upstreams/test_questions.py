"""Does a question of a server reach the client of the call that it belongs to, marked as the server's, in both eras?"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.model.upstreams import ProtocolEra, WireResult
from mcp_server.upstreams.servers import UpstreamServers
from tests.clients.waiting import async_becomes_true
from tests.upstreams.ground import Recorder, caller, grounded, script

pytestmark = pytest.mark.anyio
ERAS = [ProtocolEra.LEGACY, ProtocolEra.MODERN]
BOTH = ("elicitation", "elicitation.url")


class CallEnded(Exception):
    """How a client of the newest revision ends a call with a question."""


@dataclass
class AskingAgain(Recorder):
    """A client that can be asked only between calls."""

    given: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    async def request_all(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> Mapping[str, Mapping[str, Any]]:
        self.asked += [question for key, question in questions.items() if key not in self.given]
        if missing := [key for key in questions if key not in self.given]:
            self.carried = missing
            raise CallEnded
        return {key: self.given[key] for key in questions}

    def answer(self) -> None:
        self.given.update(dict.fromkeys(self.carried, self.answers))


def text_of(result: WireResult) -> Any:
    return json.loads(result["content"][0]["text"])


async def ask(servers: UpstreamServers, client: Recorder, session: str = "s1", **arguments: str) -> Any:
    return text_of(await servers.call_tool("ordinary", "ask", arguments, caller(client, session)))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", ["form", "url"])
async def test_a_question_reaches_the_client_and_its_answer_the_server(
    tmp_path: Path, era: ProtocolEra, mode: str
) -> None:
    client = Recorder(abilities=BOTH, answers={"action": "accept", "content": {"colour": "red"}})
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        answer = await ask(ground.servers, client, mode=mode)
        assert answer["action"] == "accept" and answer["content"] == {"colour": "red"}
        assert answer.get("state") == ("state of the server" if era is ProtocolEra.MODERN else None)
        ((method, params),) = client.asked
        assert method == "elicitation/create"
        assert params["message"].startswith("The server `ordinary` asks (this approves nothing in menugate):\n")
        if mode == "url":
            assert params["url"] == "https://a.example/in" and params["elicitationId"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_waits_for_an_answer_that_comes_with_another_request(tmp_path: Path, era: ProtocolEra) -> None:
    client = AskingAgain(abilities=BOTH, answers={"action": "accept", "content": {"colour": "blue"}})
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        with pytest.raises(CallEnded):
            await ask(ground.servers, client)
        client.answer()
        assert (await ask(ground.servers, client))["content"] == {"colour": "blue"}
        assert len(client.asked) == 1


@pytest.mark.parametrize("era", ERAS)
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


@pytest.mark.parametrize("era", ERAS)
async def test_other_arguments_are_another_call(tmp_path: Path, era: ProtocolEra) -> None:
    client = AskingAgain(abilities=BOTH)
    async with grounded(tmp_path, script("ordinary", era=era)) as ground:
        with pytest.raises(CallEnded):
            await ask(ground.servers, client)
        client.answer()
        with pytest.raises(CallEnded):
            await ask(ground.servers, client, other="argument")
        assert len(client.asked) == 2


async def test_a_client_that_cannot_be_asked_is_not_asked(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("ordinary", era=ProtocolEra.MODERN), script("raw", "ask")) as ground:
        client = Recorder()
        with pytest.raises(Refusal) as refused:
            await ask(ground.servers, client)
        assert refused.value.problem.code is Code.TOOL_FAILED
        told = text_of(await ground.servers.call_tool("raw", "one", {}, caller(client)))
        assert "does not support elicitation" in told["message"]
        assert client.asked == []


async def test_sessions_that_ask_at_once_each_get_their_own_question(tmp_path: Path) -> None:
    clients = {
        name: Recorder(name, abilities=BOTH, answers={"action": "accept", "content": {"colour": name}})
        for name in ("red", "blue", "green")
    }
    async with grounded(tmp_path, script("ordinary", era=ProtocolEra.LEGACY)) as ground:
        await ask(ground.servers, clients["red"], "red")
        for _ in range(5):
            answers = await asyncio.gather(*(ask(ground.servers, one, name) for name, one in clients.items()))
            assert [answer["content"]["colour"] for answer in answers] == list(clients)


async def test_a_first_question_waits_until_it_is_clear_whose_it_is(tmp_path: Path) -> None:
    asking = Recorder("asking", abilities=BOTH, answers={"action": "accept", "content": {"colour": "red"}})
    other = Recorder("other", abilities=BOTH)
    answers: list[Any] = []
    async with grounded(tmp_path, script("ordinary", era=ProtocolEra.LEGACY)) as ground:
        await ground.servers.get_catalogue("ordinary", caller())
        async with anyio.create_task_group() as tasks:
            slow = anyio.CancelScope()

            async def hold() -> None:
                with slow:
                    await ground.servers.call_tool("ordinary", "slow", {}, caller(other, "other"))

            tasks.start_soon(hold)
            await anyio.lowlevel.checkpoint()

            async def begin() -> None:
                answers.append(await ask(ground.servers, asking, "asking"))

            tasks.start_soon(begin)
            await anyio.sleep(0.2)
            assert asking.asked == [] and other.asked == []
            slow.cancel()
            assert await async_becomes_true(lambda: answers)
        assert answers[0]["content"] == {"colour": "red"} and other.asked == []


async def test_a_server_is_refused_what_menugate_does_not_offer(tmp_path: Path) -> None:
    for roots, answer in (
        (False, -32601),
        (True, {"roots": [{"uri": (tmp_path / "work").as_uri(), "name": "workspace"}]}),
    ):
        async with grounded(tmp_path, script("raw", "other_requests", roots=roots)) as ground:
            replies = dict(text_of(await ground.servers.call_tool("raw", "one", {}, caller())))
        assert replies == {"sampling/createMessage": -32601, "roots/list": answer, "ping": {}, "nonsense": -32601}
