"""Is what the person chose kept, told, and believed from nobody else?"""

import asyncio

import pytest
from msgspec.structs import replace

from mcp_server.model.posture import AiMode, ChangeScope, Posture, PostureChoice, Profile, RunControl, WorkMode
from mcp_server.state.engine.rows import VersionMoved
from mcp_server.state.store import Store
from tests.state.parts import Hands, Place, choose_all, heard, posture_of

pytestmark = pytest.mark.anyio
CHOSEN = Posture(WorkMode.REPAIR, RunControl.ASSISTED, Profile.TRUSTED, reasoning=True)
LEAST = Posture.most_restricted()


async def test_a_choice_is_kept_and_on_record(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    assert await posture_of(store, "me") is None
    settled = await choose_all(store, "me", CHOSEN, "a repair", scope=ChangeScope.AFTER_CURRENT_UNIT, session="s1")
    assert settled == replace(CHOSEN, epoch=1)
    assert await posture_of(store, "me") == settled
    assert await posture_of(store, "somebody else") is None
    await hands.close()
    assert await posture_of(await hands.open(place), "me") == settled
    with place.reader() as state:
        row = next(row for row in state.read_rows() if row.kind == "transition")
        assert row.fields["from"] == {"epoch": 0}
        assert row.fields["to"] | {"profile": "trusted", "work_mode": "repair", "epoch": 1} == row.fields["to"]
        assert row.fields["to"]["reasoning"] is True
        assert (row.fields["scope"], row.fields["session"]) == ("after-current-unit", "s1")
        assert isinstance(settled, Posture)
        assert state.load_choices() == {"me": PostureChoice.build_from_posture(settled)}


async def test_of_two_choices_made_at_once_one_wins(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    found = await asyncio.gather(choose_all(one, "me", CHOSEN, "one"), choose_all(other, "me", Posture(), "other"))
    winners = [answer for answer in found if isinstance(answer, Posture)]
    losers = [answer for answer in found if isinstance(answer, VersionMoved)]
    assert len(winners) == len(losers) == 1
    assert isinstance(winners[0], Posture)
    assert isinstance(winners[0], Posture)
    assert losers[0].current == PostureChoice.build_from_posture(winners[0])


@pytest.mark.heavy
async def test_a_choice_made_in_another_process_is_told_and_holds(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    told: list[int] = []
    one.on_change(lambda: told.append(1))
    assert await posture_of(one, "me") is None
    settled = await choose_all(other, "me", CHOSEN, "on the command line")
    assert await heard(lambda: told, within=25), "within half a second"
    assert await posture_of(one, "me") == settled


async def test_ones_own_choice_is_told_once(store: Store) -> None:
    told: list[int] = []
    store.on_change(lambda: told.append(1))
    await choose_all(store, "me", CHOSEN, "here")
    assert told == [1]
    assert not await heard(lambda: len(told) > 1, within=10)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE posture SET axes = replace(axes, 'restricted', 'unrestricted')",
        "UPDATE posture SET axes = 'nonsense'",
        "UPDATE posture SET axes = '[]'",
        "UPDATE posture SET axes = '{}'",
        "UPDATE posture SET epoch = 7",
        "UPDATE posture SET epoch = 'many'",
        "UPDATE posture SET mac = 'x'",
        "UPDATE posture SET axes = (SELECT axes FROM posture WHERE principal = 'free'),"
        " mac = (SELECT mac FROM posture WHERE principal = 'free') WHERE principal = 'me'",
    ],
)
async def test_a_choice_that_nobody_with_the_key_wrote_leaves_the_least(
    place: Place, hands: Hands, statement: str
) -> None:
    """A state file can come with a repository: what is written in it raises nothing."""
    store = await hands.open(place)
    await choose_all(store, "me", Posture(profile=Profile.RESTRICTED), "careful")
    await choose_all(store, "free", Posture(profile=Profile.UNRESTRICTED, ai_mode=AiMode.AGENT), "free")
    await hands.close()
    place.sql(statement)
    store = await hands.open(place)
    found = await posture_of(store, "me")
    assert found is not None
    assert replace(found, epoch=0) == LEAST
    again = await choose_all(store, "me", replace(CHOSEN, epoch=found.epoch), "chosen anew")
    assert again == replace(CHOSEN, epoch=found.epoch + 1)
