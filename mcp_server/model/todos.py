"""Which state is a todo in, and what moves it on? A claim is not enough: checked criteria or the person verify it.

    pending -> in_progress -> claimed -> verified

Every step is a function from a todo to the next state, or to the problem that says why not. Every claim after the first
needs new evidence. Only the latest claims and checks are kept; the ledger has a row for each.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.parts import asdict
from mcp_server.model.results import Code, Problem

KIND = "todo"
"""The kind of document that a todo is stored as."""
MAX_CLAIMS = 2
MAX_EVIDENCE = 400
MIN_EXPLANATION_CHARS = 20


class TodoState(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    CLAIMED = "claimed"
    VERIFIED = "verified"


SIGNS = {TodoState.PENDING: "[ ]", TodoState.IN_PROGRESS: "[*]", TodoState.CLAIMED: "[?]", TodoState.VERIFIED: "[x]"}
NEXT = {
    TodoState.PENDING: "`TodoStart` starts it.",
    TodoState.IN_PROGRESS: "`TodoClaim` claims that it is done, with an explanation and evidence.",
    TodoState.CLAIMED: "`TodoVerify` checks its criteria; without criteria, the user must accept it.",
    TodoState.VERIFIED: "It is done and cannot change; create another todo for what is left.",
}


class CriterionVerdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNCLEAR = "unclear"
    """It could not be checked: refused, timed out, or waiting for the person."""


class Criterion(Struct, frozen=True):
    type: str
    params: Mapping[str, Any]


class Evidence(Struct, frozen=True):
    type: str
    data: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.type}\0{' '.join(self.data.split())}".encode("utf-8", "replace")).hexdigest()[:16]


class Claim(Struct, frozen=True):
    explanation: str
    evidence: tuple[Evidence, ...]


class Result(Struct, frozen=True):
    """What became of one criterion, and the code if it was refused."""

    type: str
    verdict: CriterionVerdict
    said: str
    code: str = ""
    layer: str = ""


class Todo(Struct, frozen=True):
    content: str
    criteria: tuple[Criterion, ...] = ()
    state: TodoState = TodoState.PENDING
    claims: tuple[Claim, ...] = ()
    results: tuple[Result, ...] = ()
    """Of the latest check of the latest claim; empty if that was not checked."""
    note: str = ""
    """What the person said when they sent it back or accepted it."""
    by: str = ""
    """Who verified it: `criteria` or `user`."""
    brought: tuple[str, ...] = ()
    """The digests of all evidence so far."""

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Todo":
        return cls(
            content=body["content"],
            criteria=tuple(Criterion(**one) for one in body["criteria"]),
            state=TodoState(body["state"]),
            claims=tuple(
                Claim(one["explanation"], tuple(Evidence(**piece) for piece in one["evidence"]))
                for one in body["claims"]
            ),
            results=tuple(Result(**{**one, "verdict": CriterionVerdict(one["verdict"])}) for one in body["results"]),
            note=body["note"],
            by=body["by"],
            brought=tuple(body["brought"]),
        )

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self), default=dict))

    @property
    def is_checked(self) -> bool:
        """True if the latest claim was checked and did not hold."""
        return bool(self.results)


def start(todo: Todo) -> Todo | Problem:
    if todo.state is not TodoState.PENDING:
        return _make_wrong_state(todo, "started")
    return replace(todo, state=TodoState.IN_PROGRESS)


def claim(todo: Todo, explanation: str, evidence: Sequence[Evidence]) -> Todo | Problem:
    again = todo.state is TodoState.CLAIMED and todo.is_checked
    if todo.state is not TodoState.IN_PROGRESS and not again:
        return _make_wrong_state(todo, "claimed")
    if len("".join(explanation.split())) < MIN_EXPLANATION_CHARS:
        return Problem(
            Code.INVALID_ARGUMENTS,
            f"`explanation` has fewer than {MIN_EXPLANATION_CHARS} characters, not counting spaces.",
            "Say what was done and how to see it.",
        )
    new = [one.digest for one in evidence if one.digest not in todo.brought]
    if todo.claims and not new:
        return Problem(
            Code.NO_EVIDENCE,
            "this todo was claimed before, and this claim has no new evidence.",
            "Do what is missing, and show it in `evidence`: a command's output, a test's result, a diff.",
        )
    claims = (*todo.claims, Claim(explanation, tuple(evidence)))[-MAX_CLAIMS:]
    brought = (*todo.brought, *new)[-MAX_EVIDENCE:]
    return replace(todo, state=TodoState.CLAIMED, claims=claims, results=(), note="", brought=brought)


def judge(todo: Todo, results: Sequence[Result]) -> Todo | Problem:
    """Verify it if all its criteria passed. Without criteria it stays claimed."""
    if todo.state is not TodoState.CLAIMED:
        return _make_wrong_state(todo, "verified")
    if not results or any(one.verdict is not CriterionVerdict.PASSED for one in results):
        return replace(todo, results=tuple(results))
    return replace(todo, state=TodoState.VERIFIED, results=tuple(results), by="criteria")


def accept(todo: Todo, note: str = "") -> Todo | Problem:
    """The person accepts it; that needs no criteria."""
    if todo.state is not TodoState.CLAIMED:
        return _make_wrong_state(todo, "accepted")
    return replace(todo, state=TodoState.VERIFIED, note=note, by="user")


def reject(todo: Todo, note: str) -> Todo | Problem:
    """The person sends it back: work continues, and the next claim needs new evidence."""
    if todo.state is not TodoState.CLAIMED:
        return _make_wrong_state(todo, "rejected")
    return replace(todo, state=TodoState.IN_PROGRESS, results=(), note=note)


def _make_wrong_state(todo: Todo, action: str) -> Problem:
    state = todo.state.replace("_", " ")
    data = {"status": str(todo.state)}
    return Problem(Code.WRONG_STATE, f"this todo is {state} and cannot be {action}.", NEXT[todo.state], data)
