import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.model.posture import Posture, Profile
from mcp_server.model.results import Code, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state.engine.chain import GENESIS, LONGEST_BODY, compute_row_hash, format_canonical_json
from mcp_server.state.engine.rows import LedgerFilter, Origin, PostureMoved, QuestionRow, RowKind
from mcp_server.state.ledger import build_call_fields
from mcp_server.state.store import Store
from tests.clients.served import PATIENCE
from tests.state.parts import (
    ALLOWED,
    DENIED,
    SESSION,
    Hands,
    Place,
    choose_all,
    heard,
    intended,
    intent,
    outcome,
    refused,
)

pytestmark = pytest.mark.anyio

values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.dictionaries(st.text(), st.integers()))


@given(st.dictionaries(st.text(), values))
def test_fields_have_one_text_whatever_their_order_and_can_be_read_back(fields: dict[str, Any]) -> None:
    body = format_canonical_json(fields)
    assert body == format_canonical_json(dict(reversed(fields.items())))
    assert body.isascii()
    if len(body) < LONGEST_BODY:
        assert json.loads(body) == {key: value for key, value in fields.items() if value is not None}


@given(st.text(), st.text(), st.integers(1), st.integers(1))
def test_a_hash_covers_text_number_and_what_came_before(one: str, other: str, seq: int, number: int) -> None:
    one, other = format_canonical_json({"x": one}), format_canonical_json({"x": other})
    assert (compute_row_hash(GENESIS, seq, one) == compute_row_hash(GENESIS, number, other)) == (
        (seq, one) == (number, other)
    )
    assert compute_row_hash(GENESIS, seq, one) != compute_row_hash(compute_row_hash(GENESIS, seq, one), seq, one)


def test_what_is_endless_is_clipped() -> None:
    assert len(format_canonical_json({"tool": "x" * 1_000_000, "at": 1})) < LONGEST_BODY


FIELDS = """
principal conversation session run step client transport passing mode stage work_mode run_control profile model_mode
surface ai_mode reasoning tool_count tool carrier effect needs verdict layer code rule reason arguments_sha256
arguments_bytes epoch
"""


def test_the_names_of_a_decisions_fields_stay() -> None:
    assert set(build_call_fields(intent())) == set(FIELDS.split())


def test_what_only_some_calls_have_stands_only_there() -> None:
    origin = Origin("c1", "opencode", "stdio", within=7)
    inner = replace(intent(session=replace(SESSION, phase="fix")), origin=origin)
    assert {"phase": "fix", "within": 7}.items() <= build_call_fields(inner).items()


def test_a_refusal_says_why() -> None:
    fields = build_call_fields(refused())
    assert (fields["verdict"], fields["layer"], fields["code"]) == ("deny", "rules", Code.RULE_DENIED)
    assert fields["rule"] == DENIED.rule


async def test_a_call_is_two_rows_and_a_refusal_is_one(place: Place, store: Store) -> None:
    seq = await intended(store, intent(about='{"path": "a"}'))
    store.record_outcome(outcome(seq, code=Code.NOT_FOUND))
    no = await store.record_decision(refused())
    asked = await store.record_decision(QuestionRow(SESSION, Posture(), "bash", ALLOWED, question="q1"))
    await store.close()
    with place.reader() as state:
        rows = {row.seq: row for row in state.read_rows()}
        assert [row.kind for row in rows.values()] == ["start", "intent", "outcome", "refusal", "question", "stop"]
        assert rows[asked].fields["question"] == "q1"
        denied = {"rule": "deny bash(rm:*)", "layer": "rules", "verdict": "deny", "code": "RULE_DENIED"}
        assert denied.items() <= rows[no].fields.items()
        expected = {
            "principal": "me",
            "conversation": "c1",
            "session": "s1",
            "run": "r1",
            "step": 0,
            "client": "opencode",
            "transport": "stdio",
            "mode": "git",
            "stage": "act",
            "work_mode": "build",
            "run_control": "autonomous",
            "profile": "normal",
            "model_mode": "smart",
            "surface": "headless",
            "ai_mode": "agent",
            "reasoning": False,
            "tool_count": 36,
            "tool": "Read",
            "verdict": "allow",
            "reason": "",
            "arguments_bytes": 13,
            "epoch": 0,
            "kind": "intent",
        }
        assert expected.items() <= rows[seq].fields.items()
        done = next(row for row in rows.values() if row.kind == RowKind.OUTCOME)
        assert done.fields["intent"] == seq
        assert (done.fields["session"], done.fields["tool"], done.fields["ending"]) == (SESSION.id, "Read", "problem")
        assert done.fields["code"] == "NOT_FOUND"
        assert "path" not in done.body + rows[seq].body


async def test_hashes_can_be_checked_with_a_shell(place: Place, store: Store) -> None:
    await intended(store, intent())
    await store.close()
    with place.reader() as state:
        first, second, *_ = state.read_rows()
    text = f"{first.hash}\n{second.seq}\n{second.body}"
    assert subprocess.check_output(["sha256sum"], input=text.encode()).split()[0].decode() == second.hash


async def test_callers_that_come_together_share_a_commit(store: Store) -> None:
    await intended(store, intent())
    before = store.commits
    seqs = await asyncio.gather(*(intended(store, intent()) for _ in range(256)))
    assert sorted(seqs) == list(range(min(seqs), min(seqs) + 256))
    assert store.commits - before <= 4


