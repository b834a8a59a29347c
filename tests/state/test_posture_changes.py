"""Does a change that waits come into force once, at its moment, whoever is there to see it, and after any end?"""

import asyncio
import os
import signal
import sys
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.model.posture import ChangeScope, ChangeSource, Posture, PostureChange, PostureChoice, Profile, WorkMode
from mcp_server.model.sessions import Session
from mcp_server.state import approvals, ledger, posture_changes
from mcp_server.state import posture as state_posture
from mcp_server.state.engine.rows import OutcomeRow, PostureMoved, Row, VersionMoved
from mcp_server.state.store import Store
from tests.state.parts import HOUR, SESSION, Hands, Place, heard, intended, intent, outcome

pytestmark = pytest.mark.anyio
OTHER = Session("s2", "me", mode="git", run="r9")


async def ask(store: Store, scope: ChangeScope, who: str = "me", **about: Any) -> PostureChoice:
    axes = about.pop("axes", {"profile": Profile.TRUSTED})
    change = PostureChange(about.pop("id", "c1"), axes, scope, "for a test", **about)
    found = await store.write(partial(posture_changes.request_posture_change, principal=who, change=change))
    assert isinstance(found, PostureChoice)
    return found


async def deeds_of(store: Store, who: str = "me") -> PostureChoice:
    """What is in the file now, whatever this process remembers."""
    return await store.read(partial(state_posture.load_choice, principal=who)) or PostureChoice()


async def profile(store: Store, who: str = "me") -> str:
    return str((await deeds_of(store, who)).axes.get("profile", "usual"))


async def completed(store: Store, session: Session = SESSION) -> None:
    """The run of this session is over."""
    seq = None
    while not isinstance(seq, int):
        posture = (await deeds_of(store, session.principal)).apply_to(Posture())
        seq = await store.record_intent(intent("complete", session, posture))
    store.record_outcome(OutcomeRow(seq, "done", session=session.id, tool="complete"))
    await store.write(lambda _tx: None)


async def changed(store: Store) -> None:
    """A call that changes something has ended."""
    posture = (await deeds_of(store)).apply_to(Posture())
    store.record_outcome(outcome(await intended(store, intent("Write", posture=posture)), "Write"))
    await store.write(lambda _tx: None)


def transitions(place: Place) -> list[Row]:
    with place.reader() as state:
        return [row for row in state.read_rows() if row.kind == "transition"]


