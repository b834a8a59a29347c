"""H4: does the person's word reach the call it was given for, whichever way the call comes, and no other?"""

import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mcp_server.state.approval_questions import MAX_OPEN
from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import PATIENCE, served
from tests.clients.typed import Typed, typed

TRUSTED = ("--profile", "trusted")
DATA = ("--mode", "data", *TRUSTED)
DELETING: dict[str, Any] = {"name": "fs_delete", "arguments": {"path": "notes.md"}}
CARRIED: dict[str, Any] = {"tool": "fs_delete", "arguments": {"path": "notes.md"}, "mode": "data"}
Menugate = Callable[..., Typed]


@pytest.fixture
def notes(workspace: Path) -> Path:
    path = workspace / "notes.md"
    path.write_text("keep me\n")
    return path


@pytest.fixture
def menugate(workspace: Path, home: Path) -> Menugate:
    return lambda *words: typed(workspace, home, *words)


def said(answer: dict[str, Any]) -> str:
    return answer.get("result", answer)["content"][0]["text"]


def listed(menugate: Menugate, *words: str) -> list[dict[str, Any]]:
    return json.loads(menugate("approvals", "--json", *words).out)


def waiting(menugate: Menugate) -> str:
    """The id of the one question that waits."""
    (one,) = listed(menugate)
    return one["id"]


# One connection for each call.


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_yes_finds_the_call_over_the_next_connection(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, transport: str
) -> None:
    with ExitStack() as stack:
        here = stack.enter_context(served(workspace, home, *TRUSTED)) if transport == "http" else None

        def call() -> str:
            if here is not None:
                with raw(here) as one:
                    return said(one.call("menu_call", **CARRIED))
            with pipe(workspace, home, *TRUSTED) as one:
                one.hello()
                return said(one.call("menu_call", **CARRIED))

        assert "APPROVAL_REQUIRED" in call()
        id = waiting(menugate)
        # Asked by the next connection it is the same question.
        assert id in call()
        assert menugate("approve", id).code == 0
        assert "Deleted" in call()
        assert not notes.exists()
        notes.write_text("again\n")
        again = call()
        assert "APPROVAL_REQUIRED" in again
        assert id not in again
        assert menugate("deny", waiting(menugate), "--reason", "it is mine").code == 0
        assert "it is mine" in call()
        assert notes.exists()


def test_no_other_call_and_no_other_posture_uses_that_yes(
    workspace: Path, home: Path, notes: Path, menugate: Menugate
) -> None:
    other = workspace / "other.md"
    other.write_text("keep me\n")
    with pipe(workspace, home, *DATA) as one:
        one.hello()
        assert "APPROVAL_REQUIRED" in said(one.call("fs_delete", path="notes.md"))
    assert menugate("approve", waiting(menugate)).code == 0
    with pipe(workspace, home, *DATA) as one:
        one.hello()
        assert "APPROVAL_REQUIRED" in said(one.call("fs_delete", path="other.md"))
        handle = one.call("menu_enter", mode="data")["structuredContent"]["menu"]
        assert "APPROVAL_REQUIRED" in said(one.call("menu_call", menu=handle, **CARRIED))
    with pipe(workspace, home, "--mode", "data", "--profile", "unrestricted") as one:
        one.hello()
        assert "APPROVAL_REQUIRED" in said(one.call("fs_delete", path="notes.md"))
    assert notes.exists()
    assert other.exists()


def test_a_yes_through_a_handle_stays_with_it(workspace: Path, home: Path, notes: Path, menugate: Menugate) -> None:
    with pipe(workspace, home, *TRUSTED) as one:
        one.hello()
        mine = one.call("menu_enter", mode="data")["structuredContent"]["menu"]
        assert "APPROVAL_REQUIRED" in said(one.call("menu_call", menu=mine, **CARRIED))
    assert menugate("approve", waiting(menugate)).code == 0
    with pipe(workspace, home, *TRUSTED) as one:
        one.hello()
        assert "APPROVAL_REQUIRED" in said(one.call("menu_call", **CARRIED))
        assert notes.exists()
        assert "Deleted" in said(one.call("menu_call", menu=mine, **CARRIED))


# A call that waits on the host's dialog.


def shown(one: Pipe) -> tuple[int, int]:
    """The call that waits, and the dialog that nobody answers."""
    number = one.send("tools/call", DELETING)
    while (wanted := one.message()).get("method") != "elicitation/create":
        pass
    return number, wanted["id"]


