"""Does half an hour of questions leave any of them behind, or ask the same thing twice?

Two agents work for thirty minutes of a clock that is moved. They make forty calls that need approval: some are answered
at the terminal, some in a form, some never, and some are made again, also over a connection that makes no other call.
In the legacy era, a call whose form nobody answers waits for as long as its run lasts.
"""

import json
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, FormQuestion, question
from tests.clients.later import Later
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, served

CALLS = 40
MINUTES = 30
RULES = "rules:\n  ask:\n    - bash(rm:*)\n    - Write(kept/**)\n    - fs_write_file(kept/**)\n"
ID = re.compile(r"`menugate approve (\w+)`")


@dataclass(frozen=True)
class Asking:
    """A call that needs approval."""

    number: int

    @property
    def wanted(self) -> dict[str, Any]:
        """In the terms of a carrier."""
        name = f"{self.number}.txt"
        tool, mode, arguments = [
            ("fs_delete", "data", {"path": f"old/{name}"}),
            ("bash", "swe", {"command": f"rm old/{name}"}),
            ("Write", "swe", {"file_path": f"kept/{name}", "content": "new\n"}),
            ("fs_write_file", "data", {"path": f"kept/{name}", "content": "new\n"}),
        ][self.number % 4]
        return {"tool": tool, "mode": mode, "arguments": arguments}

    def happened(self, work: Path) -> bool:
        name = f"{self.number}.txt"
        return not (work / "old" / name).exists() or (work / "kept" / name).exists()


@dataclass
class Desk:
    """Everybody at work: the agents, their clients and the person."""

    work: Path
    clock: Later
    here: Served
    able: Pipe
    """Its client can show a form, in either era."""
    plain: RawClient
    """Its client can ask nothing; this agent gives its handle."""
    handle: str = ""
    ids: dict[Asking, str] = field(default_factory=dict[Asking, str])
    """The question that each call ended in."""
    forms: dict[Asking, FormQuestion] = field(default_factory=dict[Asking, FormQuestion])
    open: set[str] = field(default_factory=set[str])
    """Those that should still wait for an answer."""

    def person(self, *words: str) -> str:
        told = self.clock.typed(*words)
        assert told.code == 0, told.err
        return told.out

    def listed(self, *words: str) -> list[dict[str, Any]]:
        return json.loads(self.person("approvals", "--json", *words))

    def through_form(self, asking: Asking) -> FormQuestion:
        """The question that a client is given to show."""
        asked = question(self.able, {"name": "menu_call", "arguments": asking.wanted})
        about = f'/{asking.number}.txt"'
        (id,) = [row["id"] for row in self.listed() if about in row["message"]]
        assert asked.key in ("", f"approval-{id}")
        self.note(asking, id)
        self.forms[asking] = asked
        return asked

    def ask(self, asking: Asking) -> None:
        if asking.number % 3:
            self.through_form(asking)
        else:
            told = said(self.plain.call("menu_call", **asking.wanted, menu=self.handle))
            self.note(asking, asked_in(told))

    def note(self, asking: Asking, id: str) -> None:
        """Made again, it is the same question."""
        assert self.ids.setdefault(asking, id) == id
        self.open.add(id)

    def repeat(self, asking: Asking) -> str:
        """Make the call again, unless it still waits for an answer."""
        if asking.number % 3 == 0:
            return said(self.plain.call("menu_call", **asking.wanted, menu=self.handle))
        if self.able.era == MODERN:
            return said(self.able.call("menu_call", **asking.wanted))
        return said(self.forms[asking].wait()["result"])

    def answer(self, asking: Asking, reply: dict[str, Any]) -> str:
        return said(self.forms[asking].answer(reply)["result"])


