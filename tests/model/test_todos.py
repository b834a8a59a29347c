"""Does a todo only ever go the way it may, and is nothing verified by the word of whoever claimed it?"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_server.model.results import Problem
from mcp_server.model.todos import (
    MAX_CLAIMS,
    Criterion,
    CriterionVerdict,
    Evidence,
    Result,
    Todo,
    TodoState,
    accept,
    claim,
    judge,
    reject,
    start,
)
from tests.yaml_text import load_yaml

TABLE: list[Mapping[str, str]] = load_yaml((Path(__file__).parents[1] / "tables" / "todos.yaml").read_text())
LONG = "The parser takes an empty line now."
OLD, NEW = Evidence("test_result", "1 passed"), Evidence("diff", "+ return []")
CRITERION = Criterion("file_exists", {"path": "a.py"})


def result(verdict: CriterionVerdict) -> Result:
    return Result("file_exists", verdict, "looked")


DOES: dict[str, Callable[[Todo], Todo | Problem]] = {
    "start": start,
    "claim": lambda todo: claim(todo, LONG, [NEW]),
    "claim again": lambda todo: claim(todo, LONG, [OLD]),
    "claim bare": lambda todo: claim(todo, LONG, []),
    "claim short": lambda todo: claim(todo, " d o n e  n o w , r e a l l y ", [NEW]),
    "check holds": lambda todo: judge(todo, [result(CriterionVerdict.PASSED)]),
    "check fails": lambda todo: judge(todo, [result(CriterionVerdict.PASSED), result(CriterionVerdict.FAILED)]),
    "check unclear": lambda todo: judge(todo, [result(CriterionVerdict.UNCLEAR)]),
    "check nothing": lambda todo: judge(todo, []),
    "accept": accept,
    "reject": lambda todo: reject(todo, "not yet"),
}


def done(todo: Todo | Problem) -> Todo:
    assert isinstance(todo, Todo), todo
    return todo


def standing(where: str) -> Todo:
    begun = done(start(Todo("Mend the parser", (CRITERION,))))
    claimed = done(claim(begun, LONG, [OLD]))
    return {
        "pending": Todo("Mend the parser", (CRITERION,)),
        "in_progress": begun,
        "claimed": claimed,
        "claimed, checked": done(judge(claimed, [result(CriterionVerdict.FAILED)])),
        "in_progress, sent back": done(reject(claimed, "not yet")),
        "verified": done(accept(claimed)),
    }[where]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case['from']}: {case['does']}")
def test_the_reviewed_steps(case: Mapping[str, str]) -> None:
    todo = standing(case["from"])
    after = DOES[case["does"]](todo)
    if "refused" in case:
        assert isinstance(after, Problem)
        assert after.code == case["refused"]
        assert after.way_out
    else:
        assert done(after).state == case["to"]
        assert Todo.from_body(done(after).body) == after, "kept and read again it is the same"


def test_the_table_speaks_about_every_state_and_every_deed() -> None:
    assert {case["does"] for case in TABLE} == set(DOES)
    assert {case["from"].split(",")[0] for case in TABLE} == set(TodoState)


class Work(RuleBasedStateMachine):
    """Any order of deeds whatever. What is known of the todo is kept beside it, by other means."""

    def __init__(self) -> None:
        super().__init__()
        self.todo = Todo("Mend the parser", (CRITERION,))
        self.brought: set[str] = set()
        self.claims = 0
        self.why: list[str] = []
        self.path = [TodoState.PENDING]

    def take(self, after: Todo | Problem, deed: str) -> bool:
        if isinstance(after, Problem):
            return False
        self.todo = Todo.from_body(after.body)
        self.why.append(deed)
        self.path.append(after.state)
        return True

    @rule()
    def start(self) -> None:
        self.take(start(self.todo), "start")

    @rule(words=st.text(max_size=40), pieces=st.lists(st.sampled_from("abcde"), max_size=3))
    def claim(self, words: str, pieces: list[str]) -> None:
        before = self.todo
        if self.take(claim(self.todo, words, [Evidence("note", piece) for piece in pieces]), "claim"):
            assert len("".join(words.split())) >= 20
            assert not self.claims or set(pieces) - self.brought, "claimed again with nothing new"
            assert before.state is TodoState.IN_PROGRESS or before.is_checked
            self.brought |= set(pieces)
            self.claims += 1

    @rule(pieces=st.lists(st.sampled_from("abcde"), max_size=2))
    def claim_well(self, pieces: list[str]) -> None:
        self.claim(LONG, pieces)

    @rule(verdicts=st.lists(st.sampled_from(CriterionVerdict), max_size=3))
    def check(self, verdicts: list[CriterionVerdict]) -> None:
        if self.take(judge(self.todo, [result(one) for one in verdicts]), "check"):
            held = bool(verdicts) and set(verdicts) == {CriterionVerdict.PASSED}
            assert (self.todo.state is TodoState.VERIFIED) == held
            assert self.todo.by == ("criteria" if held else "")

    @precondition(lambda self: self.claims > 1)
    @rule()
    def accept(self) -> None:
        if self.take(accept(self.todo, "seen"), "accept"):
            assert (self.todo.state, self.todo.by) == (TodoState.VERIFIED, "user")

    @rule()
    def reject(self) -> None:
        if self.take(reject(self.todo, "no"), "reject"):
            assert self.todo.state is TodoState.IN_PROGRESS

    @invariant()
    def only_ever_goes_the_way_it_may(self) -> None:
        steps = set(zip(self.path, self.path[1:], strict=False))
        p, i, c, v = TodoState
        assert steps <= {(p, i), (i, c), (c, c), (c, i), (c, v)}
        assert (self.todo.state is TodoState.VERIFIED) == (self.todo.by != "")
        assert self.why[-1:] != ["claim"] or self.todo.state is TodoState.CLAIMED
        assert len(self.todo.claims) == min(self.claims, MAX_CLAIMS)


Work.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestAnyOrderOfDeeds = Work.TestCase


def test_evidence_that_only_looks_other_is_the_same() -> None:
    assert Evidence("diff", "+  return []\n").digest == NEW.digest
    assert Evidence("note", NEW.data).digest != NEW.digest


def test_what_is_remembered_of_old_claims_is_bounded() -> None:
    todo: Any = standing("claimed")
    for turn in range(600):
        todo = done(judge(todo, [result(CriterionVerdict.FAILED)]))
        todo = done(claim(todo, LONG, [Evidence("note", f"run {turn}")]))
    assert len(todo.claims) == MAX_CLAIMS
    assert len(str(todo.body)) < 12_000
