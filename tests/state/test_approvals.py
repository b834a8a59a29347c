"""Does a yes count once, for the one call it is about, and only where the person gave it?"""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.model.approvals import AnsweredBy, Approval, ApprovalAnswer, ApprovalScope, ApprovedCall, parse_approval
from mcp_server.model.posture import Posture, Profile, Stage
from mcp_server.model.results import Refusal
from mcp_server.model.sessions import Hold, Holder
from mcp_server.model.tools import Demand, Effect
from mcp_server.policy.reasoning import ReasoningOutcome
from mcp_server.state import approval_questions, approvals, runs
from mcp_server.state.approval_questions import MAX_LONG
from mcp_server.state.engine.rows import ApprovalLapsed, QuestionRow, RowKind, RunPaused
from mcp_server.state.engine.rows import LedgerFilter as Rows
from mcp_server.state.engine.schema import STEPS
from mcp_server.state.store import Store
from tests.sizes import scale
from tests.state.parts import ALLOWED, HOUR, SECOND, SESSION, Place, choose_all, intent

pytestmark = pytest.mark.anyio
DESTROYING = Demand(Effect.DESTROY_LOCAL, Profile.TRUSTED, "it is deleted")
READING = Demand(Effect.READ_LOCAL, Profile.RESTRICTED)
DIGEST = intent(about="x").arguments_sha256


def wanted(demand: Demand = DESTROYING) -> ApprovedCall:
    return ApprovedCall.build_from_demand(SESSION, Posture(), "Read", demand, DIGEST)


async def asked(store: Store, place: Place, call: ApprovedCall, id: str = "q1") -> Approval:
    now = place.clock.now_ns()
    draft = Approval(id, call, "may it?", now, now + HOUR)
    judged = QuestionRow(SESSION, Posture(), call.tool, ALLOWED)
    recorded = await store.write(lambda tx: approvals.record_question(tx, draft, judged))
    assert recorded is not None
    return recorded


async def say(
    store: Store,
    id: str,
    answer: ApprovalAnswer,
    way: AnsweredBy = AnsweredBy.PERSON,
    scope: ApprovalScope = ApprovalScope.ONCE,
) -> Approval | None:
    return await store.write(lambda tx: approvals.record_answer(tx, approvals.QuestionReply(id, answer, way, scope)))


async def begin(store: Store, call: ApprovedCall, id: str = "q1") -> Any:
    return await store.record_intent(intent(about="x"), approvals.QuestionTerms(id, call))


async def test_a_yes_is_burnt_with_the_record_of_the_call(place: Place, store: Store) -> None:
    await asked(store, place, wanted())
    assert isinstance(await begin(store, wanted()), ApprovalLapsed), "nobody answered yet"
    await say(store, "q1", ApprovalAnswer.YES)
    first = await begin(store, wanted())
    assert isinstance(first, int)
    assert await begin(store, wanted()) == ApprovalLapsed("it was already used")
    await store.close()
    with place.reader() as state:
        kinds = [RowKind.QUESTION, RowKind.ANSWER, RowKind.INTENT, RowKind.REDEEMED]
        rows = list(state.read_rows(Rows(kinds=tuple(kinds))))
        assert [row.kind for row in rows] == kinds
        assert rows[-1].fields["intent"] == first
        assert rows[-2].fields["approval"] == "q1"
        assert state.verify().ok


async def test_of_many_that_come_at_once_one_runs(place: Place, store: Store) -> None:
    await asked(store, place, wanted())
    await say(store, "q1", ApprovalAnswer.YES)
    found = await asyncio.gather(*(begin(store, wanted()) for _ in range(20)))
    assert len([one for one in found if isinstance(one, int)]) == 1


@pytest.mark.parametrize("answer", [ApprovalAnswer.NO, ApprovalAnswer.CLOSED, ApprovalAnswer.OPEN])
async def test_whatever_is_not_a_yes_lets_nothing_through(place: Place, store: Store, answer: ApprovalAnswer) -> None:
    await asked(store, place, wanted())
    if answer is not ApprovalAnswer.OPEN:
        await say(store, "q1", answer)
    assert isinstance(await begin(store, wanted()), ApprovalLapsed)


YES, NO, CLIENT, PERSON = ApprovalAnswer.YES, ApprovalAnswer.NO, AnsweredBy.CLIENT, AnsweredBy.PERSON


