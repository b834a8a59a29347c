import asyncio

import pytest
from msgspec.structs import replace

from mcp_server.model.files import Stamp
from mcp_server.model.posture import Stage
from mcp_server.model.sessions import Session
from mcp_server.state.engine.rows import VersionMoved
from mcp_server.state.store import Store
from tests.state.parts import HOUR, MINUTE, Hands, Place, heard, intended, intent

pytestmark = pytest.mark.anyio
ROOT = Session("s1", "me")
GIT = replace(ROOT, mode="git")
DIGEST = "ab" * 32


async def test_a_session_moves_and_its_way_is_on_record(place: Place, store: Store) -> None:
    await store.put_session(ROOT)
    moved = await store.move_session(ROOT, GIT, "menu_enter", "now")
    assert moved == replace(GIT, version=1)
    assert await store.find_session("s1") == moved
    await store.close()
    with place.reader() as state:
        row = next(row for row in state.read_rows() if row.kind == "transition")
        assert row.fields["from"] == {"mode": None, "stage": "act", "run": "", "pinned": False, "phase": None}
        assert row.fields["to"] == {"mode": "git", "stage": "act", "run": "", "pinned": False, "phase": None}
        assert (row.fields["reason"], row.fields["scope"], row.fields["session"]) == ("menu_enter", "now", "s1")


async def test_of_two_that_move_at_once_one_wins_and_the_other_hears_where_it_stands(store: Store) -> None:
    await store.put_session(ROOT)
    one, other = await asyncio.gather(
        store.move_session(ROOT, GIT, "first"), store.move_session(ROOT, replace(ROOT, mode="swe"), "second")
    )
    assert one == replace(GIT, version=1)
    assert other == VersionMoved(replace(GIT, version=1))


async def test_a_session_nobody_put_is_put_by_its_first_move(store: Store) -> None:
    assert await store.find_session("s1") is None
    moved = await store.move_session(ROOT, GIT, "menu_enter")
    assert await store.find_session("s1") == moved
    assert await store.move_session(Session("s9", "me", version=3), GIT, "menu_enter") == VersionMoved(None)


async def test_somebody_elses_session_cannot_be_moved(store: Store) -> None:
    await store.put_session(ROOT)
    stranger = replace(ROOT, principal="stranger")
    assert isinstance(await store.move_session(stranger, replace(stranger, mode="git"), "menu_enter"), VersionMoved)
    assert await store.find_session("s1") == ROOT


async def test_a_step_moves_the_version_without_being_a_transition(place: Place, store: Store) -> None:
    one = await store.move_session(ROOT, GIT, "menu_enter")
    assert isinstance(one, Session)
    two = await store.move_session(one, replace(one, steps=1), "a call")
    assert two == replace(GIT, steps=1, version=2)
    await store.close()
    with place.reader() as state:
        assert len([row for row in state.read_rows() if row.kind == "transition"]) == 1


