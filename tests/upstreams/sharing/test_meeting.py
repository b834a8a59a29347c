"""Does a process that meets a dead, silent or false holder go its own way, in time and with a line in the log?"""

import logging
import os
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from mcp_server.upstreams.messages import LinkClosed
from mcp_server.upstreams.sharing.greeting import greet_guest
from mcp_server.upstreams.sharing.key import ShareKey
from mcp_server.upstreams.sharing.meeting import Meeting
from mcp_server.upstreams.sharing.place import InstanceHold, MeetingPlace, accept
from mcp_server.upstreams.sharing.stream import MessageStream
from tests.upstreams.ground import caller, script
from tests.upstreams.sharing.ground import count, sharing

pytestmark = pytest.mark.anyio
NOTE = {"server": "test", "workspace": "/work"}
KEY, DIGEST = ShareKey(b"k" * 43), "d" * 32


@pytest.fixture
def meeting(tmp_path: Path) -> Meeting:
    place = MeetingPlace(tmp_path / "instances", DIGEST)
    place.prepare()
    return Meeting(place, KEY, script("raw"), "/work")


def hold(meeting: Meeting) -> InstanceHold:
    held = meeting.place.try_to_hold(NOTE)
    assert held is not None
    return held


async def test_the_first_holds_and_the_next_finds_it(meeting: Meeting) -> None:
    held = await meeting.hold_or_join(1)
    assert isinstance(held, InstanceHold)
    with held.listening as listening:

        async def serve() -> None:
            stream = MessageStream.open(await accept(listening))
            await greet_guest(stream, KEY, DIGEST)
            await stream.flush()
            await stream.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            found = await meeting.hold_or_join(10)
            assert isinstance(found, MessageStream)
            await found.close()
    held.release()


@pytest.mark.parametrize("listens", [False, True])
async def test_a_holder_that_says_nothing_is_not_waited_for(
    meeting: Meeting, listens: bool, caplog: pytest.LogCaptureFixture
) -> None:
    held = hold(meeting)
    if not listens:
        held.listening.close()
    with caplog.at_level(logging.WARNING, "menugate"), anyio.fail_after(5):
        assert await meeting.hold_or_join(0.2) is None
    assert "does not answer" in caplog.text and "instance of its own" in caplog.text
    held.release()


async def test_a_holder_that_goes_is_succeeded(meeting: Meeting) -> None:
    held = hold(meeting)
    async with anyio.create_task_group() as tasks:

        async def go() -> None:
            await anyio.sleep(0.1)
            held.release()

        tasks.start_soon(go)
        found = await meeting.hold_or_join(10)
        assert isinstance(found, InstanceHold)
        found.release()


async def test_what_a_dead_holder_left_is_in_nobodys_way(meeting: Meeting) -> None:
    held = hold(meeting)
    held.listening.close()
    os.close(held.file)
    assert len(list(meeting.place.folder.iterdir())) == 2
    found = await meeting.hold_or_join(1)
    assert isinstance(found, InstanceHold)
    found.release()


async def test_with_another_key_a_process_runs_its_own_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # With another key it would not even find the socket.
    def digest_same(*given: object) -> str:
        return DIGEST

    monkeypatch.setattr(ShareKey, "digest_definition", digest_same)
    mount = script("raw")
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount, keys="k2") as other:
        (tmp_path / "k2" / "instances").mkdir(mode=0o700)
        await holder.servers.call_tool("raw", "two", {}, caller())
        for path in (tmp_path / "keys" / "instances").iterdir():
            (tmp_path / "k2" / "instances" / path.name).hardlink_to(path)
        with caplog.at_level(logging.WARNING, "menugate"), anyio.fail_after(10):
            await other.servers.call_tool("raw", "two", {}, caller())
        assert (count(holder), count(other)) == (1, 1)
        assert "turned away" in caplog.text and "instance of its own" in caplog.text


NONSENSE = (
    b"\xff\n",
    b"[]\n",
    b'{"method":[]}\n',
    b'{"id":7,"result":{}}\n',
    b'{"id":1,"method":"tools/call","params":5}\n',
    b'{"id":2,"method":"tools/call","params":{"_meta":{"menugate/session":[]}}}\n',
    b'{"method":"notifications/cancelled","params":{"requestId":[]}}\n',
)


async def test_a_guest_that_talks_nonsense_harms_nobody(tmp_path: Path) -> None:
    mount = script("raw")
    async with sharing(tmp_path, mount) as holder, sharing(tmp_path, mount) as guest:
        for ground in (holder, guest):
            await ground.servers.call_tool("raw", "two", {}, caller())
        (lock,) = (tmp_path / "keys" / "instances").glob("*.lock")
        place = MeetingPlace(lock.parent, lock.stem)
        meeting = Meeting(place, ShareKey.load(tmp_path / "keys"), mount, "/work")
        for nonsense in NONSENSE:
            stream = await meeting.hold_or_join(5)
            assert isinstance(stream, MessageStream)
            await stream.flush()
            stream.connected.send(nonsense)
            with anyio.move_on_after(0.2), suppress(LinkClosed):
                await stream.receive()
            await stream.close()
        for ground in (holder, guest):
            await ground.servers.call_tool("raw", "two", {}, caller())
        assert count(holder, guest) == 1
