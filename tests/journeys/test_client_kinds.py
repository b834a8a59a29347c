"""Does anything happen without a person, whatever kind of client it is? And does a person's answer reach the call?

Ten ways to behave that were seen in real hosts, in both eras and over three transports, through one session: it reads,
edits, runs a command, and makes three calls that need approval.
"""

import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM
from tests.clients.kinds import KINDS, UNLISTED, Client, Kind, ScriptedHost, greet, shares_nothing
from tests.clients.later import Later
from tests.clients.pipe import pipe
from tests.clients.raw import raw
from tests.clients.served import Served, served
from tests.clients.sse import sse_pipe
from tests.sizes import FULL

# Every second one of these and of the next round has both eras.
WAYS = [("stdio", "legacy"), ("http", "legacy"), ("http", MODERN), ("stdio", MODERN), ("sse", "legacy")]
TRANSPORTS = ("stdio", "http", "sse")
IMPOSSIBLE = {("sse", MODERN)}
"""The newer era has no such transport, and menugate answers none of its requests there: the last test shows it."""
RULES = "rules:\n  ask:\n    - bash(rm:*)\n    - Write(**/kept/**)\n"
PATIENCE = 0.2
"""Seconds for which a slow client is waited for."""


@dataclass
class House:
    work: Path
    home: Path
    clock: Later
    normal: Served
    hasty: Served
    """Does not wait long for an answer."""

    def typed(self, *words: str) -> str:
        told = self.clock.typed(*words)
        assert told.code == 0, told.err
        return told.out

    def posture(self) -> Any:
        return json.loads(self.typed("steer", "--json"))

    def waiting(self, about: str) -> list[str]:
        rows = json.loads(self.typed("approvals", "--json"))
        return [row["id"] for row in rows if about in row["message"]]

    def rows(self, kind: str, ids: list[str]) -> list[dict[str, Any]]:
        told = self.typed("audit", "tail", "--json", "-n", "30", "--kind", kind)
        return [row for row in map(json.loads, told.splitlines()) if row["question"] in ids]

    def connect(self, kind: Kind, transport: str, era: str) -> Callable[[], AbstractContextManager[Client]]:
        here = self.hasty if kind.late else self.normal

        @contextmanager
        def connected() -> Generator[Client]:
            if transport == "http":
                with raw(here, name=UNLISTED, era=era, able=FORM if kind.answer else {}) as one:
                    yield one
            elif transport == "sse":
                with sse_pipe(here) as one:
                    yield greet(one, kind, era)
            else:
                run = self.clock.serve(**({"answer": PATIENCE} if kind.late else {}))
                with pipe(self.work, self.home, run=run) as one:
                    yield greet(one, kind, era)
                    assert one.bye() == 0

        return connected


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    folder = tmp_path_factory.mktemp("kinds")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    (home / ".config" / "menugate").mkdir(parents=True)
    (home / ".config" / "menugate" / "menugate.yaml").write_text(RULES)
    clock = Later(folder / "hours", work, home)
    with (
        served(work, home, run=clock.serve()) as normal,
        served(work, home, run=clock.serve(answer=PATIENCE)) as hasty,
    ):
        one = House(work, home, clock, normal, hasty)
        one.typed("profile", "trusted")
        yield one


@dataclass
class Session:
    """One host at work in a folder of its own."""

    house: House
    host: ScriptedHost
    folder: Path
    asked: list[str]

    def path(self, name: str) -> str:
        return f"{self.folder.name}/{name}"

    def ask(self, tool: str, mode: str, arguments: dict[str, Any], about: str) -> str:
        """Make a call that needs approval; the id of the one question that it leaves for the person."""
        told = self.host.carry(tool, mode, arguments)
        if self.host.overdue:
            # Its hour has passed when the client comes back, and no answer counts any more.
            self.house.clock.pass_hours(1.01)
            (told,) = self.host.come_back_late()
            assert told.startswith("Error APPROVAL_"), told
            assert self.house.waiting(about) == []
            self.host.carry(tool, mode, arguments)
            (id,) = self.house.waiting(about)
        else:
            assert told.startswith("Error APPROVAL_REQUIRED"), told
            (id,) = self.house.waiting(about)
            assert f"`menugate approve {id}`" in told
        self.asked.append(id)
        return id

    def repeat(self, tool: str, mode: str, arguments: dict[str, Any]) -> str:
        """Make the call again now that the person has answered, as this client does."""
        return self.host.come_back_late()[0] if self.host.overdue else self.host.carry(tool, mode, arguments)


EVERY = [*product(KINDS.values(), WAYS)]
HALF = EVERY[::2]
"""Still has every kind in both eras and over two transports."""
CASES = [pytest.param(case, id=f"{case[0].name}, {' '.join(case[1])}") for case in (EVERY if FULL else HALF)]


def test_every_cell_is_tried_or_impossible() -> None:
    possible = {*product(TRANSPORTS, ERAS)} - IMPOSSIBLE
    assert {(kind.name, way) for kind, way in EVERY} == {*product(KINDS, possible)}
    for kind in KINDS.values():
        tried = {way for one, way in HALF if one is kind}
        assert len({transport for transport, _ in tried}) > 1
        assert {era for _, era in tried} == set(ERAS)


