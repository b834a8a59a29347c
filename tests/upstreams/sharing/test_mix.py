"""Whatever processes do at once, come and go: does each caller get its own answers and questions, and no other's?"""

import json
import random
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import ProtocolEra
from mcp_server.upstreams.connection import UNCLEAR
from tests.sizes import scale
from tests.upstreams.ground import Ground, Recorder, caller, script
from tests.upstreams.sharing.ground import count, get_text, sharing

pytestmark = pytest.mark.anyio
EXCUSES = ("has ended", "was stopped", "the connection was lost", UNCLEAR)
"""What a call may be told whose holder goes, or whose question could be another's; the next one works."""

SESSIONS = 2


class Mix:
    """Some processes with some sessions each, which call at random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.calls = 0
        self.lost = 0
        self.unclear = 0

    async def call_often(self, ground: Ground, name: str, times: int) -> None:
        for turn in range(times):
            mine = f"{name} {turn}"
            client = Recorder(abilities=("elicitation",), answers={"action": "accept", "content": {"colour": mine}})
            try:
                with anyio.move_on_after(30) as limit:
                    await self.call_once(ground, caller(client, name), mine)
                assert not limit.cancelled_caught, mine
                self.calls += 1
            except Refusal as refused:
                assert any(words in refused.problem.message for words in EXCUSES), refused.problem
                self.lost += 1
                self.unclear += UNCLEAR in refused.problem.message

    async def call_once(self, ground: Ground, who: object, mine: str) -> None:
        given = replace(caller(), **{key: getattr(who, key) for key in ("session", "client", "progress")})
        match self.chance.choice(("echo", "echo", "ask", "slow", "progress")):
            case "echo":
                result = await ground.servers.call_tool("ordinary", "echo", {"text": mine}, given)
                assert get_text(result) == mine
            case "ask":
                result = await ground.servers.call_tool("ordinary", "ask", {}, given)
                assert json.loads(get_text(result)).get("content", {"colour": mine}) == {"colour": mine}
            case "slow":
                with anyio.move_on_after(self.chance.random() / 5):
                    await ground.servers.call_tool("ordinary", "slow", {}, given)
            case _:
                await ground.servers.call_tool("ordinary", "progress", {}, given)
                assert isinstance(given.client, Recorder)
                assert [done for done, _, _ in given.client.progressed] == [1, 2, 3]


@pytest.mark.heavy
async def test_each_caller_gets_its_own(tmp_path: Path, era: ProtocolEra) -> None:
    mount, mix, times = script("ordinary", era=era, idle_seconds=2.0), Mix(7), scale(100, 5)
    departures = max(2, times // 5)
    async with AsyncExitStack() as stack:
        stay = [await stack.enter_async_context(sharing(tmp_path, mount)) for _ in range(3)]

        async def come_and_go() -> None:
            for turn in range(departures):
                async with sharing(tmp_path, mount) as guest:
                    await mix.call_often(guest, f"passing-{turn}", 3)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(come_and_go)
            for number, ground in enumerate(stay):
                for session in range(SESSIONS):
                    tasks.start_soon(mix.call_often, ground, f"{number}-{session}", times)
        assert count(*stay) <= 1
    # Who leaves may have run the server, and so ends what each session was just calling, but never the call after it.
    assert mix.lost - mix.unclear <= departures * SESSIONS * len(stay)
    assert mix.calls > mix.lost
