"""Does what you reply at a terminal reach the model that asked, at once where it waits, and nobody else?"""

import json
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import ROOT, served
from tests.clients.sse import sse_pipe
from tests.clients.tokens import hire
from tests.clients.typed import Typed, typed
from tests.clients.waiting import wait_until

ASK: dict[str, Any] = {"name": "message_user", "arguments": {"message": "Which one?", "block_on_user": True}}
Menugate = Callable[..., Typed]


@pytest.fixture
def menugate(workspace: Path, home: Path) -> Menugate:
    return lambda *words: typed(workspace, home, *words)


@contextmanager
def connected(workspace: Path, home: Path, way: str, able: Any = FORM) -> Generator[Pipe | RawClient]:
    transport, era = way.split()
    if transport == "stdio":
        with pipe(workspace, home) as one:
            one.able = able
            one.hello("some-client", era)
            yield one
        return
    with served(workspace, home) as here:
        if transport == "http":
            with raw(here, era=era, able=able, name="some-client") as one:
                yield one
        else:
            with sse_pipe(here) as one:
                one.able = able
                one.hello("some-client")
                yield one


def said(answer: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer.get("result", answer)["content"])


def brought(one: Pipe | RawClient, id: str, **more: str) -> str:
    """The first result with the reply. A server notices what was typed at a terminal within half a second."""
    answers: list[str] = []
    wait_until(lambda: answers.append(said(one.call("think", content="so far", **more))) or id in answers[-1])
    return answers[-1]


def messages(menugate: Menugate) -> list[dict[str, Any]]:
    return json.loads(menugate("messages", "--all", "--keep", "--json").out)


def reply(menugate: Menugate, id: str, text: str = "The second.") -> None:
    told = menugate("messages", "reply", id, text)
    assert told.code == 0, told.err
    assert told.out.startswith("Replied.")


# A client that can ask, and waits.


@pytest.mark.parametrize("way", ["stdio legacy", "http legacy", "sse legacy"])
def test_the_end_of_the_run_ends_the_waiting(workspace: Path, home: Path, menugate: Menugate, way: str) -> None:
    with connected(workspace, home, way) as one:
        one.call("menu_list")
        asked = question(one, ASK)
        if isinstance(one, RawClient):
            assert not one.call("complete", final_answer="done")["isError"]
        else:
            # On one stream, what waits may end before this.
            one.send("tools/call", {"name": "complete", "arguments": {"final_answer": "done"}})
        told = asked.wait()
        assert said(told).startswith("The run was completed before the user answered. The message is kept as ")
        id = told["result"]["structuredContent"]["id"]
        reply(menugate, id)
        assert "The second." in brought(one, id)