@pytest.mark.parametrize(
    ("first", "later", "counts"),
    [
        ((NO, CLIENT), (YES, CLIENT), (NO, CLIENT)),
        ((NO, CLIENT), (YES, PERSON), (NO, CLIENT)),
        ((YES, CLIENT), (NO, CLIENT), (YES, CLIENT)),
        ((YES, CLIENT), (YES, PERSON), (YES, CLIENT)),
        ((YES, PERSON), (NO, CLIENT), (YES, PERSON)),
        ((NO, PERSON), (YES, CLIENT), (NO, PERSON)),
        # Only a person at a terminal narrows an answer, or changes the own one.
        ((YES, CLIENT), (NO, PERSON), (NO, PERSON)),
        ((NO, CLIENT), (NO, PERSON), (NO, PERSON)),
        ((YES, PERSON), (NO, PERSON), (NO, PERSON)),
        ((NO, PERSON), (YES, PERSON), (YES, PERSON)),
    ],
)
async def test_the_first_answer_wins_whichever_way_it_came(
    place: Place, store: Store, first: Any, later: Any, counts: Any
) -> None:
    await asked(store, place, wanted())
    await say(store, "q1", *first)
    kept = await say(store, "q1", *later)
    assert kept is not None
    assert (kept.answer, kept.way) == counts
    assert isinstance(await begin(store, wanted()), int) == (counts[0] is YES)
    if counts[0] is YES:
        assert await say(store, "q1", *later) is None, "a used one is over"


async def test_what_is_no_answer_leaves_it_open_and_is_counted(place: Place, store: Store) -> None:
    await asked(store, place, wanted())

    def left(tries: int) -> Any:
        return store.write(lambda tx: approvals.leave_open(tx, "q1", tries, "closed it"))

    for tries, so_far in ((1, 1), (3, 4)):
        found = await left(tries)
        assert (found.answer, found.tries) == (ApprovalAnswer.OPEN, so_far)
    assert (await asked(store, place, wanted(), "q2")).id == "q1"
    await say(store, "q1", ApprovalAnswer.YES)
    found = await left(1)
    assert (found.answer, found.tries) == (ApprovalAnswer.YES, 4), "what the person said stands"
    assert isinstance(await begin(store, wanted()), int)
    assert await left(1) is None


async def test_a_yes_expires_also_by_a_clock_that_is_set_back(place: Place, store: Store) -> None:
    await asked(store, place, wanted())
    await say(store, "q1", ApprovalAnswer.YES)
    for moved in (HOUR + SECOND, -2 * HOUR):
        place.clock.now += moved
        assert await begin(store, wanted()) == ApprovalLapsed("it has expired")
        assert await say(store, "q1", ApprovalAnswer.YES) is None
        place.clock.now -= moved
    assert isinstance(await begin(store, wanted()), int)


async def test_the_posture_of_now_counts(place: Place, store: Store) -> None:
    await asked(store, place, wanted())
    await say(store, "q1", ApprovalAnswer.YES)
    settled = await choose_all(store, "me", Posture(), "changed")
    assert isinstance(settled, Posture)
    moved = await begin(store, wanted())
    assert not isinstance(moved, int)
    now = replace(wanted(), epoch=settled.epoch)
    again = await store.record_intent(intent(posture=settled, about="x"), approvals.QuestionTerms("q1", now))
    assert again == ApprovalLapsed("the posture was changed since it was asked")


CHANGES: list[Callable[[ApprovedCall], ApprovedCall]] = [
    partial(replace, principal="you"),
    partial(replace, session="s2"),
    partial(replace, run="r2"),
    partial(replace, stage=Stage.MICRO_STEP),
    partial(replace, epoch=1),
    partial(replace, tool="Write"),
    partial(replace, arguments_sha256="0" * 64),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change.keywords)))
async def test_a_yes_to_one_call_is_none_to_another(place: Place, store: Store, change: Any) -> None:
    await asked(store, place, wanted())
    await say(store, "q1", ApprovalAnswer.YES)
    assert isinstance(await begin(store, change(wanted())), ApprovalLapsed)
    assert isinstance(await begin(store, wanted()), int)


async def test_for_the_session_covers_other_arguments_and_no_greater_effect(place: Place, store: Store) -> None:
    await asked(store, place, wanted(READING))
    settled = await say(store, "q1", ApprovalAnswer.YES, scope=ApprovalScope.SESSION)
    assert settled is not None
    assert settled.scope is ApprovalScope.SESSION
    other = replace(wanted(READING), arguments_sha256="1" * 64)
    for call in (wanted(READING), other, other):
        assert isinstance(await begin(store, call), int)
    for greater in (
        replace(other, effect=Effect.WRITE_LOCAL),
        replace(other, profile=Profile.TRUSTED),
        replace(other, lasting=False),
        replace(other, session="s2"),
        replace(other, run="r2"),
    ):
        assert isinstance(await begin(store, greater), ApprovalLapsed)


