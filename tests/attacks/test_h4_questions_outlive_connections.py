"""H4: does a question live as long as its run, also where the process or the connection that asked it is gone?"""

import json
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import served
from tests.clients.typed import typed

DATA = ("--mode", "data", "--profile", "trusted")
DELETING: dict[str, Any] = {"name": "fs_delete", "arguments": {"path": "notes.md"}}
TRANSPORTS = ("stdio", "http")


@pytest.fixture
def notes(workspace: Path) -> Path:
    path = workspace / "notes.md"
    path.write_text("keep me\n")
    return path


@contextmanager
def client(workspace: Path, home: Path, transport: str, era: str, **able: Any) -> Generator[Pipe | RawClient]:
    """A connection to a server of its own."""
    with ExitStack() as stack:
        if transport == "http":
            here = stack.enter_context(served(workspace, home, *DATA))
            yield stack.enter_context(raw(here, era=era, able=able))
        else:
            one = stack.enter_context(pipe(workspace, home, *DATA))
            one.able = able
            one.hello("some-client", era=era)
            yield one


def said(answer: dict[str, Any]) -> str:
    return answer.get("result", answer)["content"][0]["text"]


def waiting(workspace: Path, home: Path) -> list[str]:
    return [one["id"] for one in json.loads(typed(workspace, home, "approvals", "--json").out)]


def asks(one: Pipe | RawClient) -> str:
    answer = said(one.call("fs_delete", path="notes.md"))
    assert "APPROVAL_REQUIRED" in answer
    return answer


def left_unanswered(one: Pipe | RawClient) -> None:
    """Ask by the form, and go while it is shown."""
    if one.era == MODERN:
        question(one, DELETING)
        return
    stream: Any = one
    if isinstance(one, Pipe):
        one.send("tools/call", DELETING)
    else:
        _, stream = one.send("tools/call", DELETING)
    while stream.message().get("method") != "elicitation/create":
        pass


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_restarted_server_joins_the_open_question(
    workspace: Path, home: Path, notes: Path, transport: str, era: str
) -> None:
    with client(workspace, home, transport, era) as one:
        asks(one)
    (id,) = waiting(workspace, home)
    with client(workspace, home, transport, era) as one:
        assert id in asks(one)
    assert waiting(workspace, home) == [id]
    assert typed(workspace, home, "approve", id).code == 0
    with client(workspace, home, transport, era) as one:
        assert "Deleted" in said(one.call("fs_delete", path="notes.md"))
    assert not notes.exists()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_connection_that_ends_under_its_dialog_leaves_the_question(
    workspace: Path, home: Path, notes: Path, transport: str, era: str
) -> None:
    with client(workspace, home, transport, era, **FORM) as one:
        left_unanswered(one)
    (id,) = waiting(workspace, home)
    with client(workspace, home, transport, era, **FORM) as one:
        # Either door answers the same question, over the next connection too.
        if era == MODERN:
            assert "Deleted" in said(question(one, DELETING).accept())
        else:
            assert typed(workspace, home, "approve", id).code == 0
            assert "Deleted" in said(one.call("fs_delete", path="notes.md"))
    assert not notes.exists()
    assert waiting(workspace, home) == []
    assert len(json.loads(typed(workspace, home, "approvals", "--all", "--json").out)) == 1


@pytest.mark.parametrize("early", [False, True], ids=["asked", "approved"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_complete_ends_what_an_earlier_connection_asked(
    workspace: Path, home: Path, notes: Path, transport: str, era: str, early: bool
) -> None:
    with client(workspace, home, transport, era) as one:
        asks(one)
    (id,) = waiting(workspace, home)
    if early:
        assert typed(workspace, home, "approve", id).code == 0
    with client(workspace, home, transport, era) as one:
        assert not one.call("complete", final_answer="over").get("isError")
        assert waiting(workspace, home) == []
        assert "was completed" in typed(workspace, home, "approve", id).err
        assert id not in asks(one)
    assert notes.exists()


def test_complete_ends_what_a_killed_server_asked(workspace: Path, home: Path, notes: Path) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.hello()
        asks(one)
        one.process.send_signal(signal.SIGKILL)
        one.process.wait()
        with client(workspace, home, "stdio", "legacy") as other:
            assert len(waiting(workspace, home)) == 1
            assert not other.call("complete", final_answer="over")["isError"]
    assert waiting(workspace, home) == []
    assert notes.exists()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_complete_over_one_connection_leaves_what_another_still_asks(
    workspace: Path, home: Path, notes: Path, transport: str
) -> None:
    with ExitStack() as stack:
        if transport == "http":
            here = stack.enter_context(served(workspace, home, *DATA))
            mine, other = (stack.enter_context(raw(here)) for _ in range(2))
        else:
            mine, other = (stack.enter_context(client(workspace, home, transport, "legacy")) for _ in range(2))
        asks(mine)
        (id,) = waiting(workspace, home)
        assert not other.call("complete", final_answer="over").get("isError")
        assert waiting(workspace, home) == [id]
        assert not mine.call("complete", final_answer="over").get("isError")
        assert waiting(workspace, home) == []
    assert notes.exists()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_stop_ends_it_although_nobody_is_connected(
    workspace: Path, home: Path, notes: Path, transport: str, era: str
) -> None:
    with client(workspace, home, transport, era) as one:
        asks(one)
    assert len(waiting(workspace, home)) == 1
    assert typed(workspace, home, "stop").code == 0
    assert waiting(workspace, home) == []


@pytest.mark.parametrize("first", ["decline", "accept"])
def test_two_dialogs_of_one_question_get_one_answer(workspace: Path, home: Path, notes: Path, first: str) -> None:
    with (
        client(workspace, home, "stdio", "legacy", **FORM) as one,
        client(workspace, home, "stdio", "legacy", **FORM) as other,
    ):
        assert isinstance(other, Pipe)
        asked = question(one, DELETING)
        number = other.send("tools/call", DELETING)
        while (dialog := other.message()).get("method") != "elicitation/create":
            pass
        assert len(waiting(workspace, home)) == 1
        told = said(asked.decline() if first == "decline" else asked.accept())
        found, before = other.until(number)
        gone = [message["params"]["requestId"] for message in before if "cancelled" in message.get("method", "")]
        assert gone == [dialog["id"]]
        if first == "decline":
            assert all("declined it in the client" in answer for answer in (told, said(found)))
        # One of the two calls is the one that the approval lets through.
        else:
            assert sorted(text.startswith("Deleted") for text in (told, said(found))) == [False, True]
    assert notes.exists() == (first == "decline")