@pytest.mark.heavy
async def test_after_the_current_tool_is_when_the_calls_that_ran_are_over(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    running = [await intended(store, intent()) for _ in range(2)]
    waiting = await ask(store, ChangeScope.AFTER_CURRENT_TOOL)
    assert waiting.waiting[0].calls and waiting.axes == {}
    later = await intended(store, intent(posture=replace(Posture(), epoch=waiting.epoch)))
    for seq in (later, running[0]):
        store.record_outcome(outcome(seq))
        await store.write(lambda _tx: None)
    assert await profile(store) == "usual"
    store.record_outcome(outcome(running[1]))
    assert await heard(lambda: transitions(place)[-1].fields["to"].get("profile") == "trusted", within=25)
    assert await profile(store) == "trusted"


async def test_a_call_that_begins_in_the_same_batch_is_waited_for(place: Place, hands: Hands) -> None:
    """What a batch has put on record itself is there for who looks in the same one."""
    store = await hands.open(place)
    change = PostureChange("c1", {"profile": Profile.TRUSTED}, ChangeScope.AFTER_CURRENT_TOOL, "for a test")
    asked = (
        store.write(partial(ledger.record_intent, intent=intent())),
        store.write(partial(posture_changes.request_posture_change, principal="me", change=change)),
    )
    seq, choice = await asyncio.gather(*asked)
    assert isinstance(choice, PostureChoice)
    assert [number for number, _process in choice.waiting[0].calls] == [seq]


async def test_no_call_comes_between_the_end_and_the_change(place: Place, hands: Hands) -> None:
    """The outcome and the change are one transaction, so whoever decided before decides again."""
    store = await hands.open(place)
    running = await intended(store, intent())
    waiting = await ask(store, ChangeScope.AFTER_CURRENT_TOOL)
    before = replace(Posture(), epoch=waiting.epoch)
    store.record_outcome(outcome(running))
    assert isinstance(await store.record_intent(intent(posture=before)), PostureMoved)


@pytest.mark.parametrize("end", ["a change", "complete"])
async def test_a_unit_ends_with_its_change_or_its_run(place: Place, hands: Hands, end: str) -> None:
    store = await hands.open(place)
    seq = await intended(store, intent())
    waiting = await ask(store, ChangeScope.AFTER_CURRENT_UNIT)
    assert waiting.waiting
    store.record_outcome(outcome(seq))
    await store.write(lambda _tx: None)
    assert await profile(store) == "usual"
    if end == "complete":
        await completed(store)
    else:
        await changed(store)
    assert await profile(store) == "trusted"


@pytest.mark.parametrize("end", ["a change", "complete"])
async def test_after_the_current_unit_is_now_if_none_is_open(place: Place, hands: Hands, end: str) -> None:
    store = await hands.open(place)
    await intended(store, intent())
    await (completed(store) if end == "complete" else changed(store))
    assert not (await ask(store, ChangeScope.AFTER_CURRENT_UNIT)).waiting
    assert await profile(store) == "trusted"


@pytest.mark.parametrize("end", ["problem", "cancelled"])
async def test_a_complete_that_failed_completes_nothing(place: Place, hands: Hands, end: str) -> None:
    store = await hands.open(place)
    waiting = await ask(store, ChangeScope.NEXT_MILESTONE)
    seq = await intended(store, intent("complete", posture=replace(Posture(), epoch=waiting.epoch)))
    store.record_outcome(OutcomeRow(seq, end, session=SESSION.id, tool="complete"))
    await store.write(lambda _tx: None)
    assert await profile(store) == "usual"


async def test_in_assisted_a_unit_is_one_call_that_changes_something(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    assisted = await ask(store, ChangeScope.NOW, axes={"run_control": "assisted"}, id="c0")
    posture = assisted.apply_to(Posture())
    seq = await store.record_intent(intent("Write", posture=posture), approvals.QuestionTerms(unit=SESSION.id))
    assert isinstance(seq, int)
    trial = await ask(store, ChangeScope.FOR_NEXT_UNIT)
    assert trial.waiting
    store.record_outcome(outcome(seq, "Write"))
    await store.write(lambda _tx: None)
    assert await profile(store) == "trusted"
    assert (await deeds_of(store)).trials


async def test_where_calls_share_no_session_a_change_is_a_unit_as_well(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.FOR_NEXT_UNIT)
    assert await profile(store) == "trusted"
    posture = (await deeds_of(store)).apply_to(Posture())
    for tool, then in (("Read", "trusted"), ("Write", "usual")):
        one = intent(tool, posture=posture)
        seq = await intended(store, replace(one, origin=replace(one.origin, passing=True)))
        store.record_outcome(outcome(seq, tool))
        await store.write(lambda _tx: None)
        assert await profile(store) == then


async def test_for_the_next_unit_and_back_again(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await intended(store, intent())
    running = await intended(store, intent("Write"))
    assert (await ask(store, ChangeScope.FOR_NEXT_UNIT)).waiting
    store.record_outcome(outcome(running, "Write"))
    await store.write(lambda _tx: None)
    assert await profile(store) == "trusted"
    await changed(store)
    assert await profile(store) == "usual"
    assert [row.fields["event"] for row in transitions(place)] == ["asked", "in force", "reverted"]


async def test_only_the_session_that_is_named_counts(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.NEXT_MILESTONE, session=OTHER.id)
    await completed(store)
    assert await profile(store) == "usual"
    await completed(store, OTHER)
    assert await profile(store) == "trusted"


async def test_one_persons_run_is_no_moment_of_anothers(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.NEXT_MILESTONE, who="you")
    await completed(store)
    assert await profile(store, "you") == "usual"


async def test_what_waits_outlives_every_process(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await intended(store, intent())
    await ask(store, ChangeScope.NEXT_MILESTONE)
    await hands.close()
    store = await hands.open(place)
    assert (await deeds_of(store)).waiting
    await completed(store)
    assert await profile(store) == "trusted"


async def test_two_processes_see_the_moment_and_one_of_them_acts(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    for round in range(5):
        await ask(one, ChangeScope.NEXT_MILESTONE, id=f"c{round}", axes={"work_mode": list(WorkMode)[round]})
        await asyncio.gather(completed(one), completed(other, OTHER))
    in_force = [row for row in transitions(place) if row.fields["event"] == "in force"]
    assert [row.fields["change"] for row in in_force] == [f"c{round}" for round in range(5)]
    assert (await deeds_of(one)) == (await deeds_of(other))


@pytest.mark.heavy
async def test_a_change_made_in_another_process_is_told_at_its_moment(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    await ask(other, ChangeScope.NEXT_MILESTONE)
    told: list[int] = []
    one.on_change(lambda: told.append(1))
    await completed(other)
    assert await heard(lambda: told, within=25), "within half a second"
    assert await profile(one) == "trusted"


async def test_what_a_batch_knew_of_the_postures_holds_only_until_another_process_writes(
    place: Place, hands: Hands
) -> None:
    one, other = await hands.open(place), await hands.open(place)
    running = await intended(one, intent())
    one.record_outcome(outcome(await intended(one, intent())))
    # From here on this process knows that nothing waits for the end of a call.
    await one.write(lambda _tx: None)
    assert (await ask(other, ChangeScope.AFTER_CURRENT_TOOL)).waiting
    one.record_outcome(outcome(running))
    await one.write(lambda _tx: None)
    assert await profile(one) == "trusted"
    assert isinstance(await one.record_intent(intent()), PostureMoved)


async def test_a_process_that_ends_lets_go_of_what_it_ran(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    await intended(one, intent())
    assert (await ask(other, ChangeScope.AFTER_CURRENT_TOOL)).waiting
    await one.close()
    hands.held.remove(one)
    assert await profile(other) == "trusted"


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.state.parts import Place, intent
async def main():
    store = Place(Path(sys.argv[1])).store()
    await store.wait_until_ready()
    print(await store.record_intent(intent()), flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_a_call_of_a_process_that_was_killed_is_over_with_the_next_start(place: Place, hands: Hands) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(place.folder), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert int(await process.stdout.readline())
    store = await hands.open(place)
    assert (await ask(store, ChangeScope.AFTER_CURRENT_TOOL)).waiting
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    assert (await deeds_of(store)).waiting
    again = await hands.open(place)
    assert await profile(again) == "trusted"


async def test_an_epoch_that_passed_is_no_ground_to_ask_on(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.NOW)
    late = PostureChange("c2", {"profile": Profile.UNRESTRICTED})
    found = await store.write(partial(posture_changes.request_posture_change, principal="me", change=late, epoch=0))
    assert isinstance(found, VersionMoved)
    assert await profile(store) == "trusted"


async def test_what_needs_a_confirmation_changes_nothing_until_then(place: Place, hands: Hands) -> None:
    """Not even the epoch, with which every open question would become void."""
    store = await hands.open(place)
    before = await ask(store, ChangeScope.NOW, id="c0")
    unasked: dict[str, Any] = {"door": ChangeSource.PROMPT, "unconfirmed": True}
    asked = await ask(store, ChangeScope.NOW, axes={"run_control": "manual"}, **unasked)
    assert (asked.epoch, asked.axes) == (before.epoch, before.axes)
    resuming = await ask(store, ChangeScope.NOW, axes={}, id="c2", units=3, **unasked)
    assert [one.id for one in resuming.waiting] == ["c1", "c2"], "neither replaces the other"
    newer = await ask(store, ChangeScope.NOW, axes={}, id="c3", units=1, **unasked)
    assert [one.id for one in newer.waiting] == ["c1", "c3"]
    confirmed = await store.write(partial(posture_changes.confirm_change, principal="me", id="c3"))
    assert confirmed is not None and [one.id for one in confirmed.waiting] == ["c1"]
    assert confirmed.epoch == before.epoch


async def test_a_yes_counts_once_and_not_for_ever(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.NOW, unconfirmed=True, door=ChangeSource.PROMPT)
    assert await profile(store) == "usual"
    place.clock.now += 2 * HOUR
    assert await store.write(partial(posture_changes.confirm_change, principal="me", id="c1")) is None
    await ask(store, ChangeScope.NOW, unconfirmed=True, door=ChangeSource.PROMPT, id="c2")
    assert await store.write(partial(posture_changes.confirm_change, principal="you", id="c2")) is None
    assert isinstance(
        await store.write(partial(posture_changes.confirm_change, principal="me", id="c2")), PostureChoice
    )
    assert await store.write(partial(posture_changes.confirm_change, principal="me", id="c2")) is None
    assert await profile(store) == "trusted"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE posture SET axes = replace(axes, 'next-milestone', 'now')",
        "UPDATE posture SET axes = replace(axes, 'restricted', 'unrestricted')",
        "UPDATE posture SET axes = replace(axes, '\"unconfirmed\":true', '\"unconfirmed\":false')",
        'UPDATE posture SET axes = replace(axes, \'"waiting":[{\', \'"waiting":[{"axes":{},\')',
    ],
)
async def test_what_waits_is_believed_from_nobody_without_the_key(place: Place, hands: Hands, statement: str) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.NOW, axes={"profile": Profile.RESTRICTED})
    await ask(store, ChangeScope.NEXT_MILESTONE, unconfirmed=True, id="c2")
    await hands.close()
    place.sql(statement)
    store = await hands.open(place)
    assert await deeds_of(store) == PostureChoice.build_most_restricted((await deeds_of(store)).epoch)
    assert await store.write(partial(posture_changes.confirm_change, principal="me", id="c2")) is None


async def test_every_step_is_on_record_with_its_reason_scope_and_door(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await ask(store, ChangeScope.NEXT_MILESTONE, door=ChangeSource.PROMPT, session="s1")
    await completed(store)
    asked, done = (row.fields for row in transitions(place))
    assert asked["to"] == {"epoch": 1, "waiting": ["profile trusted, next-milestone"]}
    assert done["from"] == asked["to"] and done["to"] == {"epoch": 2, "profile": "trusted"}
    for row in (asked, done):
        assert (row["reason"], row["scope"], row["door"]) == ("for a test", "next-milestone", "prompt")
        assert (row["principal"], row["session"]) == ("me", "s1")
