"""What does a run that succeeded leave behind, how much of it is kept, and who finds it again?"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from mcp_server.calls.memory import MAX_LINES, ProjectMemory, distil_answer, rank_entries
from mcp_server.guards.redaction import Redactor
from mcp_server.model.memory import LONGEST, MOST, MemoryEntry, Tier
from mcp_server.model.sessions import Session
from mcp_server.state import memory as state_memory
from mcp_server.state.store import Store

pytestmark = pytest.mark.anyio
FACT, DECISION, OUTCOME = Tier
RUN = Session("s", "ada", run="r1")


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("Done.", [(OUTCOME, "Done.")]),
        ("Done.\nDecision: one file", [(DECISION, "one file"), (OUTCOME, "Done.")]),
        ("- **Decision:** one file\n* Fact : make test", [(FACT, "make test"), (DECISION, "one file")]),
        ("# Fact: a\n> FACT: a\nfact: b", [(FACT, "a"), (FACT, "b")]),
        ("Decision: x", [(DECISION, "x"), (OUTCOME, "Decision: x")]),
        ("My decision: x", [(OUTCOME, "My decision: x")]),
        ("Decision:", [(OUTCOME, "Decision:")]),
        ("Decision:   \nwell", [(OUTCOME, "Decision: well")]),
        ("a  b\n\n\tc", [(OUTCOME, "a b c")]),
        ("y" * 2000, [(OUTCOME, "y" * (LONGEST - 1) + "…")]),
    ],
)
async def test_what_an_answer_leaves(answer: str, kept: list[tuple[Tier, str]]) -> None:
    found = distil_answer(answer)
    assert found[: len(kept)] == kept
    assert all(one[0] is OUTCOME for one in found[len(kept) :])


@pytest.mark.parametrize(
    ("notes", "kept"),
    [
        ([("file", "a.py")], [(OUTCOME, "Done. Changed `a.py`.")]),
        ([("file", "a.py"), ("file", "b.py"), ("file", "a.py")], [(OUTCOME, "Done. Changed `a.py`, `b.py`.")]),
        ([("decision", "one file"), ("goal", "x")], [(DECISION, "one file"), (OUTCOME, "Done.")]),
        ([("answer", "Done."), ("message", "hm")], [(OUTCOME, "Done.")]),
    ],
)
async def test_what_was_noted_while_it_went_on_is_kept_too(
    notes: list[tuple[str, str]], kept: list[tuple[Tier, str]]
) -> None:
    assert distil_answer("Done.", notes) == kept


async def test_an_entry_stays_short_however_many_files_were_changed() -> None:
    notes = [("file", f"{'deep/' * 30}{number}.py") for number in range(500)]
    ((_, text),) = distil_answer("y" * 5000, notes)
    assert len(text) <= LONGEST
    assert text.endswith(" and 490 more.")


async def test_an_answer_of_a_thousand_decisions_is_a_few() -> None:
    found = distil_answer("".join(f"Decision: {number}\nFact: {number}\n" for number in range(1000)))
    assert [tier for tier, _ in found].count(DECISION) == [tier for tier, _ in found].count(FACT) == MAX_LINES


class Clock:
    def __init__(self) -> None:
        self._turns = count(1)

    def now_ns(self) -> int:
        return next(self._turns)


@pytest.fixture
def ids() -> Iterator[int]:
    return count(1)


@pytest.fixture
async def memory(anyio_backend: str, tmp_path: Path, ids: Iterator[int]) -> AsyncGenerator[ProjectMemory]:
    store = Store.open(
        f"sqlite:///{tmp_path / 'state.db'}", secrets=tmp_path, clock=Clock(), new_id=lambda: str(next(ids))
    )
    yield ProjectMemory(store, Redactor(("hunter2hunter2",)).redact)
    await store.close()


async def found(memory: ProjectMemory, query: str = "", tier: Tier | None = None) -> Sequence[MemoryEntry]:
    return (await memory.build_lookup(RUN).search(query, tier, 1000)).shown


async def test_each_tier_keeps_so_many_and_the_oldest_goes_first(memory: ProjectMemory) -> None:
    for number in range(MOST[OUTCOME] + 5):
        await memory.learn(RUN, f"outcome number {number}")
    kept = await found(memory, tier=OUTCOME)
    assert [one.text for one in kept] == [f"outcome number {n}" for n in range(MOST[OUTCOME] + 4, 4, -1)]


async def test_what_is_known_already_is_made_new_and_not_kept_twice(memory: ProjectMemory) -> None:
    for answer in ("a\nDecision: one", "b\nDecision: two", "c\nDecision: one"):
        await memory.learn(RUN, answer)
    assert [one.text for one in await found(memory, tier=DECISION)] == ["one", "two"]


async def test_no_secret_is_written_down(memory: ProjectMemory) -> None:
    await memory.learn(RUN, f"{'x' * (LONGEST - 5)}hunter2hunter2\nFact: the word is hunter2hunter2")
    kept = await found(memory)
    assert not any("hunter" in one.text for one in kept)
    assert any("[redacted]" in one.text for one in kept)


async def test_nobody_finds_what_another_ones_runs_left(memory: ProjectMemory) -> None:
    await memory.learn(RUN, "ada's")
    other = memory.build_lookup(Session("t", "bob"))
    assert (await other.search("")).total == 0
    await memory.learn(Session("t", "bob"), "bob's")
    assert [one.text for one in (await other.search("")).shown] == ["bob's"]
    every = await memory.store.read(state_memory.load_all_memories)
    assert {(one.principal, one.text) for one in every} == {("ada", "ada's"), ("bob", "bob's")}


async def test_it_says_what_was_remembered(memory: ProjectMemory) -> None:
    said = await memory.learn(RUN, "Done.\nFact: a\nFact: b\nDecision: c")
    assert said == " Remembered for later runs: 2 facts, 1 decision, 1 outcome."


def entry(id: str, at: int, tier: Tier, text: str) -> MemoryEntry:
    return MemoryEntry(id, at, tier, text, "ada")


async def test_what_fits_best_comes_first_and_then_what_lasts_longest() -> None:
    entries = [
        entry("1", 5, OUTCOME, "moved the store to SQLite"),
        entry("2", 1, DECISION, "SQLite for the store"),
        entry("3", 9, FACT, "store lives in state.db"),
        entry("4", 3, DECISION, "no ORM"),
    ]
    assert [one.id for one in rank_entries(entries, "sqlite store")] == ["2", "1", "3"]
    assert [one.id for one in rank_entries(entries, '"state.db"')] == ["3"]
    assert [one.id for one in rank_entries(entries, "")] == ["3", "1", "4", "2"]
    assert rank_entries(entries, "(((") == []
