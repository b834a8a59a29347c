"""Does what the user replies at a terminal reach the model that asked, once?"""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.person import typed
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import PATIENCE, served

REPLY = re.compile(r"`menugate messages reply (\S+) TEXT`")


def ask(one: Pipe) -> str:
    """The id under which the question was left, by a client that cannot ask its user."""
    found = REPLY.search(one.call("message_user", message="Red or blue?", block_on_user=True)["content"][0]["text"])
    assert found is not None
    return found[1]


def read(one: Pipe) -> str:
    return one.call("Read", file_path="src/main.py")["content"][0]["text"]


def until_replied(call: Callable[[], str]) -> str:
    """The first result with the reply. A server notices what was typed within half a second."""
    deadline = time.monotonic() + PATIENCE
    while "Blue" not in (answer := call()):
        assert time.monotonic() < deadline, "no result brought the reply"
    return answer


@pytest.mark.parametrize("era", ERAS)
def test_it_comes_with_the_next_result_of_the_session_that_asked(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home) as one, pipe(workspace, home) as other:
        for client in (one, other):
            client.hello("codex-mcp-client", era=era)
            client.call("menu_enter", mode="swe")
        id = ask(one)
        assert id in typed(workspace, home, "messages", "--keep")
        typed(workspace, home, "messages", "reply", id, "Blue,\nplease.")
        assert "answered already" in typed(workspace, home, "messages", "reply", id, "Red.", code=1)
        answer = until_replied(lambda: read(one))
        assert answer.endswith(f"[The user replied to your message {id}: Blue,\nplease.]")
        assert "Blue" not in read(one)
        assert "Blue" not in read(other)


def test_it_comes_to_the_principals_next_call_if_the_session_is_over(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("codex-mcp-client")
        one.call("menu_enter", mode="swe")
        id = ask(one)
        one.bye()
    typed(workspace, home, "messages", "reply", id, "Blue.")
    with pipe(workspace, home) as again:
        again.hello("codex-mcp-client")
        again.call("menu_enter", mode="swe")
        refused = again.call("Read", file_path="src/missing.py")
        assert "Blue." in refused["content"][0]["text"]
        assert "Blue." not in read(again)


def test_it_finds_a_client_whose_calls_share_no_connection(workspace: Path, home: Path) -> None:
    with served(workspace, home, "--mode", "swe") as here, raw(here, era=MODERN, name="codex-mcp-client") as one:
        answer = one.call("message_user", message="Red or blue?", block_on_user=True)["content"][0]["text"]
        found = REPLY.search(answer)
        assert found is not None
        typed(workspace, home, "messages", "reply", found[1], "Blue.")
        until_replied(lambda: one.call("Read", file_path="src/main.py")["content"][0]["text"])


def test_only_a_models_message_can_be_answered(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("codex-mcp-client")
        one.call("menu_list")
    assert "there is no message `abc`" in typed(workspace, home, "messages", "reply", "abc", "Yes.", code=1)
    assert "name the message" in typed(workspace, home, "messages", "reply", code=2)
