"""Does the summary of a run that is long over say what it still can, and not that there never was more?"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from mcp_server.policy.reasoning import ReasoningOutcome
from mcp_server.state import notes, runs, sessions
from mcp_server.state.open import FORGOTTEN_NS
from mcp_server.state.store import Store
from mcp_server.state.summaries import Summary, build_run_summary
from tests.state.parts import SESSION, Hands, Place, intent, outcome

pytestmark = pytest.mark.anyio
GONE = "No longer known: notes of a run are deleted after 30 days."
DAY_NS = 24 * 3600 * 10**9


@pytest.fixture
async def hands() -> AsyncIterator[Hands]:
    held = Hands()
    yield held
    await held.close()


async def lived(store: Store, *said: tuple[str, str], thought: bool = False) -> None:
    """One call, with what was noted of it."""
    begun = await store.record_intent(intent())
    assert isinstance(begun, int)
    store.record_outcome(outcome(begun))
    await store.write(partial(notes.write_notes, run=SESSION.run, seq=begun, notes=said))
    if thought:
        kept = ReasoningOutcome(next_action="look again", known_risks="it may be slow")
        await store.write(partial(runs.keep_thought, session=SESSION, outcome=kept))


async def summary(store: Store) -> Summary:
    found = await store.read(partial(build_run_summary, run=SESSION.run))
    assert found is not None
    return found


async def later(hands: Hands, place: Place, store: Store, days: int) -> Store:
    """The server is started again after so many days."""
    await store.close()
    place.clock.now += days * DAY_NS
    return await hands.open(place)


async def test_it_says_what_the_ledger_has_and_that_the_rest_is_gone(tmp_path: Path, hands: Hands) -> None:
    place = Place(tmp_path)
    store = await hands.open(place)
    await lived(store, ("goal", "mend the parser"), ("file", "src/parser.py"), thought=True)
    before = await summary(store)
    assert (before.let_go, GONE in before.text) == (False, False)
    assert (before.sections["goals"], before.sections["plan"]) == (("mend the parser",), ("look again",))
    assert (await summary(await later(hands, place, store, 29))).text == before.text
    store = hands.held[-1]
    for days in (2, 400):
        store = await later(hands, place, store, days)
        after = await summary(store)
        assert after.let_go
        assert (after.facts, after.principal) == (before.facts, before.principal)
        assert after.text.count(GONE) == len([lines for lines in after.sections.values() if not lines]) > 0
        assert "None stated." not in after.text and "mend the parser" not in after.text
        assert after.data["let_go"] is True
        assert await store.read(partial(notes.load_notes, run=SESSION.run)) == []


async def test_what_was_noted_since_then_stands_beside_it(tmp_path: Path, hands: Hands) -> None:
    place = Place(tmp_path)
    store = await hands.open(place)
    await lived(store, ("decision", "the old way"))
    store = await later(hands, place, store, 20)
    await lived(store, ("goal", "the new way"))
    store = await later(hands, place, store, 20)
    found = await summary(store)
    assert found.let_go and found.sections["goals"] == ("the new way",)
    assert "the old way" not in found.text
    assert await store.read(partial(notes.load_notes, run=SESSION.run)) == [("goal", "the new way")]


async def test_a_run_that_only_thought_is_known_to_have(tmp_path: Path, hands: Hands) -> None:
    place = Place(tmp_path)
    store = await hands.open(place)
    await lived(store, thought=True)
    assert (await summary(await later(hands, place, store, 31))).let_go


async def test_a_run_that_noted_nothing_is_not_said_to_have(tmp_path: Path, hands: Hands) -> None:
    place = Place(tmp_path)
    store = await hands.open(place)
    await lived(store)
    found = await summary(await later(hands, place, store, 31))
    assert not found.let_go and "None stated." in found.text


async def test_one_mark_stands_for_any_number(tmp_path: Path, hands: Hands) -> None:
    place = Place(tmp_path)
    store = await hands.open(place)
    for _ in range(3):
        await lived(store, *(("goal", f"goal {number}") for number in range(20)))
        place.clock.now += FORGOTTEN_NS + DAY_NS
        await store.write(partial(sessions.forget_old_sessions, before_ns=place.clock.now - FORGOTTEN_NS))
    rows = await store.read(lambda view: view.fetch_all("SELECT kind FROM notes"))
    assert [row["kind"] for row in rows] == ["let go"]