@pytest.mark.parametrize("way", ["stdio legacy", "http legacy", "sse legacy"])
def test_a_reply_ends_the_waiting_and_takes_the_form_back(
    workspace: Path, home: Path, menugate: Menugate, way: str
) -> None:
    with connected(workspace, home, way) as one:
        if isinstance(one, RawClient):
            number, stream = one.send("tools/call", ASK)
        else:
            number, stream = one.send("tools/call", ASK), one
        while (form := stream.message()).get("method") != "elicitation/create":
            pass
        (left,) = messages(menugate)
        assert left["asks"]
        reply(menugate, left["id"])
        before: list[dict[str, Any]] = []
        while (message := stream.message()).get("id") != number:
            before.append(message)
        gone = [one["params"]["requestId"] for one in before if one["method"] == "notifications/cancelled"]
        assert gone == [form["id"]]
        result = message["result"]
        assert said(result) == "Asked the user, who answered: The second."
        assert result["structuredContent"] == {"delivered": "asked", "answer": "The second.", "id": left["id"]}
        # An answer in the form that comes now changes nothing.
        late = {"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"answer": "The first."}}}
        if isinstance(one, RawClient):
            one.post(late).close()
        else:
            one.raw(json.dumps(late).encode() + b"\n")
        assert "reply" not in said(one.call("think", content="so far"))
    (kept,) = messages(menugate)
    assert (kept["reply"]["text"], kept["read"]) == ("The second.", True)


@pytest.mark.parametrize("way", [f"stdio {MODERN}", f"http {MODERN}"])
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_the_call_made_again_gets_the_reply(
    workspace: Path, home: Path, menugate: Menugate, way: str, action: str
) -> None:
    with connected(workspace, home, way) as one:
        asked = one.request("tools/call", ASK)["result"]
        assert asked["resultType"] == "input_required"
        (left,) = messages(menugate)
        reply(menugate, left["id"])
        # Whatever the form says by now, the first answer is the one that counts.
        content = {"content": {"answer": "The first."}} if action == "accept" else {}
        given = {"inputResponses": {"message": {"action": action, **content}}, "requestState": asked["requestState"]}
        result = one.request("tools/call", ASK | given)["result"]
        assert said(result) == "Asked the user, who answered: The second."
        assert result["structuredContent"]["id"] == left["id"]
        assert "The second" not in said(one.call("think", content="so far"))
    (kept,) = messages(menugate)
    assert kept["reply"]["text"] == "The second."


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", [["x"], 5, True, {"text": "x"}], ids=str)
def test_an_answer_that_is_no_text_does_not_reach_the_model(
    workspace: Path, home: Path, menugate: Menugate, era: str, answer: Any
) -> None:
    with connected(workspace, home, f"stdio {era}") as one:
        asked = question(one, ASK)
        asked.read()
        told = asked.answer({"action": "accept", "content": {"answer": answer}})
        assert told["result"]["structuredContent"]["answer"] is None
        if not isinstance(answer, dict):
            assert said(told).startswith("The client was asked and sent something that is no text.")
    (kept,) = messages(menugate)
    assert kept["reply"] is None


@pytest.mark.parametrize("era", ERAS)
def test_what_was_answered_in_the_form_is_not_answered_again(
    workspace: Path, home: Path, menugate: Menugate, era: str
) -> None:
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("some-client", era)
        asked = question(one, ASK)
        asked.read()
        result = asked.answer({"action": "accept", "content": {"answer": "The first."}})["result"]
        assert said(result) == "Asked the user, who answered: The first."
        late = menugate("messages", "reply", result["structuredContent"]["id"], "The second.")
        assert late.code == 1
        assert "has already been answered" in late.err
    (kept,) = messages(menugate)
    assert kept["reply"]["text"] == "The first."


# A client that cannot ask.


@pytest.mark.parametrize("way", ["stdio legacy", f"stdio {MODERN}", f"http {MODERN}", "sse legacy"])
def test_who_cannot_be_asked_is_told_the_id_and_the_command(
    workspace: Path, home: Path, menugate: Menugate, way: str
) -> None:
    with connected(workspace, home, way, able={}) as one:
        result = one.call("message_user", message="Which one?", block_on_user=True)
        (left,) = messages(menugate)
        id = left["id"]
        assert result["structuredContent"] == {"delivered": "outbox", "id": id}
        assert f"Left in the user's messages as {id};" in said(result)
        assert f"`menugate messages reply {id} TEXT`" in said(result)
        # The terminal names the same id and the same command.
        shown = menugate("messages", "--keep").out
        assert shown.startswith(id)
        assert f"`menugate messages reply {id} TEXT`" in " ".join(shown.split())
        reply(menugate, id)
        again = menugate("messages", "reply", id, "No, the first.")
        assert again.code == 1
        assert f"`{id}` has already been answered" in again.err
    (kept,) = messages(menugate)
    assert (kept["id"], kept["reply"]["text"]) == (id, "The second.")
    assert "The second." in menugate("messages", "--all").out


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("reply",), 2, "name the message"),
        (("reply", "ID"), 2, "name the message"),
        (("reply", "ID", " \n"), 2, "name the message"),
        (("reply", "nothing-1", "x"), 1, "there is no message"),
        (("reply", "ID; DROP TABLE messages", "x"), 1, "there is no message"),
    ],
    ids=str,
)
def test_a_reply_that_says_nothing_or_meets_nothing_is_refused(
    workspace: Path, home: Path, menugate: Menugate, words: tuple[str, ...], code: int, why: str
) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        id = one.call("message_user", message="Which one?", block_on_user=True)["structuredContent"]["id"]
    told = menugate("messages", *(word.replace("ID", id) for word in words))
    assert told.code == code
    assert why in told.err
    assert [message["reply"] for message in messages(menugate)] == [None]


