"""Does everything that passes through another process reach whom it is for, and nobody else?"""

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.upstreams import ProtocolEra
from tests.clients.waiting import async_becomes_true
from tests.upstreams.ground import Ground, Recorder, caller, script
from tests.upstreams.sharing.ground import count, get_text, sharing

pytestmark = pytest.mark.anyio


async def test_progress_and_log_messages_reach_whose_call_it_is(tmp_path: Path, era: ProtocolEra) -> None:
    mount, clients = script("ordinary", era=era), [Recorder(), Recorder()]
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        await holder.servers.call_tool("ordinary", "echo", {}, caller())
        await guest.servers.call_tool("ordinary", "progress", {}, caller(clients[0]))
        assert [done for done, _, _ in clients[0].progressed] == [1, 2, 3]
        await holder.servers.call_tool("ordinary", "progress", {}, caller(clients[1]))
        assert len(clients[0].progressed) == len(clients[1].progressed) == 3
        await guest.servers.call_tool("ordinary", "log", {}, caller(clients[0]))
        assert clients[0].logged in ([("info", "logged")], [])
        assert clients[1].logged == []


async def test_a_cancelled_call_reaches_the_server(tmp_path: Path, era: ProtocolEra) -> None:
    mount = script("ordinary", era=era)
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        await holder.servers.call_tool("ordinary", "echo", {}, caller())
        with anyio.move_on_after(0.5):
            await guest.servers.call_tool("ordinary", "slow", {}, caller())
        log = holder.logs / "ordinary.log"
        assert await async_becomes_true(lambda: log.exists() and "cancelled" in log.read_text())
        assert get_text(await guest.servers.call_tool("ordinary", "echo", {"text": "on"}, caller())) == "on"


async def test_each_question_goes_to_the_process_whose_call_asks(tmp_path: Path, era: ProtocolEra) -> None:
    mount = script("ordinary", era=era)
    async with AsyncExitStack() as stack:
        grounds = [await stack.enter_async_context(sharing(tmp_path, mount)) for _ in range(3)]
        clients = [
            Recorder(abilities=("elicitation",), answers={"action": "accept", "content": {"colour": str(number)}})
            for number in range(3)
        ]
        for round in range(2):
            # At first nobody knows that the server asks, and a question that could be several callers' is refused.
            answers = dict[int, str]()

            async def ask(number: int, answers: dict[int, str] = answers) -> None:
                result = await grounds[number].servers.call_tool("ordinary", "ask", {}, caller(clients[number]))
                answers[number] = get_text(result)

            if not round and era is ProtocolEra.LEGACY:
                for number in range(3):
                    await ask(number)
            else:
                async with anyio.create_task_group() as tasks:
                    for number in range(3):
                        tasks.start_soon(ask, number)
            for number in range(3):
                assert json.loads(answers[number])["content"] == {"colour": str(number)}
        assert all(len(client.asked) == 2 for client in clients)
        message = clients[0].asked[0][1]["message"]
        assert message.count("The server `ordinary` asks") == 1 and "_meta" not in clients[1].asked[0][1]
        assert count(*grounds) == 1


@pytest.mark.parametrize("joined_late", [False, True])
async def test_the_next_holder_knows_that_the_server_asks(tmp_path: Path, joined_late: bool) -> None:
    """Otherwise the questions of two sessions at once are refused, because nobody can tell whose they are."""
    mount = script("ordinary", era=ProtocolEra.LEGACY)
    blue = Recorder(abilities=("elicitation",), answers={"action": "accept", "content": {"colour": "blue"}})
    async with sharing(tmp_path, mount) as next_holder:
        async with sharing(tmp_path, mount) as holder:
            await holder.servers.call_tool("ordinary", "echo", {}, caller())
            if not joined_late:
                await next_holder.servers.call_tool("ordinary", "echo", {}, caller())
            await holder.servers.call_tool("ordinary", "ask", {}, caller(blue))
            await next_holder.servers.call_tool("ordinary", "echo", {}, caller())
        answers: list[str] = []

        async def ask(session: str) -> None:
            result = await next_holder.servers.call_tool("ordinary", "ask", {}, caller(blue, session))
            answers.append(get_text(result))

        await next_holder.servers.call_tool("ordinary", "echo", {}, caller())
        async with anyio.create_task_group() as tasks:
            for session in ("one", "other"):
                tasks.start_soon(ask, session)
        assert count(next_holder) == 1
        assert [json.loads(one)["content"] for one in answers] == [{"colour": "blue"}] * 2


