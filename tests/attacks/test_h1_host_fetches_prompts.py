"""H1: does a host that gets every prompt when it starts change anything by it? opencode and Kilo do that."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.form import FORM, question
from tests.clients.person import typed
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served

HOSTS = ["opencode", "Kilo", "a-host-nobody-knows", "claude-code", "gemini-cli-mcp-client"]
ACTING = [
    "autonomous",
    "control",
    "mode",
    "model-mode",
    "next",
    "pause",
    "permission-profile",
    "repair",
    "steer",
    "stop",
]
FILLED = ("nothing", "placeholders", "empty", "their names")
KEEPING = ("claude-code", "gemini-cli-mcp-client")
"""They are known to keep prompts for their users and to get none by themselves."""
BARE = ("autonomous", "next", "pause", "repair", "stop")
"""There, these work without an argument."""


def filled(names: list[str], how: str) -> dict[str, str]:
    """What a host sends that knows of arguments and was told none."""
    numbered = enumerate(names, 1)
    return {
        "nothing": dict[str, str](),
        "placeholders": {name: f"${number}" for number, name in numbered},
        "empty": dict.fromkeys(names, ""),
        "their names": {name: name for name in names},
    }[how]


def fetched(one: Any, known: list[str], how: str, typed_bare: bool = False) -> None:
    """Every prompt there is: those the host is shown, and those it may remember from elsewhere."""
    listed = {prompt["name"]: prompt for prompt in one.request("prompts/list")["result"]["prompts"]}
    for name in dict.fromkeys([*listed, *known]):
        if typed_bare and name in BARE and how == "nothing":
            continue
        arguments = [argument["name"] for argument in listed.get(name, {}).get("arguments", ())]
        one.request("prompts/get", {"name": name, "arguments": filled(arguments, how)})


def get(one: Pipe, name: str, arguments: dict[str, str] | None) -> dict[str, Any]:
    return one.request("prompts/get", {"name": name} | ({} if arguments is None else {"arguments": arguments}))


def everything(workspace: Path, home: Path) -> Any:
    """What holds, what is to come, who is paused, and what was changed so far."""
    posture = json.loads(typed(workspace, home, "steer", "--json"))
    waits = json.loads(typed(workspace, home, "status", "--json"))["waiting"]
    changed = typed(workspace, home, "audit", "tail", "--json", "-n", "200", "--kind", "transition")
    return posture, waits, len(changed.splitlines())


def begin(one: Pipe) -> None:
    one.call("menu_enter", mode="swe")
    one.call("grep", pattern="def main")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("host", HOSTS)
def test_nothing_changes_by_being_fetched(workspace: Path, home: Path, host: str, era: str) -> None:
    typed(workspace, home, "control", "manual")
    typed(workspace, home, "mode", "plan")
    with pipe(workspace, home) as one:
        one.hello(host, era=era)
        begin(one)
        before = everything(workspace, home)
        for how in FILLED:
            fetched(one, ACTING, how, host in KEEPING)
        assert everything(workspace, home) == before
        typed(workspace, home, "pause", "--reason", "lunch")
        paused = everything(workspace, home)
        for how in FILLED:
            fetched(one, ACTING, how, host in KEEPING)
        assert everything(workspace, home) == paused
        assert "lunch" in one.call("Read", file_path="src/main.py")["content"][0]["text"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("host", HOSTS)
def test_what_acts_is_offered_where_prompts_are_kept_for_the_user_alone(
    workspace: Path, home: Path, host: str, era: str
) -> None:
    keeps = host in KEEPING
    with pipe(workspace, home) as one:
        one.hello(host, era=era)
        listed = {prompt["name"]: prompt for prompt in one.request("prompts/list")["result"]["prompts"]}
    assert listed.keys() == {"status", "doctor", "system", "words"} | (set(ACTING) if keeps else set())
    assert [argument["name"] for argument in listed["doctor"]["arguments"]] == (["what"] if keeps else [])
    # The seed's bare commands need nothing; every other needs a value.
    needing = {name for name in ACTING if keeps and any(one["required"] for one in listed[name]["arguments"])}
    assert needing == (set(ACTING) - set(BARE) if keeps else set())


@pytest.mark.parametrize("era", ERAS)
def test_who_forgot_the_word_is_told_which(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home) as one:
        one.hello("claude-code", era=era)
        for name, arguments, needs in [
            ("pause", {"when": ""}, "`pause now`"),
            ("stop", {"when": "$1", "reason": "$2"}, "`stop now`"),
            ("next", {"units": "$1"}, "number of units"),
            ("autonomous", {"scope": "$1"}, "`autonomous now`"),
            ("repair", {"scope": " "}, "`repair now`"),
        ]:
            answer = one.request("prompts/get", {"name": name, "arguments": arguments})["result"]
            said = answer["messages"][0]["content"]["text"]
            assert said.startswith("Nothing was changed")
            assert needs in said
        for name in sorted(set(ACTING) - set(BARE)):
            without = one.request("prompts/get", {"name": name})
            assert without["error"]["code"] == -32602
            assert without["error"]["message"].startswith(f"`{name}` needs ")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("arguments", [{}, None], ids=["none", "left out"])
def test_the_seeds_commands_work_bare(workspace: Path, home: Path, arguments: dict[str, str] | None, era: str) -> None:
    def said(name: str) -> str:
        return get(one, name, arguments)["result"]["messages"][0]["content"]["text"]

    typed(workspace, home, "control", "manual")
    typed(workspace, home, "mode", "plan")
    with pipe(workspace, home) as one:
        one.hello("claude-code", era=era)
        begin(one)
        # What allows more waits for the person, who is not asked in a client that cannot ask.
        for name in ("autonomous", "repair"):
            assert "`menugate steer --confirm " in said(name)
        assert said("pause").startswith("The user paused the run")
        assert "RUN_PAUSED" in one.call("Read", file_path="src/main.py")["content"][0]["text"]
        resumed = said("next")
        found = re.search(r"`menugate steer --confirm (\w+)`", resumed)
        assert found, resumed
        assert "RUN_PAUSED" in one.call("Read", file_path="src/main.py")["content"][0]["text"]
        assert f"--confirm {found[1]}" in typed(workspace, home, "status")
        typed(workspace, home, "steer", "--confirm", found[1])
        assert "RUN_PAUSED" not in one.call("Read", file_path="src/main.py")["content"][0]["text"]
        posture = json.loads(typed(workspace, home, "steer", "--json"))
        assert posture["badge"].startswith("plan | manual")
        assert [change["what"].split(",")[0] for change in posture["to_come"]] == [
            "run control autonomous",
            "work mode repair",
        ]
        # What was requested in a run ends with it.
        assert said("stop").startswith("The user stopped the run")
    assert json.loads(typed(workspace, home, "steer", "--json"))["to_come"] == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("version", ["3.0.0", "nightly", ""])
def test_in_a_version_nobody_looked_at_what_allows_more_is_confirmed_at_a_terminal(
    workspace: Path, home: Path, version: str, era: str
) -> None:
    """A newer major version may do with prompts what it wants."""
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("claude-code", era=era, version=version)
        assert "In force: plan" in json.dumps(get(one, "mode", {"value": "plan"}))
        assert "`menugate steer --confirm " in json.dumps(get(one, "mode", {"value": "build"}))
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("claude-code", era=era, version="2.1.326")
        wish = {"name": "mode", "arguments": {"value": "build"}}
        assert "In force: build" in json.dumps(question(one, wish, "prompts/get").accept())


@pytest.mark.parametrize("era", ERAS)
def test_over_http_as_well(workspace: Path, home: Path, era: str) -> None:
    typed(workspace, home, "control", "manual")
    with served(workspace, home) as here, raw(here, era=era, name="opencode") as one:
        before = everything(workspace, home)
        for how in FILLED:
            fetched(one, ACTING, how)
        assert everything(workspace, home) == before