async def test_a_decision_made_under_an_older_posture_writes_nothing(place: Place, store: Store) -> None:
    settled = await choose_all(store, "me", Posture(profile=Profile.RESTRICTED), "be careful")
    assert isinstance(settled, Posture)
    assert await store.record_intent(intent(posture=Posture())) == PostureMoved(1)
    assert isinstance(await store.record_intent(intent(posture=settled)), int)
    assert isinstance(await store.record_intent(intent(session=Session("s2", "somebody else"))), int)
    await store.close()
    with place.reader() as state:
        assert len(list(state.read_rows(LedgerFilter(kinds=("intent",))))) == 2


async def test_a_row_that_cannot_be_written_costs_nobody_else(store: Store) -> None:
    class Odd(Posture, frozen=True):
        @property
        def epoch(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  # a mistake, planted
            raise RuntimeError("planted")

    odd = Odd()
    good, bad, also = await asyncio.gather(
        store.record_intent(intent()),
        store.record_intent(intent(posture=odd)),
        store.record_intent(intent()),
        return_exceptions=True,
    )
    assert isinstance(bad, RuntimeError)
    assert isinstance(good, int)
    assert also == good + 1


async def test_text_of_any_kind_is_kept(place: Place, store: Store) -> None:
    seq = await store.record_decision(refused(tool="\ud800 \x00 \n' 名"))
    await store.close()
    with place.reader() as state:
        row = state.find_row(seq)
        assert row is not None
        assert row.fields["tool"] == "\ud800 \x00 \n' 名"
        assert state.verify().ok


async def test_rows_are_found_by_what_one_knows_of_them(place: Place, store: Store) -> None:
    first = await intended(store, intent("Read"))
    store.record_outcome(outcome(first, "Read", Code.NOT_FOUND))
    await intended(store, intent("grep", Session("s2", "me")))
    place.clock.now += 1000
    since = place.clock.now
    last = await store.record_decision(refused("bash"))
    await store.close()
    with place.reader() as state:

        def found(wanted: LedgerFilter) -> list[tuple[str, Any]]:
            return [(row.kind, row.fields.get("tool")) for row in state.read_rows(wanted)]

        assert found(LedgerFilter(session="s2")) == [("intent", "grep")]
        assert found(LedgerFilter(tool="Read")) == [("intent", "Read"), ("outcome", "Read")]
        assert found(LedgerFilter(code="NOT_FOUND")) == [("outcome", "Read")]
        assert found(LedgerFilter(since_ns=since)) == [("refusal", "bash"), ("stop", None)]
        assert found(LedgerFilter(kinds=("refusal", "outcome"))) == [("outcome", "Read"), ("refusal", "bash")]
        assert found(LedgerFilter(tail=2)) == [("refusal", "bash"), ("stop", None)]
        assert found(LedgerFilter(session="s1", tail=1)) == [("refusal", "bash")]
        assert found(LedgerFilter(session="' OR 1=1 --")) == []
        assert [row.seq for row in state.read_rows(after=last)] == [last + 1]


async def test_following_gives_each_row_once(place: Place, store: Store) -> None:
    """The rows come while they are followed, from a server that is still running."""
    for _ in range(3):
        await intended(store, intent())
    written = [0]

    def pause() -> bool:
        written[0] += 1
        future = asyncio.run_coroutine_threadsafe(intended(store, intent()), loop)
        future.result()
        return written[0] < 5

    def follow() -> list[int]:
        with place.reader() as state:
            return [row.seq for row in state.follow_rows(LedgerFilter(tail=2, kinds=("intent",)), pause)]

    loop = asyncio.get_running_loop()
    assert await asyncio.to_thread(follow) == [3, 4, 5, 6, 7, 8]


async def test_an_outcome_comes_by_itself_and_one_that_never_came_is_told(place: Place, store: Store) -> None:
    before = store.commits
    store.record_outcome(outcome(await intended(store, intent())))
    assert await heard(lambda: store.commits >= before + 2)
    open_call = await intended(store, intent())
    with place.reader() as state:
        assert state.find_unfinished_calls() == [], "its process is still there"
    await store.close()
    with place.reader() as state:
        assert state.find_unfinished_calls() == [open_call]


async def test_the_next_start_says_which_calls_never_ended(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    await intended(store, intent())
    await store.close()
    assert (await (await hands.open(place)).wait_until_ready()).unfinished == 1


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    with pytest.raises(Refusal) as refusal:
        await store.record_intent(intent())
    assert refusal.value.problem.code is Code.STORE_UNAVAILABLE


def test_nothing_was_ever_remembered_here(place: Place) -> None:
    with pytest.raises(Refusal) as refusal:
        place.reader()
    assert refusal.value.problem.code is Code.NOT_FOUND
    assert "has not run" in refusal.value.problem.message
    assert not place.state.exists()


def test_a_server_starts_without_the_engine_and_without_cryptography(place: Place) -> None:
    script = f"""
import asyncio, sys
import mcp_server.state
heavy = lambda: {{"cryptography", "sqlite3"}} & set(sys.modules)
assert not heavy(), heavy()
from pathlib import Path
from tests.state.parts import Place, intent
async def main():
    store = Place(Path({str(place.folder)!r})).store()
    await store.wait_until_ready()
    await store.record_intent(intent())
    assert "cryptography" not in sys.modules
    await store.close()
    assert "cryptography" in sys.modules
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=PATIENCE)