async def test_a_call_of_another_process_waits_for_its_turn_and_not_for_the_user(tmp_path: Path) -> None:
    mount = script("raw", "ask")
    answered = anyio.Event()

    class Slow(Recorder):
        async def request(self, key: str, method: str, params: Any, note: str = "") -> Any:
            await answered.wait()
            return await super().request(key, method, params, note)

    slow = Slow(abilities=("elicitation",), answers={"action": "accept", "content": {"colour": "red"}})
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        await holder.servers.call_tool("raw", "two", {}, caller())
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                result = await guest.servers.call_tool("raw", "one", {}, caller(slow))
                assert json.loads(get_text(result))["content"] == {"colour": "red"}

            tasks.start_soon(ask)
            assert await async_becomes_true(lambda: holder.servers.get_status("raw").catalogue is not None)
            assert get_text(await holder.servers.call_tool("raw", "two", {}, caller())) == "fine"
            answered.set()


async def test_all_processes_learn_that_a_list_changed(tmp_path: Path, era: ProtocolEra) -> None:
    mount = script("ordinary", era=era)
    async with sharing(tmp_path, mount) as one, sharing(tmp_path, mount) as other:
        for ground in (one, other):
            await ground.servers.call_tool("ordinary", "echo", {}, caller())
            await ground.servers.get_catalogue("ordinary", caller())
        await other.servers.subscribe("ordinary", "memo://notes", caller())
        await other.servers.call_tool("ordinary", "change", {}, caller())

        async def has_new(ground: Ground) -> bool:
            catalogue = await ground.servers.get_catalogue("ordinary", caller())
            return any(tool["name"] == "new" for tool in catalogue.tools)

        with anyio.fail_after(30):
            for ground in (one, other):
                while not await has_new(ground):
                    await anyio.sleep(0.05)
        if era is ProtocolEra.MODERN:
            assert await async_becomes_true(lambda: "memo://notes" in [change.uri for change in other.changes])


async def test_a_watched_resource_is_told_to_whoever_watches_it(tmp_path: Path) -> None:
    mount = script("raw", "subscribe")
    async with AsyncExitStack() as stack:
        one, other, third = [await stack.enter_async_context(sharing(tmp_path, mount)) for _ in range(3)]
        for ground in (one, other, third):
            await ground.servers.call_tool("raw", "two", {}, caller())
        await other.servers.subscribe("raw", "memo://a", caller())
        assert await async_becomes_true(lambda: "memo://a" in [change.uri for change in other.changes])
        await third.servers.subscribe("raw", "memo://b", caller())
        assert await async_becomes_true(lambda: "memo://b" in [change.uri for change in third.changes])
        assert "memo://a" not in [change.uri for change in third.changes]
        await other.servers.unsubscribe("raw", "memo://a", caller())
        assert count(one, other, third) == 1


async def test_each_session_of_a_process_gets_its_own_questions(tmp_path: Path) -> None:
    mount, sessions = script("ordinary", era=ProtocolEra.LEGACY), ("s1", "s2", "s3")
    clients = {
        session: Recorder(abilities=("elicitation",), answers={"action": "accept", "content": {"colour": session}})
        for session in sessions
    }
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        where = {"s1": holder, "s2": guest, "s3": guest}

        async def ask(session: str) -> None:
            given = caller(clients[session], session)
            result = await where[session].servers.call_tool("ordinary", "ask", {}, given)
            assert json.loads(get_text(result))["content"] == {"colour": session}

        await ask("s1")  # now it is known that this server asks
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(ask, session)
        assert [len(client.asked) for client in clients.values()] == [4, 3, 3]


async def test_a_call_that_waits_for_its_turn_can_be_cancelled(tmp_path: Path) -> None:
    mount = script("ordinary", era=ProtocolEra.LEGACY)
    client = Recorder(abilities=("elicitation",), answers={"action": "accept", "content": {}})
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        await holder.servers.call_tool("ordinary", "ask", {}, caller(client))
        async with anyio.create_task_group() as tasks:

            async def block() -> None:
                await holder.servers.call_tool("ordinary", "slow", {}, caller())

            tasks.start_soon(block)
            await anyio.sleep(0.1)
            with anyio.move_on_after(0.3) as waiting:
                await guest.servers.call_tool("ordinary", "change", {}, caller())
            assert waiting.cancelled_caught
            tasks.cancel_scope.cancel()
        await guest.servers.call_tool("ordinary", "echo", {}, caller())
        catalogue = await guest.servers.get_catalogue("ordinary", caller())
        assert "new" not in [tool["name"] for tool in catalogue.tools]
