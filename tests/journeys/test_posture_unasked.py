"""Does a command that asks nobody ever allow more, at once or after the operator allows less?"""

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

WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}"]
USUAL = ["build", "autonomous", "normal", "smart", "agent", False]
LESS = {"work_mode": "plan", "run_control": "manual", "profile": "restricted", "ai_mode": "chat", "reasoning": True}
AS_IT_IS: list[tuple[str, dict[str, str]]] = [
    ("permission-profile", {"value": "normal"}),
    ("autonomous", {}),
    ("mode", {"value": "build"}),
    ("steer", {"axis": "ai-mode", "value": "agent"}),
    ("steer", {"axis": "reasoning", "value": "off"}),
    ("steer", {"axis": "profile", "value": "normal", "scope": "next-milestone"}),
    ("steer", {"axis": "mode", "value": "build", "scope": "for-next-unit"}),
]


def operator(home: Path, **said: Any) -> None:
    file = home / ".config" / "menugate" / "menugate.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in said.items()))


@contextmanager
def connected(way: str, workspace: Path, home: Path, *flags: str) -> Generator[Pipe | RawClient]:
    transport, era = way.split()
    if transport == "http":
        with served(workspace, home, *flags) as here, raw(here, name="claude-code", era=era, able=FORM) as one:
            yield one
        return
    with pipe(workspace, home, *flags) as one:
        one.able = FORM
        one.hello("claude-code", era)
        yield one


def ask(one: Pipe | RawClient, name: str, **arguments: str) -> str:
    answer = one.request("prompts/get", {"name": name, "arguments": arguments})
    return answer["result"]["messages"][0]["content"]["text"]


def posture(workspace: Path, home: Path) -> dict[str, Any]:
    return json.loads(typed(workspace, home, "status", "--json"))["posture"]


def values(workspace: Path, home: Path) -> list[Any]:
    return [axis["value"] for axis in posture(workspace, home).values()]


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_is_in_force_is_not_stored(way: str, workspace: Path, home: Path) -> None:
    operator(home, profile="normal")
    with connected(way, workspace, home) as one:
        for name, arguments in AS_IT_IS:
            said = ask(one, name, **arguments)
            assert said.startswith("Nothing was changed: "), said
            assert "is in force already" in said
    assert "chosen" not in [axis["from"] for axis in posture(workspace, home).values()]
    assert "/" not in typed(workspace, home, "audit", "tail", "--kind", "transition")
    operator(home, **LESS)
    assert values(workspace, home) == ["plan", "manual", "restricted", "smart", "chat", True]
    with connected(way, workspace, home) as one:
        assert one.call("Write", file_path="new.txt", content="x")["isError"]
    assert not (workspace / "new.txt").exists()


def test_a_narrower_value_does_not_outlast_what_the_operator_sets_later(workspace: Path, home: Path) -> None:
    operator(home, profile="unrestricted")
    with connected("stdio legacy", workspace, home) as one:
        for name, value in (("permission-profile", "trusted"), ("control", "assisted"), ("mode", "repair")):
            assert "it is in force" in ask(one, name, value=value)
        assert values(workspace, home)[:3] == ["repair", "assisted", "trusted"]
        assert posture(workspace, home)["profile"]["from"] == "chosen"
    operator(home, **LESS)
    assert values(workspace, home)[:3] == ["plan", "manual", "restricted"]
    assert posture(workspace, home)["profile"]["from"].endswith("menugate.yaml:3")
    operator(home, profile="unrestricted")
    assert values(workspace, home)[:3] == ["repair", "assisted", "trusted"]
    with connected("stdio legacy", workspace, home, "--profile", "restricted") as one:
        one.call("menu_enter", mode="swe")
        refused = one.call("Write", file_path="new.txt", content="x")
        assert "PROFILE_TOO_LOW" in refused["content"][0]["text"]


@pytest.mark.parametrize("scope", ["next-milestone", "after-current-unit", "for-next-unit"])
def test_a_pending_value_is_judged_when_it_takes_effect(workspace: Path, home: Path, scope: str) -> None:
    operator(home, profile="trusted")
    with connected("stdio legacy", workspace, home) as one:
        one.call("menu_list")
        ask(one, "steer", axis="profile", value="normal", scope=scope)
        operator(home, profile="restricted")
        typed(workspace, home, "status")
    with connected("stdio legacy", workspace, home) as one:
        one.call("complete", final_answer="done")
        assert values(workspace, home)[2] == "restricted"
        one.call("complete", final_answer="done again")
    assert values(workspace, home)[2] == "restricted"


def test_what_the_person_types_at_a_terminal_stays(workspace: Path, home: Path) -> None:
    operator(home, profile="normal")
    typed(workspace, home, "profile", "normal")
    typed(workspace, home, "steer", "mode", "build")
    operator(home, **LESS)
    assert values(workspace, home)[0:3] == ["build", "manual", "normal"]


def test_less_than_the_person_chose_needs_no_question(workspace: Path, home: Path) -> None:
    operator(home, profile="restricted")
    typed(workspace, home, "profile", "trusted")
    with connected("stdio legacy", workspace, home) as one:
        assert "it is in force" in ask(one, "permission-profile", value="normal")
        assert values(workspace, home)[2] == "normal"
        asked = question(one, {"name": "permission-profile", "arguments": {"value": "trusted"}}, "prompts/get")
        assert "profile from normal to trusted (now)" in " ".join(asked.params["message"].split())


def test_the_form_shows_every_setting_that_changes(workspace: Path, home: Path) -> None:
    typed(workspace, home, "mode", "review")
    with connected("stdio legacy", workspace, home) as one:
        options = "--permission-profile trusted --reasoning off --ai-mode agent --model-mode deep --control manual"
        wanted = {"name": "mode", "arguments": {"value": "plan", "options": options}}
        asked = question(one, wanted, "prompts/get")
        assert (
            "work mode from review to plan, run control from autonomous to manual, profile from normal to trusted, "
            "model mode from smart to deep (now)"
        ) in " ".join(asked.params["message"].split())
        asked.accept()
    found = posture(workspace, home)
    assert [axis["value"] for axis in found.values()] == ["plan", "manual", "trusted", "deep", "agent", False]
    assert (found["ai_mode"]["from"], found["reasoning"]["from"]) == ("default", "default")
