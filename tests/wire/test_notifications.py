"""Does everybody hear of a change whom it concerns, however quick, slow or deaf the others are?"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from mcp_server.app import App
from mcp_server.model.menus import Listing
from mcp_server.wire import notifications
from mcp_server.wire.notifications import ClientList
from tests.clients import within
from tests.clients.served import PATIENCE

pytestmark = pytest.mark.anyio
Tell = Callable[[str, str], Awaitable[None]]


def watching(house: App, client: str, tell: Tell) -> ClientList:
    watch = ClientList(client, "me", house.core.sessions.open("me"), Listing.CARRIED, tell)
    return house.notifier.watch(watch)


async def test_a_client_quicker_than_its_own_notice_is_not_waited_for_in_vain(workspace: Path, home: Path) -> None:
    async with within.house(workspace, home) as house:

        async def tell(_what: str, _uri: str) -> None:
            # It has fetched the list before the notice is known to be out.
            watch.mark_listed(())

        watch = watching(house, "quick", tell)
        before = watch.live.session
        watch.live.session = replace(before, mode="swe")
        with anyio.fail_after(PATIENCE):
            await house.notifier.announce_move(watch.live, before, watch, None)
        assert watch.relists is True
        assert watch.fetch_events == set()


async def test_one_that_does_not_read_its_stream_keeps_nobody_waiting(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "SEND_SECONDS", 0.05)
    async with within.house(workspace, home) as house:
        heard: list[str] = []

        async def deaf(_what: str, _uri: str) -> None:
            await anyio.sleep_forever()

        async def tell(what: str, _uri: str) -> None:
            heard.append(what)

        watches = [
            watching(house, "some-host", deaf),
            watching(house, "some-host", tell),
            watching(house, "some-host", deaf),
        ]
        for watch in watches:
            watch.live.session = replace(watch.live.session, mode="swe")
        with anyio.fail_after(PATIENCE):
            await house.notifier.announce_outside_changes([watch.live for watch in watches], ())
        assert heard == ["tools"]
        # What was told once is not told again.
        with anyio.fail_after(PATIENCE):
            await house.notifier.announce_outside_changes([], {"me"})
        assert heard == ["tools"]


async def test_a_watch_that_is_over_hears_nothing(workspace: Path, home: Path) -> None:
    async with within.house(workspace, home) as house:
        heard: list[str] = []

        async def tell(what: str, _uri: str) -> None:
            heard.append(what)

        watch = watching(house, "some-host", tell)
        await house.notifier.announce_change("me", "prompts", "")
        await house.notifier.announce_change("you", "prompts", "")
        await house.notifier.announce_change("me", "resource", "file:///not-subscribed")
        watch.uris.add("file:///subscribed")
        await house.notifier.announce_change("me", "resource", "file:///subscribed")
        assert heard == ["prompts", "resource"]
        house.notifier.unwatch(watch)
        await house.notifier.announce_change("me", "prompts", "")
        assert heard == ["prompts", "resource"]