@pytest.mark.parametrize("answer", ["approve", "deny"])
def test_an_answer_at_the_terminal_ends_the_waiting(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, answer: str
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello("cline")
        number, dialog = shown(one)
        id = waiting(menugate)
        assert menugate(answer, id).code == 0
        found, before = one.until(number)
        # What the host still shows is taken back.
        gone = [message["params"]["requestId"] for message in before if "cancelled" in message.get("method", "")]
        assert gone == [dialog]
        assert ("Deleted" if answer == "approve" else "APPROVAL_DENIED") in said(found)
        assert notes.exists() == (answer == "deny")
        # Whoever declines it now is late, and nobody says otherwise.
        late = {"jsonrpc": "2.0", "id": dialog, "result": {"action": "decline"}}
        one.raw(json.dumps(late).encode() + b"\n")
        assert not one.call("fs_list_directory", path=".")["isError"]
        (row,) = listed(menugate, "--all")
        assert row["standing"] == ("used" if answer == "approve" else "no")


def test_it_does_so_over_http(workspace: Path, home: Path, notes: Path, menugate: Menugate) -> None:
    with served(workspace, home, *DATA) as here, raw(here, able=FORM, name="cline") as one:
        number, stream = waits(one)
        assert menugate("approve", waiting(menugate)).code == 0
        assert "Deleted" in said(stream.until(number)[0])
        assert not notes.exists()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_end_of_the_server_takes_the_dialog_back(workspace: Path, home: Path, notes: Path, signum: int) -> None:
    """It waited for somebody to read that on a stream which was closed by then."""
    with served(workspace, home, *DATA) as here, raw(here, able=FORM, name="cline") as one:
        number, stream = waits(one)
        assert here.process is not None
        here.process.send_signal(signum)
        answer, before = stream.until(number)
        assert "notifications/cancelled" in before
        assert answer["result"]["isError"]
        assert here.process.wait(PATIENCE) == 0
        assert here.process.stdout is not None
        told = here.process.stdout.read()
        assert "gave up" not in told
        assert "running task" not in told
        assert notes.exists()


def waits(one: RawClient) -> tuple[int, Any]:
    number, stream = one.send("tools/call", DELETING)
    while stream.message().get("method") != "elicitation/create":
        pass
    return number, stream


def test_a_long_dialog_ends_with_the_posture_it_was_shown_under(
    workspace: Path, home: Path, notes: Path, menugate: Menugate
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello("cline")
        number, _ = shown(one)
        assert menugate("profile", "normal").code == 0
        assert said(one.until(number)[0]).startswith("Error APPROVAL_REQUIRED")
        assert notes.exists()


# Two answers to one question.


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("first", ["approve", "deny"])
def test_a_retry_is_told_what_was_answered_at_the_terminal(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, first: str, transport: str
) -> None:
    """The host's dialog says the opposite later, and changes nothing."""
    with ExitStack() as stack:
        if transport == "http":
            here = stack.enter_context(served(workspace, home, *DATA))
            one = stack.enter_context(raw(here, era=MODERN, able=FORM))
        else:
            one = stack.enter_context(pipe(workspace, home, *DATA))
            one.able = FORM
            one.hello(era=MODERN)
        asked = question(one, DELETING)
        assert menugate(first, waiting(menugate)).code == 0
        told = said(asked.decline() if first == "approve" else asked.accept())
    if first == "approve":
        assert told.startswith("Deleted")
        assert "approved this call at a terminal before the client declined it" in told
    else:
        assert told.startswith("Error APPROVAL_DENIED")
        assert "declined it at a terminal" in told
    assert notes.exists() == (first == "deny")
    tail = menugate("audit", "tail", "--json", "-n", "50", "--kind", "answer").out
    assert [json.loads(line)["way"] for line in tail.splitlines()] == ["person"]


@pytest.mark.parametrize("era", ERAS)
def test_the_terminal_is_told_what_the_dialog_answered(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, era: str
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello(era=era)
        asked = question(one, DELETING)
        id = waiting(menugate)
        assert "declined it in the client" in said(asked.decline())
        late = menugate("approve", id)
        assert late.code == 1
        assert "already declined in the client" in late.err
        assert "If the model makes the call again, you are asked again" in late.err
        # The next time it is a question again.
        assert "Deleted" in said(question(one, DELETING).accept())
        assert not notes.exists()


@pytest.mark.parametrize("dialog", ["open", "none"])
def test_the_terminal_takes_back_an_approval_that_was_not_used(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, dialog: str
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM if dialog == "open" else {}
        one.hello(era=MODERN)
        asked = question(one, DELETING) if dialog == "open" else None
        refused = "" if asked else said(one.call("fs_delete", path="notes.md"))
        assert ("APPROVAL_REQUIRED" in refused) == (asked is None)
        id = waiting(menugate)
        assert menugate("approve", id).code == 0
        assert menugate("deny", id, "--reason", "it is mine").code == 0
        told = said(asked.accept() if asked else one.call("fs_delete", path="notes.md"))
        assert "it is mine" in told
        assert notes.exists()


def test_a_later_automatic_answer_takes_nothing_back(
    workspace: Path, home: Path, notes: Path, menugate: Menugate
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello(era=MODERN)
        asked = question(one, DELETING)
        assert menugate("approve", waiting(menugate)).code == 0
        asked.read()
        assert "Deleted" in said(asked.answer({"action": "cancel"}))
        assert not notes.exists()


# Questions that nothing can come of.


@pytest.mark.parametrize("early", [False, True], ids=["asked", "approved"])
@pytest.mark.parametrize("what", ["mode", "profile", "complete", "stop"])
def test_what_opens_nothing_any_more_is_not_offered(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, what: str, early: bool
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.hello()
        assert "APPROVAL_REQUIRED" in said(one.call("fs_delete", path="notes.md"))
        id = waiting(menugate)
        if early:
            assert menugate("approve", id).code == 0
        changes: dict[str, tuple[str, ...]] = {
            "mode": ("mode", "plan"),
            "profile": ("profile", "normal"),
            "stop": ("stop",),
        }
        if what == "complete":
            assert not one.call("complete", final_answer="over")["isError"]
        else:
            assert menugate(*changes[what]).code == 0
        assert listed(menugate) == []
        assert [row["standing"] for row in listed(menugate, "--all")] == ["void"]
        assert id not in menugate("status").out
        late = menugate("approve", id)
        why = {"complete": "was completed", "stop": "was stopped"}.get(what, "the posture was changed")
        assert late.code == 1
        assert "is no longer valid" in late.err
        assert why in late.err
        assert "you are asked again" in late.err
        assert menugate("deny", id).code == 1
        if what == "stop":
            assert menugate("next").code == 0
        assert one.call("fs_delete", path="notes.md")["isError"]
        assert notes.exists()


def test_stop_says_that_it_ended_a_call_that_waited(
    workspace: Path, home: Path, notes: Path, menugate: Menugate
) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello("cline")
        number, _ = shown(one)
        id = waiting(menugate)
        stopped = menugate("stop")
        assert stopped.code == 0
        assert "`fs_delete` `notes.md` (waiting for your answer" in stopped.out
        assert "Nothing was running" not in stopped.out
        assert said(one.until(number)[0]).startswith("Error CANCELLED")
        assert listed(menugate) == []
        assert menugate("approve", id).code == 1
        assert notes.exists()


# Agents that share a connection.


@pytest.mark.parametrize("early", [False, True], ids=["asked", "approved"])
def test_what_one_handle_asked_outlives_what_another_completes(
    workspace: Path, home: Path, notes: Path, menugate: Menugate, early: bool
) -> None:
    with pipe(workspace, home, *TRUSTED) as one:
        one.hello()
        mine = one.call("menu_enter", mode="data")["structuredContent"]["menu"]
        other = one.call("menu_enter", mode="git")["structuredContent"]["menu"]
        deleting = {"tool": "fs_delete", "arguments": {"path": "notes.md"}, "menu": mine}
        assert "APPROVAL_REQUIRED" in said(one.call("menu_call", **deleting))
        id = waiting(menugate)
        if early:
            assert menugate("approve", id).code == 0
        assert not one.call("complete", final_answer="over", menu=other)["isError"]
        if not early:
            assert menugate("approve", id).code == 0
        assert "Deleted" in said(one.call("menu_call", **deleting))
        notes.write_text("again\n")
        assert "APPROVAL_REQUIRED" in said(one.call("menu_call", **deleting))
        assert menugate("approve", waiting(menugate)).code == 0
        assert not one.call("complete", final_answer="over", menu=mine)["isError"]
        assert one.call("menu_call", **deleting)["isError"]
        assert notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_blanks_among_the_characters_make_no_difference(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello(era=era)
        asked = question(one, DELETING)
        assert "Deleted" in said(asked.accept(code=f" {asked.code[:2].lower()} {asked.code[2:]} "))
        assert not notes.exists()


def test_no_flood_takes_an_open_question_away(workspace: Path, home: Path, menugate: Menugate) -> None:
    """600 calls later, the first question was gone while the person looked at it."""

    def asks(command: str) -> str:
        answer = said(one.call("bash", command=command))
        assert answer.startswith("Error APPROVAL_REQUIRED"), answer
        return answer.partition("menugate approve ")[2].partition("`")[0]

    (workspace / "notes.md").write_text("keep me\n")
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        first = asks("rm notes.md")
        for number in range(MAX_OPEN - 1):
            asks(f"rm -f {number}")
        refused = said(one.call("bash", command="rm -f more"))
        assert "too many questions to the user are open. Nothing ran." in refused
        assert "`menugate approvals`" in refused
        assert len(listed(menugate, "--all")) == MAX_OPEN
        assert asks("rm notes.md") == first, "it joins its question"
        assert menugate("approve", first).code == 0
        one.call("bash", command="rm notes.md")
        assert not (workspace / "notes.md").exists()
        assert asks("rm -f more")
