"""Does every session get its own question if a server does not say whose call it asks about?"""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.upstreams import ProtocolEra
from tests.clients.waiting import async_becomes_true
from tests.upstreams.asking import BOTH, ask
from tests.upstreams.ground import Recorder, caller, grounded, script

pytestmark = pytest.mark.anyio


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
