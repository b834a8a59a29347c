"""H4: does a client that answers for nobody shut the person out? `claude -p`, Codex, Copilot, Grok and Hermes do."""

import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import PATIENCE, served
from tests.clients.tuned import tuned
from tests.clients.typed import typed

DATA = ("--mode", "data", "--profile", "trusted")
DELETING: dict[str, Any] = {"name": "fs_delete", "arguments": {"path": "notes.md"}}
AUTOMATIC: dict[str, dict[str, Any]] = {
    "claude -p": {"action": "cancel"},
    "codex never": {"action": "decline"},
    "a form left empty": {"action": "accept", "content": {}},
}
ERROR = {"error": {"code": -32601, "message": "Method not found"}}


@pytest.fixture
def notes(workspace: Path) -> Path:
    path = workspace / "notes.md"
    path.write_text("keep me\n")
    return path


@contextmanager
def client(workspace: Path, home: Path, era: str, *run: str) -> Generator[Pipe]:
    with pipe(workspace, home, *DATA, run=run) as one:
        one.able = FORM
        one.hello("claude-code", era=era)
        yield one


def said(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


def waiting(workspace: Path, home: Path) -> list[dict[str, Any]]:
    return json.loads(typed(workspace, home, "approvals", "--json").out)


def left_open(workspace: Path, home: Path, answer: dict[str, Any]) -> str:
    """The id of the question that is still the person's to answer."""
    assert said(answer).startswith("Error APPROVAL_REQUIRED"), said(answer)
    assert answer["result"]["isError"]
    assert "the user declined" not in said(answer)
    (one,) = waiting(workspace, home)
    assert one["standing"] == "waits"
    assert f"`menugate approve {one['id']}`" in said(answer)
    return one["id"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("how", AUTOMATIC)
def test_an_automatic_answer_leaves_the_question_to_the_person(
    workspace: Path, home: Path, notes: Path, era: str, how: str
) -> None:
    with client(workspace, home, era) as one:
        id = left_open(workspace, home, question(one, DELETING).answer(AUTOMATIC[how]))
        # Made again it is the same question, and no second form for a client that answers by itself.
        again = one.request("tools/call", DELETING)
        assert left_open(workspace, home, again) == id
        assert notes.exists()
        assert typed(workspace, home, "approve", id).code == 0
        done = one.request("tools/call", DELETING)
        assert "Deleted" in said(done)
        assert not notes.exists()
        # The yes was for that one call.
        notes.write_text("again\n")
        assert question(one, DELETING).params["message"]
        assert notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_a_dialog_closed_late_leaves_it_open_too(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with client(workspace, home, era) as one:
        asked = question(one, DELETING)
        asked.read()
        id = left_open(workspace, home, asked.answer({"action": "cancel"}))
        # Who merely closed it may be asked once more, and by the same question.
        assert "Deleted" in said(question(one, DELETING).accept())
        assert not notes.exists()
        assert id in typed(workspace, home, "approvals", "--all").out


@pytest.mark.parametrize("era", ERAS)
def test_a_no_after_reading_is_a_no(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with client(workspace, home, era) as one:
        answer = question(one, DELETING).decline()
        assert said(answer).startswith("Error APPROVAL_DENIED")
        assert waiting(workspace, home) == []
        assert notes.exists()


def test_a_client_that_fails_or_keeps_silent_leaves_it_open(workspace: Path, home: Path, notes: Path) -> None:
    """There is no such answer in the newer era, where the call itself comes back with one."""
    with client(workspace, home, "legacy", *tuned(answer=0.3)) as one:
        id = left_open(workspace, home, question(one, DELETING).answer(ERROR))
        # Nor is it asked again and waited for.
        assert left_open(workspace, home, one.request("tools/call", DELETING)) == id
        one.call("complete", final_answer="next")
    with client(workspace, home, "legacy", *tuned(answer=0.3)) as one:
        number = one.send("tools/call", DELETING)
        late, before = one.until(number)
        assert [message["method"] for message in before if message.get("id") is not None] == ["elicitation/create"]
        assert said(late).startswith("Error APPROVAL_REQUIRED")
        # The one before went with its run.
        assert len(waiting(workspace, home)) == 1
        assert notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_over_http_as_well(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with served(workspace, home, *DATA) as here, raw(here, era=era, able=FORM, name="hermes") as one:
        id = left_open(workspace, home, question(one, DELETING).answer({"action": "decline"}))
        assert typed(workspace, home, "approve", id).code == 0
        assert "Deleted" in said(one.request("tools/call", DELETING))
        assert not notes.exists()


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_connection_that_ends_answers_nothing(workspace: Path, home: Path, notes: Path, transport: str) -> None:
    """Neither the client that hangs up nor the server that ends uses up a try: the next one asks by form again."""
    for _ in range(2):
        if transport == "stdio":
            with client(workspace, home, "legacy") as one:
                assert question(one, DELETING).params["message"]
                assert one.bye() == 0
        else:
            with served(workspace, home, *DATA) as here, raw(here, able=FORM, name="hermes") as other:
                assert question(other, DELETING).params["message"]
                assert here.process is not None
                here.process.terminate()
                here.process.wait(PATIENCE)
        assert [row["standing"] for row in waiting(workspace, home)] == ["waits"]
    with client(workspace, home, "legacy") as one:
        assert "Deleted" in said(question(one, DELETING).accept())
    assert not notes.exists()


@pytest.mark.parametrize(
    ("transport", "era"), [("stdio", "legacy"), ("stdio", MODERN), ("http", "legacy"), ("http", MODERN)]
)
def test_closing_a_dialog_counts_the_same_everywhere(
    workspace: Path, home: Path, notes: Path, transport: str, era: str
) -> None:
    """Three times; then the question is the terminal's."""
    with ExitStack() as opened:
        if transport == "stdio":
            one: Pipe | RawClient = opened.enter_context(client(workspace, home, era))
        else:
            here = opened.enter_context(served(workspace, home, *DATA))
            one = opened.enter_context(raw(here, era=era, able=FORM, name="hermes"))
        ids: set[str] = set()
        for _ in range(3):
            asked = question(one, DELETING)
            asked.read()
            ids.add(left_open(workspace, home, asked.answer({"action": "cancel"})))
        ids.add(left_open(workspace, home, one.request("tools/call", DELETING)))
        (id,) = ids
        assert typed(workspace, home, "approve", id).code == 0
        assert "Deleted" in said(one.request("tools/call", DELETING))
    assert not notes.exists()


def test_a_yes_at_the_terminal_is_not_undone_by_a_dialog_that_closes(workspace: Path, home: Path, notes: Path) -> None:
    with client(workspace, home, "legacy") as one:
        asked = question(one, DELETING)
        (open_one,) = waiting(workspace, home)
        assert typed(workspace, home, "approve", open_one["id"]).code == 0
        assert "Deleted" in said(asked.answer({"action": "cancel"}))
        assert not notes.exists()


def test_an_automatic_answer_is_on_record_as_one(workspace: Path, home: Path, notes: Path) -> None:
    with client(workspace, home, MODERN) as one:
        question(one, DELETING).answer({"action": "decline"})
    shown = typed(workspace, home, "audit", "tail", "--json", "-n", "50", "--kind", "answer").out
    (row,) = [json.loads(line) for line in shown.splitlines()]
    assert (row["answer"], row["way"]) == ("open", "client")
    assert "within a second" in row["reason"]
