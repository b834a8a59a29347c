"""H3: does a client that accepts every form by itself get a file deleted? Codex does so in 0.3 ms under `never`."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.form import FORM, FormQuestion, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

DATA = ("--mode", "data", "--profile", "trusted")
DELETING: dict[str, Any] = {"name": "fs_delete", "arguments": {"path": "notes.md"}}
PLAIN = {"string", "boolean"}


@pytest.fixture
def notes(workspace: Path) -> Path:
    path = workspace / "notes.md"
    path.write_text("keep me\n")
    return path


@contextmanager
def client(workspace: Path, home: Path, era: str) -> Generator[Pipe]:
    with pipe(workspace, home, *DATA) as one:
        one.able = FORM
        one.hello("codex-mcp-client", era=era)
        yield one


def said(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


def waiting(workspace: Path, home: Path) -> list[dict[str, Any]]:
    return json.loads(typed(workspace, home, "approvals", "--json").out)


def filled_in(asked: FormQuestion) -> list[dict[str, Any]]:
    """What a program makes of a form that it was not meant to fill in."""
    required = asked.params["requestedSchema"].get("required", [])
    return [
        {},
        dict.fromkeys(required, ""),
        {name: name for name in required},
        dict.fromkeys(required, "yes"),
        dict.fromkeys(required, True),
        dict.fromkeys(required),
    ]


@pytest.mark.parametrize("era", ERAS)
def test_an_accept_that_nobody_typed_deletes_nothing(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with client(workspace, home, era) as one:
        answer = question(one, DELETING).answer({"action": "accept", "content": {}})
        assert notes.exists(), said(answer)
        assert answer["result"]["isError"]
        assert said(answer).startswith("Error APPROVAL_REQUIRED")
        (left,) = waiting(workspace, home)
        assert f"`menugate approve {left['id']}`" in said(answer)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("ways", [slice(0, 3), slice(3, 6)])
def test_no_filling_in_by_rote_is_a_yes(workspace: Path, home: Path, notes: Path, era: str, ways: slice) -> None:
    """Slow enough to pass for a person, and still without the characters."""
    with client(workspace, home, era) as one:
        for way in range(6)[ways]:
            asked = question(one, DELETING)
            asked.read()
            answer = asked.answer({"action": "accept", "content": filled_in(asked)[way]})
            assert notes.exists(), said(answer)
            assert waiting(workspace, home)


@pytest.mark.parametrize("era", ERAS)
def test_the_characters_stand_in_the_message_alone_and_are_new_each_time(
    workspace: Path, home: Path, notes: Path, era: str
) -> None:
    codes: list[str] = []
    for name in ("notes.md", "src/main.py"):
        with client(workspace, home, era) as one:
            asked = question(one, DELETING | {"arguments": {"path": name}})
            schema = asked.params["requestedSchema"]
            assert len(asked.code) == 4
            assert asked.code.casefold() not in json.dumps(schema).casefold()
            (required,) = schema["required"]
            assert schema["properties"][required]["type"] == "string"
            assert not {"default", "enum", "const"} & schema["properties"][required].keys()
            assert {one["type"] for one in schema["properties"].values()} <= PLAIN
            codes.append(asked.code)
    assert len(set(codes)) == 2
    for path in (workspace / ".menugate").rglob("*"):
        assert not path.is_file() or all(code.encode() not in path.read_bytes() for code in codes)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("typing", [str, str.lower, "  {}\n".format], ids=["as shown", "small", "with blanks"])
def test_a_person_who_types_them_is_heard(workspace: Path, home: Path, notes: Path, era: str, typing: Any) -> None:
    with client(workspace, home, era) as one:
        asked = question(one, DELETING)
        answer = asked.accept(code=typing(asked.code))
        assert "Deleted" in said(answer)
        assert not notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_who_types_them_at_once_is_no_person(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with client(workspace, home, era) as one:
        asked = question(one, DELETING)
        answer = asked.answer({"action": "accept", "content": {"code": asked.code}})
        assert notes.exists()
        assert said(answer).startswith("Error APPROVAL_REQUIRED")
        if era != "legacy":
            # The same sealed question, answered once more and late enough: that client has had its say.
            asked.read()
            assert said(asked.answer({"action": "accept", "content": {"code": asked.code}})).startswith(
                "Error APPROVAL_R"
            )
            assert notes.exists()


@pytest.mark.parametrize("era", ERAS)
def test_nobody_guesses_them_in_more_than_three_goes(workspace: Path, home: Path, notes: Path, era: str) -> None:
    with client(workspace, home, era) as one:
        for _ in range(3):
            assert said(question(one, DELETING).accept(code="0000")).startswith("Error APPROVAL_REQUIRED")
        # From here on the terminal alone answers; the client is not asked again.
        refused = one.request("tools/call", DELETING)
        assert said(refused).startswith("Error APPROVAL_REQUIRED")
        assert notes.exists()
        (left,) = waiting(workspace, home)
        assert typed(workspace, home, "approve", left["id"]).code == 0
        assert "Deleted" in said(one.request("tools/call", DELETING))