@pytest.fixture
def session(house: House, request: pytest.FixtureRequest) -> Generator[Session]:
    kind, (transport, era) = request.param
    folder = house.work / f"case{len(list(house.work.glob('case*')))}"
    (folder / "kept").mkdir(parents=True)
    for name in ("notes.md", "old.md", "spare.txt"):
        (folder / name).write_text("first\n")
    host = ScriptedHost(kind, house.connect(kind, transport, era), lambda: house.clock.pass_minutes(1))
    with host.opened():
        if kind.begin is not None:
            assert host.one is not None
            before = house.posture()
            kind.begin(host.one)
            assert house.posture() == before
        if kind.handle or (shares_nothing(kind, transport, era) and not kind.alone):
            entered = host.call("menu_enter", mode="swe")
            host.menu = entered.partition('"menu": "')[2].partition('"')[0]
            assert host.menu, entered
        yield Session(house, host, folder, [])


@pytest.mark.heavy
@pytest.mark.parametrize("session", CASES, indirect=True)
def test_nothing_happens_without_a_person_and_all_of_it_with_one(session: Session) -> None:
    before = session.house.posture()
    works(session)
    deletes_what_the_person_approves(session)
    runs_what_the_person_approves_once(session)
    writes_what_the_person_approves(session)
    assert session.house.posture() == before
    assert not session.host.call("complete", final_answer="Done.").startswith("Error")
    assert session.house.waiting(session.folder.name) == []
    says_who_answered(session)


def works(session: Session) -> None:
    host, notes = session.host, {"file_path": session.path("notes.md")}
    assert "first" in host.carry("Read", "swe", notes, "menu_read")
    edited = host.carry("Edit", "swe", notes | {"old_string": "first", "new_string": "second"})
    knows = not host.kind.alone or host.kind.handle
    assert edited.startswith("Error NOT_READ") != knows, edited
    assert (session.folder / "notes.md").read_text() == ("second\n" if knows else "first\n")
    assert "there" in host.carry("bash", "swe", {"command": f"echo there; cat {session.path('notes.md')}"})


def deletes_what_the_person_approves(session: Session) -> None:
    old = session.folder / "old.md"
    call: Any = ("fs_delete", "data", {"path": session.path("old.md")})
    id = session.ask(*call, about=session.path("old.md"))
    assert old.exists()
    session.house.typed("approve", id)
    assert old.exists()
    told = session.repeat(*call)
    assert "Deleted" in told, told
    assert not old.exists()


def runs_what_the_person_approves_once(session: Session) -> None:
    command = f"rm {session.path('spare.txt')}"
    call: Any = ("bash", "swe", {"command": command})
    id = session.ask(*call, about=command)
    assert (session.folder / "spare.txt").exists()
    session.house.typed("approve", id)
    told = session.repeat(*call)
    assert not told.startswith("Error"), told
    assert not (session.folder / "spare.txt").exists()
    # The very same line is another question.
    (session.folder / "spare.txt").write_text("first\n")
    again = session.ask(*call, about=command)
    assert again != id
    session.house.typed("deny", again, "--reason", "I still need it")
    told = session.repeat(*call)
    assert told.startswith("Error APPROVAL_DENIED"), told
    assert "I still need it" in told
    assert (session.folder / "spare.txt").exists()


def writes_what_the_person_approves(session: Session) -> None:
    path = session.path("kept/plan.md")
    call: Any = ("Write", "swe", {"file_path": path, "content": "a plan\n"})
    id = session.ask(*call, about=path)
    assert not (session.folder / "kept" / "plan.md").exists()
    session.house.typed("approve", id)
    told = session.repeat(*call)
    assert not told.startswith("Error"), told
    assert (session.folder / "kept" / "plan.md").read_text() == "a plan\n"


def says_who_answered(session: Session) -> None:
    answers = session.house.rows("answer", session.asked)
    assert [(row["question"], row["answer"]) for row in answers if row["way"] == "person"] == [
        (id, answer) for id, answer in zip(session.asked, ("yes", "yes", "no", "yes"), strict=True)
    ]
    assert {row["answer"] for row in answers if row["way"] != "person"} <= {"open"}
    used = [row["question"] for row in session.house.rows("redeemed", session.asked)]
    assert used == [session.asked[0], session.asked[1], session.asked[3]]


def test_the_newer_era_is_not_spoken_over_sse(house: House) -> None:
    """Nothing runs for a client that tries, and nothing is asked. If it shakes hands instead, it gets the older era."""
    spare = house.work / "spare.md"
    spare.write_text("first\n")
    listed = len(json.loads(house.typed("approvals", "--json", "--all")))
    with sse_pipe(house.normal) as one:
        one.able = FORM
        assert one.hello(UNLISTED, MODERN)["error"]["code"] == -32601
        for tool, mode, arguments in (
            ("fs_delete", "data", {"path": "spare.md"}),
            ("bash", "swe", {"command": "rm spare.md"}),
        ):
            carried = {"tool": tool, "mode": mode, "arguments": arguments}
            assert "error" in one.request("tools/call", {"name": "menu_call", "arguments": carried})
    with sse_pipe(house.normal) as one:
        about = {"protocolVersion": MODERN, "capabilities": FORM, "clientInfo": {"name": UNLISTED, "version": "1"}}
        assert one.request("initialize", about)["result"]["protocolVersion"] < MODERN
    assert spare.exists()
    assert len(json.loads(house.typed("approvals", "--json", "--all"))) == listed