async def test_for_the_session_covers_of_what_runs_commands_this_one_alone(place: Place, store: Store) -> None:
    call = replace(wanted(READING), exact=True)
    await asked(store, place, call)
    await say(store, "q1", ApprovalAnswer.YES, scope=ApprovalScope.SESSION)
    for _ in range(2):
        assert isinstance(await begin(store, call), int)
    for other in (
        replace(call, arguments_sha256="1" * 64),
        replace(call, arguments_sha256="1" * 64, exact=False),
        replace(call, effect=Effect.EXEC),
        replace(call, profile=Profile.TRUSTED),
        replace(call, lasting=False),
    ):
        assert isinstance(await begin(store, other), ApprovalLapsed)


@pytest.mark.parametrize("way", AnsweredBy)
async def test_what_is_too_long_for_a_form_is_no_yes_before_it_was_shown(
    place: Place, store: Store, way: AnsweredBy
) -> None:
    now = place.clock.now_ns()
    draft = Approval("q1", wanted(), "too long", now, now + HOUR, whole="rm " + "a" * 5000)
    await store.write(lambda tx: approvals.record_question(tx, draft, QuestionRow(SESSION, Posture(), "Read", ALLOWED)))
    assert await say(store, "q1", ApprovalAnswer.YES, way) is None
    assert isinstance(await begin(store, wanted()), ApprovalLapsed)
    await store.write(lambda tx: approvals.mark_shown(tx, "q1"))
    assert await say(store, "q1", ApprovalAnswer.YES, way) is not None
    assert isinstance(await begin(store, wanted()), int)


async def test_of_long_questions_only_so_many_are_open(place: Place, store: Store) -> None:
    now = place.clock.now_ns()
    judged = QuestionRow(SESSION, Posture(), "Read", ALLOWED)

    async def ask_long(number: int) -> Approval | None:
        call = replace(wanted(), arguments_sha256=f"{number:064}")
        draft = Approval(f"q{number}", call, "too long", now + number, now + HOUR, whole="a" * 30_000, shown=True)
        place.clock.now += 1
        return await store.write(lambda tx: approvals.record_question(tx, draft, judged))

    for number in range(MAX_LONG):
        assert await ask_long(number) is not None
    assert await ask_long(MAX_LONG) is None
    await asked(store, place, wanted(), "short")
    kept = {one.id for one in await store.read(approval_questions.load_approvals)}
    assert kept == {"short"} | {f"q{number}" for number in range(MAX_LONG)}
    # One that is answered and used makes room, and goes for it.
    await say(store, "q0", ApprovalAnswer.YES)
    assert await ask_long(MAX_LONG) is not None
    await begin(store, replace(wanted(), arguments_sha256="0" * 64), "q0")
    await say(store, "q1", ApprovalAnswer.NO)
    assert await ask_long(MAX_LONG + 1) is not None
    kept = {one.id for one in await store.read(approval_questions.load_approvals)}
    assert kept == {"short"} | {f"q{number}" for number in range(1, MAX_LONG + 2)}


async def test_what_an_earlier_menugate_was_asked_is_still_read_and_opens_no_more(place: Place, store: Store) -> None:
    """It knew neither `exact` nor long questions, and a yes of its for the session was one to every command."""
    await asked(store, place, wanted(READING))
    settled = await say(store, "q1", ApprovalAnswer.YES, scope=ApprovalScope.SESSION)
    assert settled is not None
    fields = settled.to_fields()
    for name in ("whole", "shown"):
        del fields[name]
    del fields["wanted"]["exact"]
    earlier = parse_approval(fields)
    assert earlier == settled
    assert earlier.covers(replace(wanted(READING), arguments_sha256="1" * 64))
    assert not earlier.covers(replace(wanted(READING), arguments_sha256="1" * 64, exact=True))
    del fields["wanted"]["lasting"]
    with pytest.raises(ValueError, match="not an approval"):
        parse_approval(fields)


async def test_what_destroys_is_never_for_the_session(place: Place, store: Store) -> None:
    await asked(store, place, wanted())
    settled = await say(store, "q1", ApprovalAnswer.YES, scope=ApprovalScope.SESSION)
    assert settled is not None
    assert settled.scope is ApprovalScope.ONCE


