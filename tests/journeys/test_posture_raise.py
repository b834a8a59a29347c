"""What becomes of a request for more than the person allows, whatever the client does with its form?"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN
from tests.clients.form import FORM, question
from tests.clients.person import typed
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import served
from tests.clients.typed import typed as typed_whole
from tests.clients.waiting import wait_until

WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}"]
WRONG: dict[str, Any] = {"action": "accept", "content": {"code": "0000"}}


def raising(value: str = "trusted") -> dict[str, Any]:
    return {"name": "permission-profile", "arguments": {"value": value}}


@contextmanager
def connected(way: str, workspace: Path, home: Path) -> Generator[Pipe | RawClient]:
    transport, era = way.split()
    if transport == "http":
        with served(workspace, home) as here, raw(here, name="claude-code", era=era, able=FORM) as one:
            yield one
        return
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("claude-code", era)
        yield one


def words(answer: dict[str, Any]) -> str:
    return answer["result"]["messages"][0]["content"]["text"]


def coming(workspace: Path, home: Path) -> list[str]:
    return [one["id"] for one in json.loads(typed(workspace, home, "steer", "--json"))["to_come"]]


def steps(workspace: Path, home: Path) -> list[str]:
    """What the record says about the posture, on one line each."""
    shown = typed(workspace, home, "audit", "tail", "--kind", "transition", "-n", "50")
    return [line for line in shown.splitlines() if "/permission-profile" in line]


@pytest.mark.parametrize("way", WAYS)
def test_after_three_attempts_only_the_terminal_can_agree(way: str, workspace: Path, home: Path) -> None:
    with connected(way, workspace, home) as one:
        # Another value of the same setting is no new chance.
        for value in ("trusted", "unrestricted", "trusted"):
            asked = question(one, raising(value), "prompts/get")
            asked.read()
            assert "accepted without the four characters" in words(asked.answer(WRONG))
        for value in ("trusted", "unrestricted", "trusted"):
            assert "`menugate steer --confirm " in words(one.request("prompts/get", raising(value)))
    tail = steps(workspace, home)
    refused = "not agreed to: the client accepted without the four characters from the question"
    assert [refused in line for line in tail] == [False, True] * 3 + [False] * 2
    assert "profile trusted, now: not agreed to" in tail[1]
    (id,) = coming(workspace, home)
    said = typed(workspace, home, "steer", "--confirm", id)
    assert "Confirmed: profile trusted, now." in said
    assert "| trusted |" in said
    again = typed_whole(workspace, home, "steer", "--confirm", id)
    assert (again.code, "in force already" in again.err) == (1, True)


@pytest.mark.parametrize("way", WAYS)
def test_a_form_that_nobody_answers_leaves_the_request_to_the_terminal(way: str, workspace: Path, home: Path) -> None:
    with connected(way, workspace, home) as one:
        question(one, raising(), "prompts/get")
        (id,) = coming(workspace, home)
        assert f"menugate steer --confirm {id}" in typed(workspace, home, "status")
        left = typed(workspace, home, "messages", "--all", "--keep")
        assert "claude-code asks for more than you allow: profile trusted" in " ".join(left.replace("\n| ", "").split())
    assert coming(workspace, home) == [id]
    assert "Confirmed: profile trusted, now." in typed(workspace, home, "steer", "--confirm", id)


@pytest.mark.parametrize("end", ["less", "another", "complete", "stop", "cancel", "terminal"])
def test_no_message_offers_to_confirm_what_is_no_longer_open(end: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("claude-code")
        one.call("menu_list")
        one.request("prompts/get", raising())
        (id,) = coming(workspace, home)
        if end == "less":
            assert "it is in force" in words(one.request("prompts/get", raising("restricted")))
        elif end == "another":
            one.request("prompts/get", raising("unrestricted"))
        elif end == "complete":
            done = one.call("complete", final_answer="done")
            assert not done["isError"], done
        else:
            lines = {"stop": ["stop"], "cancel": ["steer", "--cancel", id], "terminal": ["profile", "restricted"]}
            typed(workspace, home, *lines[end])
        wait_until(lambda: id not in coming(workspace, home))
    left = typed(workspace, home, "messages", "--all")
    assert f"--confirm {id}" not in left
    assert (f"Nothing was changed by the request {id}" in left) is (end != "another")
    assert typed_whole(workspace, home, "steer", "--confirm", id).code == 1


def test_the_terminal_shows_the_whole_change_before_it_confirms(workspace: Path, home: Path) -> None:
    typed(workspace, home, "mode", "review")
    with pipe(workspace, home) as one:
        one.hello("claude-code")
        options = "--permission-profile unrestricted --ai-mode agent --model-mode deep"
        said = one.request("prompts/get", {"name": "mode", "arguments": {"value": "plan", "options": options}})
        (id,) = coming(workspace, home)
        assert f"`menugate steer --confirm {id}`" in words(said)
        for answer in ("", "n", "confirm"):
            left = typed_whole(workspace, home, "steer", "--confirm", id, answer=answer)
            assert (left.code, "nothing was changed; the request is still open" in left.err) == (1, True)
            assert "  > /mode in claude-code\n" in left.out
            for line in (
                "work mode from review to plan",
                "profile from normal to unrestricted (allows more)",
                "model mode from smart to deep",
            ):
                assert f"\n  {line}\n" in left.out
        assert "normal" in typed(workspace, home, "profile")
        assert coming(workspace, home) == [id]
        done = typed_whole(workspace, home, "steer", "--confirm", id, answer="y")
        assert "plan | autonomous | unrestricted | deep" in done.out
        gone = typed_whole(workspace, home, "steer", "--confirm", id, answer="y")
        assert (gone.code, "[y/N]" in gone.out) == (1, False)


@pytest.mark.parametrize("end", ["complete", "stop", "stop at a terminal"])
@pytest.mark.parametrize("way", ["stdio legacy", f"stdio {MODERN}", f"http {MODERN}"])
def test_a_request_ends_with_the_run(way: str, end: str, workspace: Path, home: Path) -> None:
    with connected(way, workspace, home) as one:
        one.call("menu_list")
        asked = question(one, raising(), "prompts/get")
        (id,) = coming(workspace, home)
        if end == "complete":
            assert not one.call("complete", final_answer="done")["isError"]
        elif end == "stop":
            one.request("prompts/get", {"name": "stop", "arguments": {"when": "now"}})
        else:
            typed(workspace, home, "stop")
        wait_until(lambda: not coming(workspace, home))
        if way.endswith("legacy") and end == "stop at a terminal":
            assert "closed in the meantime" in words(asked.wait())
    late = typed_whole(workspace, home, "steer", "--confirm", id)
    assert late.code == 1
    why = "was completed" if end == "complete" else "was stopped"
    assert why in late.err
    assert "type `menugate profile trusted`" in late.err
    assert "normal" in typed(workspace, home, "profile")


def test_a_value_chosen_again_is_no_new_run(workspace: Path, home: Path) -> None:
    for _ in range(2):
        typed(workspace, home, "profile", "trusted")
    first, second = typed(workspace, home, "audit", "tail", "--kind", "transition").splitlines()
    assert first.endswith("profile default -> trusted")
    assert second.endswith("profile trusted, now: in force already")


def test_a_note_invites_nobody_to_agree_to_a_request_that_is_over(workspace: Path, home: Path) -> None:
    with connected(WAYS[0], workspace, home) as one:
        asked = question(one, raising(), "prompts/get")
        asked.read()
        asked.answer(WRONG)
        assert "You can agree at a terminal" in typed(workspace, home, "messages", "--all", "--keep")
        typed(workspace, home, "profile", "restricted")
        left = typed(workspace, home, "messages", "--all", "--keep")
    assert coming(workspace, home) == []
    assert "You can agree" not in left and "Nothing was changed by the request" in " ".join(left.split()), left