def said(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


def asked_in(told: str) -> str:
    assert told.startswith("Error APPROVAL_REQUIRED"), told
    return ID.findall(told)[0]


# What may become of a question.


def approve(desk: Desk, asking: Asking) -> None:
    desk.ask(asking)
    desk.person("approve", desk.ids[asking])
    desk.open.discard(desk.ids[asking])
    assert not asking.happened(desk.work)
    told = desk.repeat(asking)
    assert not told.startswith("Error"), told
    assert asking.happened(desk.work)


def deny(desk: Desk, asking: Asking) -> None:
    desk.ask(asking)
    desk.person("deny", desk.ids[asking], "--reason", "not now")
    desk.open.discard(desk.ids[asking])
    assert desk.repeat(asking).startswith("Error APPROVAL_DENIED")


def accept_in_form(desk: Desk, asking: Asking) -> None:
    asked = desk.through_form(asking)
    desk.clock.pass_minutes(0.1)
    told = desk.answer(asking, {"action": "accept", "content": {"code": asked.code}})
    assert not told.startswith("Error"), told
    desk.open.discard(desk.ids[asking])
    assert asking.happened(desk.work)


def decline_in_form(desk: Desk, asking: Asking) -> None:
    desk.through_form(asking)
    desk.clock.pass_minutes(0.1)
    assert desk.answer(asking, {"action": "decline"}).startswith("Error APPROVAL_DENIED")
    desk.open.discard(desk.ids[asking])


def close_the_form(desk: Desk, asking: Asking) -> None:
    """At once, so this client is not asked again, and the question is the same one."""
    desk.through_form(asking)
    assert asked_in(desk.answer(asking, {"action": "cancel"})) == desk.ids[asking]
    desk.note(asking, asked_in(said(desk.able.call("menu_call", **asking.wanted))))


def never(desk: Desk, asking: Asking) -> None:
    desk.ask(asking)


def again_and_again(desk: Desk, asking: Asking) -> None:
    for _ in range(3):
        desk.ask(asking)
        desk.clock.pass_minutes(0.1)


def over_another_connection(desk: Desk, asking: Asking) -> None:
    desk.through_form(asking)
    with raw(desk.here, name="some-client") as other:
        desk.note(asking, asked_in(said(other.call("menu_call", **asking.wanted))))


FATES: list[Callable[[Desk, Asking], None]] = [
    approve,
    deny,
    accept_in_form,
    never,
    decline_in_form,
    close_the_form,
    again_and_again,
    over_another_connection,
]


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Desk]:
    work, home = tmp_path / "work", tmp_path / "home"
    (work / "old").mkdir(parents=True)
    (work / "kept").mkdir()
    for number in range(-1, CALLS):
        (work / "old" / f"{number}.txt").write_text("old\n")
    (home / ".config" / "menugate").mkdir(parents=True)
    (home / ".config" / "menugate" / "menugate.yaml").write_text(RULES)
    clock = Later(tmp_path / "hours", work, home)
    flags = ("--profile", "trusted")
    with (
        served(work, home, *flags, run=clock.serve()) as here,
        pipe(work, home, *flags, run=clock.serve()) as able,
        raw(here, name="some-client") as plain,
    ):
        able.able = FORM
        able.hello("some-client", request.param)
        handle = plain.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        yield Desk(work, clock, here, able, plain, handle)


@pytest.mark.parametrize("desk", ERAS, indirect=True)
def test_half_an_hour_of_questions_leaves_none_behind(desk: Desk) -> None:
    forgotten = Asking(-1)
    never(desk, forgotten)
    desk.open.clear()
    assert [row["id"] for row in desk.listed()] == [desk.ids[forgotten]]
    # Its hour ends somewhere in this half an hour.
    desk.clock.pass_minutes(MINUTES + 1)
    for number in range(CALLS):
        # The fates move on by one after each round, so that every tool meets every one of them.
        FATES[(number + number // len(FATES)) % len(FATES)](desk, Asking(number))
        desk.clock.pass_minutes(MINUTES / CALLS)
        waiting = [row["id"] for row in desk.listed()]
        assert len(waiting) == len(set(waiting))
        assert set(waiting) - {desk.ids[forgotten]} == desk.open
    assert len(desk.ids) == len(set(desk.ids.values())) == CALLS + 1
    assert len(desk.open) > CALLS / 3
    ends(desk)
    asks_again_in_the_next_run(desk, forgotten)


def ends(desk: Desk) -> None:
    standing = {row["id"]: row["standing"] for row in desk.listed("--all")}
    assert standing[desk.ids[Asking(-1)]] == "expired"
    assert desk.ids[Asking(-1)] not in {row["id"] for row in desk.listed()}
    theirs = {id for asking, id in desk.ids.items() if id in desk.open and asking.number % 3 == 0}
    assert theirs < desk.open
    assert not desk.able.call("complete", final_answer="Done.")["isError"]
    # What the other agent asked is still its own.
    left = {row["id"] for row in desk.listed()}
    assert left
    assert left <= theirs
    assert not desk.plain.call("complete", final_answer="Done.", menu=desk.handle)["isError"]
    assert desk.listed() == []
    assert json.loads(desk.person("status", "--json"))["waiting"]["approvals"] == []
    for id in desk.open:
        late = desk.clock.typed("approve", id)
        assert late.code == 1
        assert "is no longer valid: the run it was asked in was completed" in late.err
    after = {row["id"]: row["standing"] for row in desk.listed("--all")}
    assert set(after.values()) == {"used", "no", "void"}
    approved = {asking for asking, id in desk.ids.items() if after[id] == "used"}
    assert {asking for asking in desk.ids if asking.happened(desk.work)} == approved


def asks_again_in_the_next_run(desk: Desk, forgotten: Asking) -> None:
    """None of the old questions counts there."""
    unanswered = next(asking for asking, id in desk.ids.items() if id in desk.open)
    old = dict(desk.ids)
    desk.ids.clear()
    for asking in (forgotten, unanswered):
        desk.ask(asking)
        assert desk.ids[asking] != old[asking]
    assert {row["id"] for row in desk.listed()} == set(desk.ids.values())