# Who may not reply.


OURS = f"PYTHONPATH={ROOT} {sys.executable} -W ignore"
LINES = {
    "our command": "menugate messages reply {id} yes",
    "our module": "python -m mcp_server messages reply {id} yes",
    "a program of Python": '{ours} -c "from mcp_server.cli.main import main; raise SystemExit(main({words}))"',
    "a name that is computed": "x=mcp; {ours} -m ${{x}}_server {line}",
    "without the mark": "x=mcp; env -u MENUGATE_STARTED_BY {ours} -m ${{x}}_server {line}",
}


@pytest.mark.parametrize("line", LINES)
def test_no_program_of_a_server_replies(workspace: Path, home: Path, menugate: Menugate, line: str) -> None:
    with pipe(workspace, home, "--profile", "unrestricted") as one:
        one.hello("mcp")
        id = one.call("message_user", message="May I?", block_on_user=True)["structuredContent"]["id"]
        words = ["messages", "reply", id, "yes", "--workspace", str(workspace)]
        ours = LINES[line].format(id=id, ours=OURS, words=repr(words).replace('"', '\\"'), line=shlex.join(words))
        told = said(one.call("menu_call", tool="bash", arguments={"command": ours}, mode="swe"))
        assert "BLOCKED" in told or "cannot act for you" in told, told
        assert "Replied" not in told
        left = {message["id"]: message for message in messages(menugate)}
        assert left.pop(id)["reply"] is None
        # You are told of the attempt, and no model is waiting for an answer to that message.
        for other in left:
            refused = menugate("messages", "reply", other, "yes")
            assert refused.code == 1
            assert "no model is waiting for an answer" in refused.err


# A reply that comes when nothing waits: with the next result of that session.


@pytest.mark.parametrize("way", ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}", "sse legacy"])
def test_the_next_result_brings_the_reply_once(workspace: Path, home: Path, menugate: Menugate, way: str) -> None:
    with connected(workspace, home, way, able={}) as one:
        id = one.call("message_user", message="Which one?", block_on_user=True)["structuredContent"]["id"]
        assert id not in said(one.call("think", content="so far"))
        reply(menugate, id)
        assert f"The user replied to your message {id}: The second." in brought(one, id)
        assert "The second." not in said(one.call("think", content="so far"))


@pytest.mark.parametrize("action", ["cancel", "decline"])
def test_a_form_that_was_closed_leaves_the_reply_for_later(
    workspace: Path, home: Path, menugate: Menugate, action: str
) -> None:
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("some-client", MODERN)
        asked = one.request("tools/call", ASK)["result"]
        given = {"inputResponses": {"message": {"action": action}}, "requestState": asked["requestState"]}
        closed = one.request("tools/call", ASK | given)["result"]
        id = closed["structuredContent"]["id"]
        assert id in said(closed)
        reply(menugate, id)
        assert f"{id}: The second." in brought(one, id)


def test_an_error_brings_it_as_well(workspace: Path, home: Path, menugate: Menugate) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        id = one.call("message_user", message="Which one?", block_on_user=True)["structuredContent"]["id"]
        reply(menugate, id)
        missing = {"tool": "Read", "arguments": {"file_path": "missing.md"}, "mode": "swe"}
        answers: list[dict[str, Any]] = []
        wait_until(lambda: answers.append(one.call("menu_call", **missing)) or id in said(answers[-1]))
        assert answers[-1]["isError"]
        assert f"{id}: The second." in said(answers[-1])


