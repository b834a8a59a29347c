"""Are seats found again by their handles, and let go when nobody comes back to them?"""

import gc
import weakref
from pathlib import Path

import pytest

from mcp_server.calls import sessions
from mcp_server.calls.live_sessions import LiveSession
from mcp_server.model.results import Code, Problem
from mcp_server.model.sessions import Session
from tests.clients import within

pytestmark = pytest.mark.anyio


async def test_seats_without_a_connection_are_let_go_and_found_again(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_LOOSE", 2)
    async with within.house(workspace, home) as house:
        held: list[weakref.ref[LiveSession]] = []
        handles: list[str] = []
        for _ in range(5):
            live = house.core.sessions.open("me", passing=True)
            handles.append(await house.core.sessions.ensure_handle(live))
            assert isinstance(await house.core.sessions.move(live, "swe", "test"), Session)
            held.append(weakref.ref(live))
            del live
        gc.collect()
        assert [one() is not None for one in held] == [False, False, False, True, True]
        for handle in handles:
            found = await house.core.sessions.find_by_handle(handle, "me")
            assert isinstance(found, LiveSession)
            assert found.session.mode == "swe"
            assert await house.core.sessions.find_by_handle(handle, "me") is found
            other = await house.core.sessions.find_by_handle(handle, "you")
            assert isinstance(other, Problem)
            assert other.code is Code.UNKNOWN_HANDLE


async def test_a_move_says_where_it_came_from_and_none_says_nothing(workspace: Path, home: Path) -> None:
    async with within.house(workspace, home) as house:
        for passing in (True, False):
            live = house.core.sessions.open("me", passing=passing)
            before = live.session
            moved = await house.core.sessions.move(live, "swe", "test")
            assert isinstance(moved, Session)
            assert (moved.id, moved.mode) == (before.id, None)
            assert live.session.mode == "swe"
            assert await house.core.sessions.move(live, "swe", "test") is None


async def test_the_way_into_a_mode_is_on_record_also_without_a_connection(workspace: Path, home: Path) -> None:
    from mcp_server.state.reader import Reader

    async with within.house(workspace, home) as house:
        live = house.core.sessions.open("me", passing=True)
        await house.core.sessions.ensure_handle(live)
        await house.core.sessions.move(live, "swe", "menu_enter swe")
        settings = house.settings
    with Reader.open(settings.url, secrets=settings.secrets) as state:
        (row,) = [row for row in state.read_rows() if row.kind == "transition"]
    assert (row.fields["from"]["mode"], row.fields["to"]["mode"]) == (None, "swe")
    assert (row.fields["session"], row.fields["principal"]) == (live.session.id, "me")
