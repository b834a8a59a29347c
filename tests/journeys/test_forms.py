"""What becomes of a question in a form, whatever the client answers and whichever door is first? As
tests/tables/forms.yaml says, over every transport and in both eras."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN
from tests.clients.form import FORM, FormQuestion, question
from tests.clients.later import Later
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, served
from tests.clients.sse import sse_pipe
from tests.yaml_text import load_yaml

TABLE = load_yaml((Path(__file__).parents[1] / "tables" / "forms.yaml").read_text())
WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}", "sse legacy"]
CONTENT: dict[str, dict[str, str]] = {"empty": {}, "wrong": {"code": "0000", "answer": ""}}
Client = Pipe | RawClient


@dataclass
class Here:
    work: Path
    clock: Later
    home: Path
    served: Served
    numbers: Any

    def typed(self, *words: str) -> str:
        told = self.clock.typed(*words)
        assert told.code == 0, told.err
        return told.out

    @contextmanager
    def connect(self, way: str) -> Generator[Client]:
        transport, era = way.split()
        if transport == "http":
            with raw(self.served, name="claude-code", era=era, able=FORM) as one:
                yield one
            return
        opened = sse_pipe(self.served) if transport == "sse" else pipe(self.work, self.home, run=self.clock.serve())
        with opened as one:
            one.able = FORM
            one.hello("claude-code", era)
            yield one


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    folder = tmp_path_factory.mktemp("forms")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    clock = Later(folder / "hours", work, home)
    with served(work, home, run=clock.serve()) as running:
        one = Here(work, clock, home, running, count())
        one.typed("profile", "trusted")
        yield one


def said(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


# The three forms: how each is asked for, and what came of it.


@dataclass
class Deleting:
    """A call that needs approval, of a file of its own."""

    here: Here
    typed: str = "code"

    def __post_init__(self) -> None:
        self.file = self.here.work / f"{next(self.here.numbers)}.md"
        self.file.write_text("keep me\n")

    @property
    def call(self) -> dict[str, Any]:
        carried = {"tool": "fs_delete", "mode": "data", "arguments": {"path": self.file.name}}
        return {"name": "menu_call", "arguments": carried}

    def ask(self, one: Client) -> FormQuestion:
        return question(one, self.call)

    def row(self) -> dict[str, Any]:
        rows = json.loads(self.here.typed("approvals", "--json", "--all"))
        (found,) = [row for row in rows if f'"{self.file.name}"' in row["message"]]
        return found

    def comes(self, told: dict[str, Any]) -> str:
        standing = self.row()["standing"]
        assert self.file.exists() == (standing != "used")
        code = {"waits": "Error APPROVAL_REQUIRED", "no": "Error APPROVAL_DENIED", "used": "Deleted"}[standing]
        assert said(told).startswith(code), told
        return {"waits": "open", "no": "no", "used": "yes"}[standing]

    def answers_at_the_terminal(self, one: Client, _told: dict[str, Any]) -> None:
        self.here.typed("approve", self.row()["id"])
        assert self.file.exists()
        assert "Deleted" in said(one.request("tools/call", self.call))
        assert not self.file.exists()


@dataclass
class Raising:
    """A slash command that raises the profile."""

    here: Here
    typed: str = "code"

    def ask(self, one: Client) -> FormQuestion:
        return question(one, {"name": "permission-profile", "arguments": {"value": "unrestricted"}}, "prompts/get")

    def profile(self) -> str:
        return json.loads(self.here.typed("steer", "--json"))["posture"]["profile"]["value"]

    def comes(self, told: dict[str, Any]) -> str:
        raised = self.profile() == "unrestricted"
        text = told["result"]["messages"][0]["content"]["text"]
        if raised:
            self.here.typed("profile", "trusted")
            return "yes"
        if "Nothing was changed: the user declined." in text:
            return "no"
        assert "Nothing changes until the user confirms it at a terminal" in text
        return "open"

    def answers_at_the_terminal(self, _one: Client, told: dict[str, Any]) -> None:
        found = re.search(r"menugate steer --confirm (\w+)", told["result"]["messages"][0]["content"]["text"])
        assert found is not None
        self.here.typed("steer", "--confirm", found[1])
        assert self.profile() == "unrestricted"
        self.here.typed("profile", "trusted")


@dataclass
class Asking:
    """A question from a model."""

    here: Here
    typed: str = "answer"

    def ask(self, one: Client) -> FormQuestion:
        return question(one, {"name": "message_user", "arguments": {"message": "Which?", "block_on_user": True}})

    def comes(self, told: dict[str, Any]) -> str:
        got = told["result"]["structuredContent"]
        (row,) = [row for row in self.messages() if row["id"] == got["id"]]
        assert (got["answer"] is None) == (row["reply"] is None)
        return "open" if row["reply"] is None else "yes"

    def messages(self) -> list[dict[str, Any]]:
        return json.loads(self.here.typed("messages", "--all", "--keep", "--json"))

    def answers_at_the_terminal(self, _one: Client, told: dict[str, Any]) -> None:
        id = told["result"]["structuredContent"]["id"]
        assert "Replied." in self.here.typed("messages", "reply", id, "The second.")


FORMS = {"approval": Deleting, "profile": Raising, "message": Asking}


def reply(action: str, form: Any, asked: FormQuestion) -> dict[str, Any]:
    if action in ("cancel", "decline"):
        return {"action": action}
    return {"action": "accept", "content": CONTENT.get(action, {form.typed: asked.code or "The first."})}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", TABLE["answers"], ids=lambda row: "{form} {answer} {soon}".format(**row))
def test_an_answer_comes_to_what_the_table_says(here: Here, way: str, row: dict[str, Any]) -> None:
    form = FORMS[row["form"]](here)
    with here.connect(way) as one:
        asked = form.ask(one)
        if not row["soon"]:
            here.clock.pass_minutes(0.1)
        told = asked.answer(reply(row["answer"], form, asked))
        assert form.comes(told) == row["comes"]
        if row["comes"] == "open":
            form.answers_at_the_terminal(one, told)


CELLS = [
    pytest.param(way, row, id=f"{way}, {row['first']} before {row['second']}")
    for row in TABLE["doors"]
    for way in WAYS
    # In the legacy era the terminal's answer ends the call, and in the newer one no call waits.
    if (row["second"] == "waiting") == way.endswith("legacy") or row["second"] in ("approve", "deny")
]


@pytest.mark.parametrize(("way", "row"), CELLS)
def test_the_first_answer_counts_and_the_other_door_is_told(here: Here, way: str, row: dict[str, Any]) -> None:
    form = Deleting(here)
    with here.connect(way) as one:
        asked = form.ask(one)
        here.clock.pass_minutes(0.1)
        if row["second"] in ("approve", "deny"):
            told = asked.answer(reply(row["first"], form, asked))
            late = here.clock.typed(row["second"], form.row()["id"])
            assert late.code == row.get("code", 1)
            assert row["told"] in " ".join((late.out + late.err).split())
        else:
            here.typed(row["first"], form.row()["id"])
            told = asked.wait() if row["second"] == "waiting" else asked.answer(reply(row["second"], form, asked))
            assert row["told"] in said(told)
        assert form.comes(told) == row["comes"]
        if row["second"] == "waiting":
            # Whatever the client says to its form now, it is too late.
            for action in ("accept", "decline", "cancel"):
                asked.late(reply(action, form, asked))
        assert not one.call("think", content="so far")["isError"]
        assert form.comes(told) == row["comes"]
