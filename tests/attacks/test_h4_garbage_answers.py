"""H4: is an answer that nobody can read ever more than no answer, whatever it looks like and however it comes?

A host that hands on what a model made of a form sent nested values, an action of its own or no object at all, and the
call ended in a bare protocol error, or never.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
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
GARBAGE: dict[str, Any] = {
    "nested beside a list": {"action": "accept", "content": {"code": ["x"], "o": {"p": 1}}},
    "nested code": {"action": "accept", "content": {"code": {"a": 1}}},
    "nested scope": {"action": "accept", "content": {"code": "x", "scope": {"a": 1}}},
    "nothing": {},
    "another action": {"action": "maybe"},
    "content as text": {"action": "accept", "content": "str"},
    "a decline with text": {"action": "decline", "content": "str"},
    "roots": {"roots": []},
}
NO_OBJECT = {"text": "yes", "list": [1], "number": 5}
UNREADABLE = {
    "null": '"result":null',
    "text": '"result":"str"',
    "list": '"result":[1]',
    "neither": '"x":1',
    "no error": '"error":null',
    "error as text": '"error":"no"',
    "a key twice": '"result":{"action":"accept","action":"decline"}',
    "no number": '"result":{"action":"accept","content":{"code":NaN}}',
}


@pytest.fixture
def notes(workspace: Path) -> Path:
    path = workspace / "notes.md"
    path.write_text("keep me\n")
    return path


@contextmanager
def client(workspace: Path, home: Path, era: str, transport: str = "stdio") -> Generator[Pipe | RawClient]:
    if transport == "http":
        with served(workspace, home, *DATA) as here, raw(here, era=era, able=FORM) as one:
            yield one
        return
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello("some-client", era=era)
        yield one


def stays_open(answer: dict[str, Any], workspace: Path, home: Path) -> str:
    """The call says what to type, and the question is there to be answered."""
    said = answer.get("result", answer)["content"][0]["text"]
    assert said.startswith("Error APPROVAL_REQUIRED"), said
    (left,) = json.loads(typed(workspace, home, "approvals", "--json").out)
    assert f"`menugate approve {left['id']}`" in said
    return left["id"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("late", [True, False], ids=["late", "at once"])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_leaves_the_question_open(
    workspace: Path, home: Path, notes: Path, era: str, garbage: str, late: bool
) -> None:
    with client(workspace, home, era) as one:
        asked = question(one, DELETING)
        if late:
            asked.read()
        id = stays_open(asked.answer(GARBAGE[garbage]), workspace, home)
        assert notes.exists()
        assert typed(workspace, home, "approve", id).code == 0
        assert not one.call("fs_delete", path="notes.md")["isError"]
        assert not notes.exists()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("garbage", ["nested code", "nothing"])
def test_it_does_so_over_http(workspace: Path, home: Path, notes: Path, era: str, garbage: str) -> None:
    with client(workspace, home, era, "http") as one:
        asked = question(one, DELETING)
        asked.read()
        stays_open(asked.answer(GARBAGE[garbage]), workspace, home)
        assert notes.exists()


@pytest.mark.parametrize("garbage", NO_OBJECT)
@pytest.mark.parametrize("whole", [True, False], ids=["every answer", "one answer"])
def test_what_is_no_object_is_no_answer(workspace: Path, home: Path, notes: Path, garbage: str, whole: bool) -> None:
    with client(workspace, home, MODERN) as one:
        asked = question(one, DELETING)
        asked.read()
        given = NO_OBJECT[garbage] if whole else {asked.key: NO_OBJECT[garbage]}
        answer = one.request("tools/call", DELETING | {"inputResponses": given, "requestState": asked.state})
        stays_open(answer, workspace, home)
        assert notes.exists()


@pytest.mark.parametrize("whole", [True, False], ids=["every answer", "one answer"])
def test_a_null_is_as_if_it_were_absent(workspace: Path, home: Path, notes: Path, whole: bool) -> None:
    with client(workspace, home, MODERN) as one:
        asked = question(one, DELETING)
        for _ in range(4):
            given = None if whole else {asked.key: None}
            again = one.request("tools/call", DELETING | {"inputResponses": given, "requestState": asked.state})
            assert again["result"]["resultType"] == "input_required"
        assert notes.exists()
        assert not asked.accept()["result"]["isError"]
        assert not notes.exists()


def test_garbage_without_the_question_is_asked_anew(workspace: Path, home: Path, notes: Path) -> None:
    with client(workspace, home, MODERN) as one:
        asked = question(one, DELETING)
        again = one.request("tools/call", DELETING | {"inputResponses": {asked.key: GARBAGE["nested code"]}})
        assert again["result"]["resultType"] == "input_required"
        assert notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_who_mistyped_may_type_again(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with client(workspace, home, era) as one:
        for _ in range(2):
            asked = question(one, DELETING)
            asked.read()
            stays_open(asked.answer(GARBAGE["nested code"]), workspace, home)
        assert not question(one, DELETING).accept()["result"]["isError"]
        assert not notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_garbage_widens_nothing(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("claude-code", era=era)
        asked = question(one, {"name": "permission-profile", "arguments": {"value": "trusted"}}, "prompts/get")
        asked.read()
        (told,) = asked.answer(GARBAGE["nested code"])["result"]["messages"]
        assert "Nothing changes until the user confirms it" in told["content"]["text"]


def ends(one: Pipe | RawClient, unreadable: str) -> dict[str, Any]:
    """What the call comes to once this is said in answer to its question."""
    if isinstance(one, Pipe):
        number = one.send("tools/call", DELETING)
        while (wanted := one.message()).get("method") != "elicitation/create":
            pass
        one.raw(b'{"jsonrpc":"2.0","id":%d,%s}\n' % (wanted["id"], unreadable.encode()))
        return one.until(number)[0]
    number, stream = one.send("tools/call", DELETING)
    while (wanted := stream.message()).get("method") != "elicitation/create":
        pass
    refused = one.post_text(f'{{"jsonrpc":"2.0","id":{wanted["id"]},{unreadable}}}')
    assert refused.status == 400
    return stream.until(number)[0]


@pytest.mark.parametrize("unreadable", UNREADABLE)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_answer_that_is_no_message_ends_the_waiting(
    workspace: Path, home: Path, notes: Path, unreadable: str, transport: str
) -> None:
    with client(workspace, home, "legacy", transport) as one:
        answer = ends(one, UNREADABLE[unreadable])
        stays_open(answer, workspace, home)
        assert "in time" not in json.dumps(answer), "it was waited for until the patience ran out"
        assert notes.exists()


def test_an_id_of_ours_ends_no_request_of_the_clients(workspace: Path, home: Path, notes: Path) -> None:
    with client(workspace, home, "legacy") as one:
        assert isinstance(one, Pipe)
        number = one.send("tools/call", DELETING)
        while (wanted := one.message()).get("method") != "elicitation/create":
            pass
        one.raw(b'{"jsonrpc":"2.0","id":%d}\n' % wanted["id"])
        _, before = one.until(number)
        assert [message["id"] for message in before if "error" in message] == [None]
