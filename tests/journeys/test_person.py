"""Does a message reach the person, and does the model hear which way it went? Through the client, or by the outbox."""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import ElicitRequestParams, ElicitResult

from mcp_server.calls.messages import mark_as_models_words
from tests.clients import warm
from tests.clients.clients import ERAS, MODERN, Held, held, over_http, over_sse, over_stdio, structured, text
from tests.clients.later import Later
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import Served, command, environment, served

pytestmark = pytest.mark.anyio
NOTHING: dict[str, Any] = {}
FORM: dict[str, Any] = {"elicitation": {"form": {}}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("person")
    for name in ("work", "home"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def clock(place: Path) -> Later:
    return Later(place / "hours", place / "work", place / "home")


@pytest.fixture(scope="module")
def here(place: Path, clock: Later) -> Generator[Served]:
    with served(place / "work", place / "home", run=clock.serve(answer=0.2)) as one:
        yield one


def outbox(workspace: Path, home: Path) -> dict[str, dict[str, Any]]:
    """What `menugate messages` shows the person, by id."""
    shown = warm.run(
        command("messages", "--all", "--keep", "--json", "--workspace", str(workspace)), environment(home), check=True
    )
    return {one["id"]: one for one in json.loads(shown.stdout)}


@asynccontextmanager
async def through(way: str, place: Path, here: Served, clock: Later, **callbacks: Any) -> AsyncGenerator[Held]:
    transport, era = way.split(" ")
    target = {
        "stdio": lambda: over_tuned_stdio(place, clock),
        "http": lambda: over_http(here),
        "sse": lambda: over_sse(here),
    }[transport]()
    async with held(target, era, **callbacks) as one:
        yield one


WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}", "sse legacy"]


@pytest.mark.parametrize("way", WAYS)
async def test_the_person_is_asked_and_the_answer_comes_back(place: Path, here: Served, clock: Later, way: str) -> None:
    asked: list[str] = []

    async def person(_ctx: Any, params: ElicitRequestParams) -> ElicitResult:
        clock.pass_minutes(0.1)
        asked.append(params.message)
        action, content = replies.pop(0)
        return ElicitResult(action=action, content=content)

    replies: list[Any] = [("accept", {"answer": "the blue one"}), ("decline", None), ("cancel", None), ("accept", {})]
    async with through(way, place, here, clock, elicitation_callback=person) as one:
        accepted = await one.call("message_user", message="Which?", block_on_user=True, attachments=["notes.md"])
        assert text(accepted) == "Asked the user, who answered: the blue one"
        assert structured(accepted)["answer"] == "the blue one"
        assert asked == [mark_as_models_words("Which?\n\nAttached: notes.md")]
        files = ["a.md", "b.md"]
        declined = await one.call("message_user", message=f"Or this, {way}?", block_on_user=True, attachments=files)
        assert "declined to answer" in text(declined)
        closed = await one.call("message_user", message="Or that?", block_on_user=True)
        assert "closed the question" in text(closed)
        silent = await one.call("message_user", message="Well?", block_on_user=True)
        assert "without an answer" in text(silent)
        # Nobody is asked who was not to be, however able the client is.
        told = await one.call("message_user", message="Done so far.")
        assert structured(told)["delivered"] == "outbox"
    assert len(asked) == 4
    kept = outbox(place / "work", place / "home")
    for result, message in [
        (accepted, "Which?"),
        (declined, f"Or this, {way}?"),
        (closed, "Or that?"),
        (told, "Done so far."),
    ]:
        left = kept[structured(result)["id"]]
        attached = {id(declined): files, id(accepted): ["notes.md"]}.get(id(result), [])
        assert result is accepted or left["id"] in text(result)
        assert (left["text"], left["attachments"]) == (message, attached)
    # What was answered is not new any more.
    results = (accepted, declined, closed, silent, told)
    left = [kept[structured(result)["id"]] for result in results]
    assert [(one["read"], one["reply"] and one["reply"]["text"]) for one in left] == [
        (True, "the blue one"),
        (False, None),
        (False, None),
        (False, None),
        (False, None),
    ]


@pytest.mark.parametrize("way", ["stdio legacy", "http legacy"])
async def test_who_does_not_answer_in_time_finds_the_message_later(
    place: Path, way: str, here: Served, clock: Later
) -> None:
    async def nobody(_ctx: Any, _params: ElicitRequestParams) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError("nobody wakes it")

    target = over_http(here) if way.startswith("http") else over_tuned_stdio(place, clock)
    async with held(target, "legacy", elicitation_callback=nobody) as one:
        late = await one.call("message_user", message="Still there?", block_on_user=True)
        assert "did not answer in time" in text(late)
        assert not late.is_error
        assert outbox(place / "work", place / "home")[structured(late)["id"]]["text"] == "Still there?"


def over_tuned_stdio(place: Path, clock: Later) -> Any:
    one = over_stdio(place / "work", place / "home")
    flags = [*clock.serve(answer=0.2)[1:], "--workspace", str(place / "work")]
    return one.model_copy(update={"args": flags})


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_cannot_ask_leaves_the_message_and_says_so(
    place: Path, here: Served, clock: Later, way: str
) -> None:
    async with through(way, place, here, clock) as one:
        told = await one.call("message_user", message="Which one?", block_on_user=True, attachments=["notes.md"])
        assert structured(told)["delivered"] == "outbox"
        assert "This call did not wait" in text(told)
        assert "`menugate messages`" in text(told)
        empty = await one.call("message_user", message=" \n")
        assert text(empty).startswith("Error INVALID_ARGUMENTS")
    left = outbox(place / "work", place / "home")[structured(told)["id"]]
    assert (left["text"], left["attachments"]) == ("Which one?", ["notes.md"])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("able", "asks"),
    [(NOTHING, False), ({"elicitation": {}}, True), (FORM, True), ({"elicitation": {"url": {}}}, False)],
)
def test_only_a_client_that_can_show_a_form_is_asked(here: Served, era: str, able: dict[str, Any], asks: bool) -> None:
    with raw(here, era=era, able=able) as one:
        number, stream = one.send("tools/call", ASK)
        first = stream.message()
        asked = first.get("method") == "elicitation/create" or "inputRequests" in first.get("result", {})
        assert asked is asks
        if asked and era != MODERN:
            refusal = {"code": -1, "message": "no"}
            one.post({"jsonrpc": "2.0", "id": first["id"], "error": refusal}).close()
            # A client that says no is no person who says yes.
            answer, _ = stream.until(number)
            assert answer["result"]["structuredContent"]["answer"] is None