def test_the_next_session_gets_it_if_that_one_is_over(workspace: Path, home: Path, menugate: Menugate) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        id = one.call("message_user", message="Which one?", block_on_user=True)["structuredContent"]["id"]
        assert one.bye() == 0
    reply(menugate, id)
    with pipe(workspace, home) as one:
        one.hello()
        assert f"{id}: The second." in brought(one, id)
    with pipe(workspace, home) as one:
        one.hello()
        assert id not in said(one.call("think", content="so far"))


def running(workspace: Path) -> str:
    """What the servers of this folder have noted about their clients."""
    return "".join(one.read_text() for one in (workspace / ".menugate").rglob("*.runs"))


@pytest.mark.parametrize("era", ERAS)
def test_a_call_with_the_handle_brings_it_over_any_connection(
    workspace: Path, home: Path, menugate: Menugate, era: str
) -> None:
    with served(workspace, home) as here:
        with raw(here, era=era, name="some-client") as one:
            menu = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
            told = one.call("message_user", message="Which one?", block_on_user=True, menu=menu)
        id = told["structuredContent"]["id"]
        reply(menugate, id)
        with raw(here, era=era, name="some-client") as again:
            assert f"{id}: The second." in brought(again, id, menu=menu)
            assert id not in said(again.call("think", content="so far", menu=menu))


def test_a_reply_waits_for_the_handle_and_no_other_call_takes_it(
    workspace: Path, home: Path, menugate: Menugate
) -> None:
    """Where calls share no connection, the handle is the session."""
    with served(workspace, home) as here, raw(here, era=MODERN, name="some-client") as one:
        first, second = (one.call("menu_enter", mode=mode)["structuredContent"]["menu"] for mode in ("swe", "git"))
        told = one.call("message_user", message="Which one?", block_on_user=True, menu=first)
        id = told["structuredContent"]["id"]
        reply(menugate, id)
        # A message left later has its reply delivered, so the server knows of the first one as well.
        probe = one.call("message_user", message="Ready?", block_on_user=True)["structuredContent"]["id"]
        reply(menugate, probe)
        assert id not in brought(one, probe)
        for other in ({}, {"menu": second}):
            assert id not in said(one.call("think", content="so far", **other))
    # Another server of the same workspace finds the session by its handle.
    with served(workspace, home) as here, raw(here, era=MODERN, name="some-client") as again:
        assert id not in said(again.call("think", content="so far", menu=second))
        assert f"{id}: The second." in brought(again, id, menu=first)
        assert id not in said(again.call("think", content="so far", menu=first))


def test_nobody_else_gets_it(workspace: Path, home: Path, menugate: Menugate) -> None:
    alice, bob = hire(home, alice="normal", bob="normal")
    with (
        served(workspace, home) as here,
        raw(here, token=alice, name="some-client") as hers,
        raw(here, token=alice, name="some-client") as hers_too,
        raw(here, token=bob, name="some-client") as his,
    ):
        for other in (his, hers_too):
            other.call("think", content="so far")
        id = hers.call("message_user", message="Which one?", block_on_user=True)["structuredContent"]["id"]
        (left,) = messages(menugate)
        assert (left["id"], left["principal"]) == (id, "alice")
        wait_until(lambda: left["session"] in running(workspace))
        reply(menugate, id)
        assert id not in said(his.call("think", content="so far"))
        assert id not in said(hers_too.call("think", content="so far"))
        assert f"{id}: The second." in brought(hers, id)


def test_each_agent_on_a_connection_gets_its_own(workspace: Path, home: Path, menugate: Menugate) -> None:
    with connected(workspace, home, "stdio legacy", able={}) as one:
        first, second = (one.call("menu_enter", mode=mode)["structuredContent"]["menu"] for mode in ("swe", "git"))
        told = one.call("message_user", message="Which one?", block_on_user=True, menu=first)
        id = told["structuredContent"]["id"]
        (left,) = messages(menugate)
        wait_until(lambda: left["session"] in running(workspace))
        reply(menugate, id)
        assert id not in said(one.call("think", content="so far", menu=second))
        assert f"{id}: The second." in brought(one, id, menu=first)
