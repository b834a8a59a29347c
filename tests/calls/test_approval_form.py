"""Is only that taken for a person's answer which holds the four characters, and took its time?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from mcp_server.calls.approval_form import ALPHABET, LENGTH, SOONEST_NS, FormAnswer, ask_person, build_form, new_code
from mcp_server.model.context import Client
from mcp_server.model.results import Code, Problem, Refusal
from tests.state.parts import ManualClock

pytestmark = pytest.mark.anyio


@dataclass
class Answering:
    """A client at the end of the wire: it answers after a while, or refuses to."""

    clock: ManualClock
    reply: Mapping[str, Any] = field(default_factory=dict[str, Any])
    takes: int = 2 * SOONEST_NS
    refuses: Code | None = None
    note: str = "ABCD 1800000000000000000"

    def get_note(self, key: str) -> str:
        return self.note

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        self.clock.now += self.takes
        if self.refuses:
            raise Refusal(Problem(self.refuses, "no"))
        return self.reply


async def ask(**about: Any) -> tuple[FormAnswer, str]:
    clock = ManualClock()
    answering = Answering(clock, **about)
    reply = await ask_person(cast(Client, answering), clock, "k", "May it run?")
    return reply.said, reply.why


@pytest.mark.parametrize("code", ["ABCD", "abcd", " a b c d "])
async def test_the_characters_are_a_yes_however_they_are_typed(code: str) -> None:
    said, _ = await ask(reply={"action": "accept", "content": {"code": code}})
    assert said is FormAnswer.YES


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"action": "accept", "content": {"code": "ABCE"}}, FormAnswer.UNCLEAR),
        ({"action": "accept", "content": {}}, FormAnswer.UNCLEAR),
        ({"action": "accept"}, FormAnswer.UNCLEAR),
        ({"action": "decline"}, FormAnswer.NO),
        ({"action": "cancel"}, FormAnswer.UNCLEAR),
        ({}, FormAnswer.UNCLEAR),
    ],
)
async def test_nothing_else_is(reply: Mapping[str, Any], answer: FormAnswer) -> None:
    said, _ = await ask(reply=reply)
    assert said is answer


async def test_who_answers_at_once_is_no_person() -> None:
    right = {"action": "accept", "content": {"code": "ABCD"}}
    note = f"ABCD {ManualClock().now}"
    said, why = await ask(reply=right, takes=SOONEST_NS // 2, note=note)
    assert said is FormAnswer.NOTHING
    assert "within a second" in why


@pytest.mark.parametrize(
    ("code", "answer", "why"),
    [
        (Code.TIMEOUT, FormAnswer.NOTHING, "in time"),
        (Code.INTERNAL, FormAnswer.NOTHING, "could not ask the question"),
        (Code.CANCELLED, FormAnswer.GONE, "disconnected"),
    ],
)
async def test_who_does_not_answer_has_not(code: Code, answer: FormAnswer, why: str) -> None:
    said, told = await ask(refuses=code)
    assert said is answer
    assert why in told


async def test_a_note_that_is_none_of_ours_begins_the_question_anew() -> None:
    said, _ = await ask(note="", reply={"action": "accept", "content": {"code": "ABCD"}})
    assert said is FormAnswer.UNCLEAR, "the old characters are good for nothing"


def test_the_characters_stand_in_the_message_alone() -> None:
    form = build_form("May it run?", "ABCD", {})
    assert "ABCD" in form["message"]
    assert "ABCD" not in str(form["requestedSchema"])
    assert form["requestedSchema"]["required"] == ["code"]


def test_characters_can_be_told_apart_and_do_not_repeat() -> None:
    codes = {new_code() for _ in range(50)}
    assert len(codes) > 40
    assert all(len(code) == LENGTH and set(code) <= set(ALPHABET) for code in codes)
    assert not set("01IOL") & set(ALPHABET)
