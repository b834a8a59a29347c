"""Does a call that an older server refuses until the user was in a browser go on afterwards?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.upstreams import calls
from mcp_server.upstreams.peer import UpstreamError
from mcp_server.upstreams.servers import UpstreamServers
from mcp_server.upstreams.visits import URL_REQUIRED, read_visit
from tests.upstreams.asking import BOTH, AskingAgain, CallEnded
from tests.upstreams.ground import Recorder, caller, grounded, script

pytestmark = pytest.mark.anyio
DECLINED = {"action": "decline"}


async def call(servers: UpstreamServers, client: Recorder, **arguments: Any) -> str:
    result = await servers.call_tool("raw", "one", arguments, caller(client))
    return result["content"][0]["text"]


async def test_the_call_is_made_again_when_the_user_is_done(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", "visit")) as ground:
        client = Recorder(abilities=BOTH)
        assert await call(ground.servers, client) == "fine"
        ((method, params),) = client.asked
        assert method == "elicitation/create" and params["url"] == "https://a.example/in"
        assert params["message"].startswith("The server `raw` asks (this approves nothing in menugate):\n")
        assert client.ended == ["e1"]


async def test_a_client_of_the_newest_revision_is_asked_between_calls(tmp_path: Path) -> None:
    async with grounded(tmp_path, script("raw", "visit")) as ground:
        client = AskingAgain(abilities=BOTH)
        with pytest.raises(CallEnded):
            await call(ground.servers, client)
        client.answer()
        assert await call(ground.servers, client) == "fine"


@pytest.mark.parametrize(
    ("abilities", "answers", "says"),
    [
        (("elicitation",), {}, "https://a.example/in"),
        (BOTH, DECLINED, "did not open the address"),
    ],
)
async def test_without_the_user_the_call_fails(
    tmp_path: Path, abilities: tuple[str, ...], answers: Mapping[str, Any], says: str
) -> None:
    async with grounded(tmp_path, script("raw", "visit")) as ground:
        with pytest.raises(Refusal, match=says) as refused:
            await call(ground.servers, Recorder(abilities=abilities, answers=answers))
        assert refused.value.problem.code is Code.TOOL_FAILED


async def test_nobody_is_sent_to_one_address_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FINISH_SECONDS", 0.0)
    async with grounded(tmp_path, script("raw", "visit")) as ground:
        client = Recorder(abilities=BOTH)
        with pytest.raises(Refusal, match="still waits"):
            await call(ground.servers, client, never=True)
        assert len(client.asked) == 1


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (-32000, {"elicitations": [{"url": "https://a.example"}]}),
        (URL_REQUIRED, None),
        (URL_REQUIRED, {"elicitations": {}}),
        (URL_REQUIRED, {"elicitations": [5, {"url": 5}, {"url": "h" * 5_000}]}),
    ],
)
def test_other_errors_send_nobody_anywhere(code: int, data: Any) -> None:
    assert read_visit(UpstreamError(code, "no", data)) is None