async def test_a_stage_nobody_knows_is_none(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await store.put_session(replace(ROOT, stage=Stage.WARMUP))
    await hands.close()
    place.sql("UPDATE sessions SET stage = 'later version'")
    found = await (await hands.open(place)).find_session("s1")
    assert found is not None
    assert found.stage is None


async def test_a_handle_leads_back_from_a_new_process(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await store.put_session(ROOT, DIGEST)
    moved = await store.move_session(ROOT, GIT, "menu_enter")
    await hands.close()
    later = await hands.open(place)
    assert await later.find_session_by_handle(DIGEST) == moved
    assert await later.find_session_by_handle("cd" * 32) is None


@pytest.mark.parametrize("fresh", [True, False], ids=["another process", "the same process"])
@pytest.mark.parametrize(
    ("idle", "known"),
    [(HOUR, True), (24 * HOUR - MINUTE, True), (24 * HOUR, False), (-HOUR, False)],
)
async def test_a_handle_ends_after_a_day_without_use(
    place: Place, hands: Hands, idle: int, known: bool, fresh: bool
) -> None:
    store = await hands.open(place)
    await store.put_session(ROOT, DIGEST)
    if fresh:
        await hands.close()
        store = await hands.open(place)
    place.clock.now += idle
    assert (await store.find_session_by_handle(DIGEST) is not None) is known


async def test_use_keeps_a_handle_alive(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await store.put_session(ROOT, DIGEST)
    for _ in range(3):
        place.clock.now += 20 * HOUR
        assert await store.find_session_by_handle(DIGEST) is not None
    await hands.close()
    place.clock.now += 20 * HOUR
    assert await (await hands.open(place)).find_session_by_handle(DIGEST) is not None


async def test_use_is_written_down_every_five_minutes_at_most(place: Place, store: Store) -> None:
    await store.put_session(ROOT, DIGEST)
    for _ in range(10):
        place.clock.now += MINUTE
        assert await store.find_session_by_handle(DIGEST) is not None
    await store.close()
    with place.reader() as state:
        (kept,) = state.load_sessions()
        assert (kept.used - kept.created) // MINUTE == 10


@pytest.mark.heavy
async def test_what_another_process_did_is_seen_and_told(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    told: list[int] = []
    stop = one.on_change(lambda: told.append(1))
    await one.put_session(ROOT)
    assert await one.find_session("s1") == ROOT
    assert await heard(lambda: told)
    told.clear()
    moved = await other.move_session(ROOT, GIT, "menu_enter")
    assert await heard(lambda: told, within=25), "within half a second"
    assert await one.find_session("s1") == moved
    stop()
    told.clear()
    await one.move_session(replace(GIT, version=1), ROOT, "menu_exit")
    assert not told


async def test_a_ledger_row_of_another_process_is_no_change(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    told: list[int] = []
    one.on_change(lambda: told.append(1))
    await intended(other, intent())
    assert not await heard(lambda: told, within=10)


async def test_files_seen_stay_seen_in_a_new_process(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    old, new = Stamp(1, 2, "a"), Stamp(3, 4, "b")
    name = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    store.remember_seen("s1", "a.py", old)
    store.remember_seen("s1", "a.py", new)
    store.remember_seen("s1", name, old)
    assert store.recall_seen("s1", "a.py") == new, "at once, without a wait"
    await hands.close()
    later = await hands.open(place)
    assert await asyncio.to_thread(later.recall_seen, "s1", "a.py") == new
    assert await asyncio.to_thread(later.recall_seen, "s1", name) == old
    assert await asyncio.to_thread(later.recall_seen, "s2", "a.py") is None


async def test_messages_wait_for_the_person(place: Place, store: Store) -> None:
    first = await store.leave_message("s1", "done \ud800 " + "x" * 20_000, ["report.md"])
    await store.leave_message("s2", "and this")
    with place.reader() as state:
        one, two = state.load_messages()
        assert (one.id, one.session, one.attachments) == (first, "s1", ("report.md",))
        assert one.text == "done \ud800 " + "x" * 20_000
        assert two.text == "and this"


async def test_sessions_nobody_used_for_a_month_are_let_go(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await store.put_session(ROOT)
    store.remember_seen("s1", "a.py", Stamp(1, 2, "a"))
    await hands.close()
    place.clock.now += 31 * 24 * HOUR
    later = await hands.open(place)
    assert await later.find_session("s1") is None
    assert await asyncio.to_thread(later.recall_seen, "s1", "a.py") is None


async def test_added_tools_last_until_the_run_ends(store: Store) -> None:
    one = await store.move_session(ROOT, replace(GIT, added=("Read", "git_log")), "request_tools")
    assert isinstance(one, Session) and one.added == ("Read", "git_log")
    other_place = replace(ROOT, place="p2", added=("grep",))
    await store.put_session(other_place)
    found = await store.find_session(other_place.key)
    assert found is not None and found.added == ("grep",)
    ended = await store.move_session(one, replace(one, run="next", added=()), "complete")
    assert isinstance(ended, Session) and ended.added == ()
    found = await store.find_session(other_place.key)
    assert found is not None and (found.run, found.added) == ("next", ())
