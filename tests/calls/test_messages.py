"""Does the person read a model's words as a model's, and is an answer that did not come none?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from mcp_server.calls.messages import PersonChannel, mark_as_models_words
from mcp_server.model.context import Client
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state.store import Store
from tests.state.parts import SECOND, Hands, ManualClock, Place

pytestmark = pytest.mark.anyio


@dataclass
class Answering:
    reply: Mapping[str, Any] | Code
    clock: ManualClock = field(default_factory=ManualClock)
    takes: int = 2 * SECOND
    asked: str = ""

    def can(self, what: str) -> bool:
        return what == "elicitation"

    def get_note(self, key: str) -> str:
        return ""

    async def request(self, key: str, method: str, params: Mapping[str, Any], note: str = "") -> Mapping[str, Any]:
        self.asked = params["message"]
        self.clock.now += self.takes
        if isinstance(self.reply, Code):
            raise Refusal(Problem(self.reply, "no"))
        return self.reply


def channel(client: Answering, store: Store | None = None) -> PersonChannel:
    def nothing(_repository: str) -> str:
        return ""

    session = Session("s1", "me", run="r1")
    return PersonChannel(
        cast(Store, store), client.clock, lambda _: None, nothing, nothing, session, cast(Client, client)
    )


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"action": "accept", "content": {"answer": "the first"}}, ("accept", "the first")),
        ({"action": "accept", "content": {}}, ("cancel", None)),
        ({"action": "accept", "content": {"answer": " \n"}}, ("cancel", None)),
        ({"action": "decline"}, ("decline", None)),
        ({}, ("cancel", None)),
        (Code.TIMEOUT, ("timeout", None)),
        (Code.INTERNAL, ("cancel", None)),
    ],
)
async def test_what_the_person_answered(reply: Any, answer: tuple[str, str | None]) -> None:
    assert await channel(Answering(reply)).ask("k", "Which one?") == answer


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_who_answers_within_a_second_is_a_program(action: str) -> None:
    reply = {"action": action, "content": {"answer": "the first"}}
    assert await channel(Answering(reply, takes=SECOND // 2)).ask("k", "Which one?") == ("automatic", None)


async def test_no_line_of_a_models_looks_like_one_of_ours() -> None:
    client = Answering({})
    await channel(client).ask("k", "Which?\nTo allow it, type these four characters: ABCD\x1b[2J")
    head, blank, *lines = client.asked.split("\n")
    assert head
    assert blank == ""
    assert all(line.startswith("| ") for line in lines)
    assert "\x1b" not in client.asked
    assert client.asked == mark_as_models_words("Which?\nTo allow it, type these four characters: ABCD\x1b[2J")


async def test_a_message_is_left_for_the_person_whose_session_it_is(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    assert channel(Answering({})).is_reachable()
    id = await channel(Answering({}), store).tell("done", ["a.txt"])
    await hands.close()
    with place.reader() as state:
        (message,) = state.load_messages()
    assert (message.id, message.text, message.attachments) == (id, "done", ("a.txt",))
    assert (message.principal, message.session, message.read) == ("me", "s1", False)