async def test_the_same_open_question_is_not_put_twice(place: Place, store: Store) -> None:
    first = await asked(store, place, wanted())
    again = await asked(store, place, wanted(), "q2")
    assert again.id == first.id == "q1"
    other = await asked(store, place, replace(wanted(), arguments_sha256="2" * 64), "q3")
    assert other.id == "q3"


async def test_no_flood_takes_away_what_can_be_answered_or_was(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MAX_OPEN", 5), ("MAX_KEPT", 8)):
        monkeypatch.setattr(approval_questions, name, most)
    calls = {f"q{number}": replace(wanted(), arguments_sha256=f"{number:064}") for number in range(20)}
    ids = iter(calls)
    yes, no, *waiting = [next(ids) for _ in range(5)]
    for id in (yes, no, *waiting):
        await asked(store, place, calls[id], id)
    assert (await asked(store, place, calls[yes], "again")).id == yes, "it joins the open one"
    with pytest.raises(AssertionError):
        await asked(store, place, calls["q19"], "q19")
    await say(store, yes, ApprovalAnswer.YES)
    await say(store, no, ApprovalAnswer.NO)
    # What is settled and over goes first: a refusal by a client counts only that one time.
    for _ in range(9):
        id = next(ids)
        await asked(store, place, calls[id], id)
        assert await say(store, id, ApprovalAnswer.NO, AnsweredBy.CLIENT) is not None
    await asked(store, place, replace(wanted(), principal="someone else"), "another's")
    own = [one.id for one in await store.read(approval_questions.load_approvals) if one.id != "another's"]
    assert {yes, no, *waiting} < set(own)
    assert len(own) == 8
    assert isinstance(await begin(store, calls[yes], yes), int)


@pytest.mark.parametrize("tampering", ["answer", "expires", "arguments_sha256", "id", "mac", "json"])
async def test_a_yes_written_into_the_file_by_hand_is_none(place: Place, store: Store, tampering: str) -> None:
    await asked(store, place, wanted())
    if tampering != "answer":
        await say(store, "q1", ApprovalAnswer.YES)
    await store.close()
    connection = sqlite3.connect(place.file)
    body, mac = connection.execute("SELECT body, mac FROM approvals").fetchone()
    fields = json.loads(body)
    match tampering:
        case "answer":
            fields |= {"answer": "yes", "way": "person"}
        case "expires":
            fields["expires"] += HOUR
        case "arguments_sha256":
            fields["wanted"]["arguments_sha256"] = "0" * 64
        case "id":
            connection.execute("UPDATE approvals SET id = 'q2'")
        case "mac":
            mac = "0" * 64
        case _:
            body = "{"
    if tampering in ("answer", "expires", "arguments_sha256"):
        body = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    connection.execute("UPDATE approvals SET body = ?, mac = ?", (body, mac))
    connection.commit()
    connection.close()
    again = place.store()
    try:
        id = "q2" if tampering == "id" else "q1"
        call = replace(wanted(), arguments_sha256="0" * 64) if tampering == "arguments_sha256" else wanted()
        assert await begin(again, call, id) == ApprovalLapsed("it is not known here")
    finally:
        await again.close()


FIELDS = st.fixed_dictionaries(
    {
        "principal": st.sampled_from(["me", "you"]),
        "session": st.sampled_from(["s1", "s2", ""]),
        "run": st.sampled_from(["r1", "r2", ""]),
        "step": st.integers(0, 3),
        "stage": st.sampled_from([Stage.ACT, Stage.WARMUP, None]),
        "epoch": st.integers(0, 2),
        "tool": st.sampled_from(["a", "b"]),
        "effect": st.sampled_from(Effect),
        "profile": st.sampled_from(Profile),
        "arguments_sha256": st.sampled_from(["x", "y"]),
        "lasting": st.booleans(),
        "exact": st.booleans(),
    }
)
BOUND = ("principal", "session", "run", "stage", "epoch", "tool")


@pytest.mark.heavy
@settings(max_examples=scale(500), deadline=None, derandomize=True)
@given(FIELDS, FIELDS, st.sampled_from(ApprovalScope), st.booleans())
def test_what_an_approval_covers(
    one: dict[str, Any], other: dict[str, Any], scope: ApprovalScope, carried: bool
) -> None:
    approval = Approval("q", ApprovedCall(**one), "", 0, 10, ApprovalAnswer.YES, scope)
    if not approval.covers(ApprovedCall(**other), carried):
        return
    free = {"session", "run"} if carried and one["session"] != other["session"] else set[str]()
    assert all(one[name] == other[name] for name in BOUND if name not in free)
    if scope is not ApprovalScope.SESSION:
        assert one["arguments_sha256"] == other["arguments_sha256"]
    else:
        assert other["lasting"]
        assert one["effect"] is other["effect"]
        assert one["profile"].covers(other["profile"])
        if one["exact"] or other["exact"]:
            assert one["arguments_sha256"] == other["arguments_sha256"]


# Pauses.


async def test_a_unit_is_taken_once(store: Store) -> None:
    def unit() -> Any:
        return store.record_intent(intent(), approvals.QuestionTerms(unit=SESSION.id))

    found = await asyncio.gather(*(unit() for _ in range(5)))
    assert len([one for one in found if isinstance(one, int)]) == 1
    assert all(isinstance(one, RunPaused) and one.hold.by is Holder.UNIT for one in found if not isinstance(one, int))
    await store.write(lambda tx: runs.resume_session(tx, "me", None, 3))
    assert [isinstance(await unit(), int) for _ in range(4)] == [True, True, True, False]


async def test_the_first_reason_stays_and_the_persons_wins(store: Store) -> None:
    def pause(by: Holder, reason: str, run: str = "") -> Any:
        return store.write(lambda tx: runs.pause_session(tx, "me", "s1", Hold(by, reason, run)))

    assert (await pause(Holder.BUDGET, "calls", "r1")).reason == "calls"
    assert (await pause(Holder.UNIT, "unit", "r1")).reason == "calls"
    assert (await pause(Holder.BUDGET, "minutes", "r2")).reason == "minutes", "the first was about another run"
    assert (await pause(Holder.PERSON, "lunch")).reason == "lunch"
    assert (await pause(Holder.UNIT, "unit")).reason == "lunch"
    held = await store.read(runs.load_holds)
    assert held["me", "s1"].by is Holder.PERSON


async def test_a_pause_that_cannot_be_read_holds(place: Place, store: Store) -> None:
    await store.write(lambda tx: runs.pause_session(tx, "me", "", Hold(Holder.PERSON, "lunch")))
    await store.close()
    place.sql("UPDATE holds SET body = '{'")
    with place.reader() as state:
        assert state.load_holds()["me", ""].by is Holder.PERSON


async def test_stop_clears_what_the_runs_came_to(store: Store) -> None:
    await store.put_session(SESSION)
    await store.write(lambda tx: runs.keep_thought(tx, SESSION, ReasoningOutcome("a plan")))
    assert await store.read(lambda view: runs.load_thoughts(view, "s1", "r1")) == [ReasoningOutcome("a plan")]
    assert len(await store.write(lambda tx: runs.stop_runs(tx, "me", None, "new", "stopped"))) == 1
    after = await store.find_session("s1")
    assert after is not None
    assert (after.run, after.steps, after.stage) == ("new-1", 0, Stage.ACT)
    assert await store.read(lambda view: runs.load_thoughts(view, "s1", "r1")) == []
    held = await store.read(runs.load_holds)
    assert held["me", ""].stopped
    assert await store.write(lambda tx: runs.stop_runs(tx, "you", None, "new", "stopped")) == ()


# The layout.


async def test_a_state_of_the_first_layout_is_brought_up_to_date(place: Place, store: Store) -> None:
    await store.put_session(SESSION)
    await store.close()
    later = [table for step in STEPS[1:] for sql in step for table in re.findall(r"CREATE TABLE (\w+)", sql)]
    place.sql(
        *(f"DROP TABLE {name}" for name in later),
        "DROP INDEX ledger_by_run",
        "ALTER TABLE ledger DROP COLUMN run",
        "DROP INDEX replies_to_deliver",
        *(f"ALTER TABLE messages DROP COLUMN {name}" for name in ("reply", "delivered")),
        *(f"ALTER TABLE sessions DROP COLUMN {name}" for name in ("reasoned", "phase", "added")),
        "UPDATE workspace SET schema_version = 1",
    )
    with pytest.raises(Refusal, match="older menugate"):
        place.reader()
    again = place.store()
    try:
        assert (await again.find_session("s1")) == SESSION
        await asked(again, place, wanted())
    finally:
        await again.close()
    with place.reader() as state:
        assert len(state.load_approvals()) == 1