# What a modern question carries back and forth.

ASK: dict[str, Any] = {"name": "message_user", "arguments": {"message": "Which?", "block_on_user": True}}
ACCEPTED = {"message": {"action": "accept", "content": {"answer": "this"}}}


def question(one: Any, clock: Later) -> str:
    """Ask, and let the person read."""
    result = one.request("tools/call", ASK)["result"]
    assert result["resultType"] == "input_required"
    asked = result["inputRequests"]["message"]
    assert asked["method"] == "elicitation/create"
    assert asked["params"]["message"] == mark_as_models_words("Which?")
    assert asked["params"]["requestedSchema"]["required"] == ["answer"]
    state = result["requestState"]
    # Sealed: whoever carries it cannot read it.
    assert "answered" not in state
    clock.pass_minutes(0.1)
    return state


def test_the_sealed_state_leads_back_to_its_own_call_alone(here: Served, clock: Later) -> None:
    with raw(here, era=MODERN, able=FORM) as one:
        state = question(one, clock)
        answered = one.request("tools/call", ASK | {"inputResponses": ACCEPTED, "requestState": state})
        assert answered["result"]["structuredContent"]["answer"] == "this"
        other = {"message": "Shall I delete everything?", "block_on_user": True}
        middle = len(state) // 2
        spoilt = state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]
        for wrong in (
            ASK | {"arguments": other, "requestState": state},
            ASK | {"arguments": ASK["arguments"] | {"attachments": ["x"]}, "requestState": state},
            {"name": "think", "arguments": {"content": "x"}, "requestState": state},
            ASK | {"requestState": spoilt},
            ASK | {"requestState": state[:-8]},
            ASK | {"requestState": state + "-TAMPERED"},
            ASK | {"requestState": "{}"},
            ASK | {"requestState": ""},
        ):
            refused = one.request("tools/call", wrong | {"inputResponses": ACCEPTED})
            assert refused["error"]["code"] == -32602, wrong


@pytest.mark.parametrize(
    "given",
    [
        {"other": ACCEPTED["message"]},
        {"message": None},
        {},
    ],
)
def test_an_answer_to_something_else_is_asked_for_again(here: Served, clock: Later, given: dict[str, Any]) -> None:
    with raw(here, era=MODERN, able=FORM) as one:
        state = question(one, clock)
        again = one.request("tools/call", ASK | {"inputResponses": given, "requestState": state})
        assert again["result"]["resultType"] == "input_required"


@pytest.mark.parametrize("given", [{"action": "perhaps"}, {"content": {"answer": "this"}}, {}, "this"])
def test_an_answer_that_cannot_be_read_is_none(here: Served, clock: Later, given: Any) -> None:
    with raw(here, era=MODERN, able=FORM) as one:
        state = question(one, clock)
        answered = one.request("tools/call", ASK | {"inputResponses": {"message": given}, "requestState": state})
        assert answered["result"]["structuredContent"]["answer"] is None


def test_a_question_outlives_the_process_that_asked_it(workspace: Path, home: Path, tmp_path: Path) -> None:
    clock = Later(tmp_path / "hours", workspace, home)

    def asking(one: Pipe) -> None:
        one.hello(era=MODERN)
        one.able = FORM

    with pipe(workspace, home, run=clock.serve()) as one:
        asking(one)
        state = question(one, clock)
    with pipe(workspace, home, run=clock.serve()) as again:
        asking(again)
        answered = again.request("tools/call", ASK | {"inputResponses": ACCEPTED, "requestState": state})
        assert answered["result"]["structuredContent"]["answer"] == "this"
