"""Does the person see what agents have to do, and is theirs the last word about it?"""

import json
from pathlib import Path

from tests.cli.conftest import Type
from tests.clients.pipe import pipe
from tests.journeys.test_todos import EVIDENCE, LONG, claimed, code, opened, said


def test_the_word_of_the_claimer_verifies_nothing_and_the_persons_does(place: Path, home: Path, menugate: Type) -> None:
    with pipe(place, home) as one:
        opened(one)
        id = claimed(one)
        asked = one.call("TodoVerify", id=id)
        assert asked["structuredContent"]["status"] == "claimed"
        assert f"menugate todos accept {id}" in said(asked)
        assert "[?]" in menugate("todos list").out
        assert menugate("todos reject", id, "the end is missing").code == 0
        back = one.call("TodoRead", id=id)
        assert back["structuredContent"]["status"] == "in_progress"
        assert "the end is missing" in said(back)
        assert code(one.call("TodoClaim", id=id, explanation=LONG, evidence=EVIDENCE)) == "NO_EVIDENCE"
        assert not one.call("TodoClaim", id=id, explanation=LONG, evidence=[{"type": "note", "data": "new"}])["isError"]
        assert menugate("todos accept", id[:5]).code == 0
        assert one.call("TodoRead", id=id)["structuredContent"]["verified_by"] == "user"
    refused = menugate("todos accept", id)
    assert refused.code == 1
    assert "is verified and cannot be accepted" in refused.err
    assert "there is no todo `nothing`" in menugate("todos show", "nothing").err
    shown = menugate("todos show", id).out
    assert "accepted" in shown
    assert LONG in shown


def test_where_nothing_was_there_is_nothing_to_show(place: Path, menugate: Type) -> None:
    assert "menugate has not run here yet" in menugate("todos list").out
    assert json.loads(menugate("todos list --json").out) == []
    assert menugate("todos show 1234abcd").code == 1
    assert menugate("todos reject 1234abcd ''").code == 2
    assert not (place / ".menugate" / "state.db").exists()


def test_they_are_listed_by_how_far_they_are(place: Path, home: Path, menugate: Type) -> None:
    with pipe(place, home) as one:
        opened(one)
        id = claimed(one)
        one.call("TodoCreate", content="Later")
        every, waiting = (json.loads(menugate(f"todos list --json{more}").out) for more in ("", " --status claimed"))
        assert [todo["content"] for todo in every] == ["Write it", "Later"]
        assert [todo["id"] for todo in waiting] == [id]
        assert menugate("todos list --status pending").out.count("\n") == 2
