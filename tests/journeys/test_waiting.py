"""Does the person see what waits for them, where they look first, and nobody else's in a host?"""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.person import typed
from tests.clients.pipe import pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, served
from tests.clients.tokens import hire


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def facts(work: Path, home: Path) -> dict[str, Any]:
    return json.loads(typed(work, home, "status", "--json"))["waiting"]


def test_a_call_that_needs_a_yes_is_named_until_it_is_answered(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "data", "--profile", "trusted") as one:
        one.hello()
        refused = one.call("fs_delete", path="notes.md")
        assert "APPROVAL_REQUIRED" in said(refused)
    (asked,) = facts(workspace, home)["approvals"]
    assert asked.keys() == {"id", "tool", "principal", "since", "glance"}
    shown = typed(workspace, home, "status").splitlines()
    assert shown[1].startswith("needs your approval: `fs_delete`, since 20")
    assert shown[2] == '  call: fs_delete "notes.md"'
    assert shown[3].startswith(f"  `menugate approve {asked['id']}` or `menugate deny {asked['id']}`")
    typed(workspace, home, "approve", asked["id"])
    assert facts(workspace, home) == {"paused": [], "approvals": []}
    assert "needs your approval" not in typed(workspace, home, "status")


def test_an_answer_names_its_question_and_what_was_approved_no_longer_counts_as_refused(
    workspace: Path, home: Path
) -> None:
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello()
        for command in ("kill 999999", "curl x"):
            assert "APPROVAL_REQUIRED" in said(one.call("bash", command=command))
        waiting = {entry["glance"]: entry["id"] for entry in facts(workspace, home)["approvals"]}
        assert "did not run" not in typed(workspace, home, "status")
        typed(workspace, home, "approve", waiting['bash "kill 999999"'])
        typed(workspace, home, "deny", waiting['bash "curl x"'], "--reason", "not now")
        one.call("bash", command="kill 999999")
    rows = typed(workspace, home, "audit", "tail")
    for kind, glance, says in (
        ("answer", 'bash "kill 999999"', "yes, at a terminal"),
        ("redeemed", 'bash "kill 999999"', "by call"),
        ("answer", 'bash "curl x"', "no, at a terminal: not now"),
    ):
        assert any(f"{kind:<10} {glance}  {waiting[glance]}: {says}" in row for row in rows.splitlines()), rows
    refused = typed(workspace, home, "status").partition("The last calls that did not run:\n")[2]
    assert 'bash "curl x"' in refused and "kill" not in refused


def test_a_paused_run_is_named_until_it_goes_on_or_is_over(workspace: Path, home: Path, tmp_path: Path) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text("budget:\n  calls: 1\n")
    with pipe(workspace, home, "--mode", "data", "--config", str(config)) as one:
        one.hello()
        for _ in range(2):
            one.call("fs_list_directory", path=".")
        (held,) = facts(workspace, home)["paused"]
        assert (held["by"], "budget of 1 call" in held["reason"]) == ("budget", True)
        line = next(line for line in typed(workspace, home, "status").splitlines() if "budget of 1 call" in line)
        command = line.partition("`menugate ")[2].partition("`")[0]
        assert typed(workspace, home, *command.split()).startswith(f"Resumed the runs of session {held['session']}.")
        assert facts(workspace, home)["paused"] == []
        # Another hold, whose run is completed while it waits.
        while "BUDGET_SPENT" not in said(one.call("fs_list_directory", path=".")):
            pass
        assert len(facts(workspace, home)["paused"]) == 1
        assert not one.call("complete", final_answer="enough")["isError"]
        assert facts(workspace, home)["paused"] == []


def test_a_finished_unit_waits_as_long_as_run_control_says(workspace: Path, home: Path) -> None:
    typed(workspace, home, "control", "assisted")
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        one.call("fs_write_file", path="a.txt", content="x")
        assert [held["by"] for held in facts(workspace, home)["paused"]] == ["unit"]
        typed(workspace, home, "control", "autonomous")
        assert facts(workspace, home)["paused"] == []


@dataclass(frozen=True)
class Here:
    work: Path
    home: Path
    served: Served
    tokens: dict[str, str]

    def speaker(self, who: str) -> Any:
        return raw(self.served, token=self.tokens[who], name="claude-code", path="/data")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    folder = tmp_path_factory.mktemp("waiting")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    alice, bob = hire(home, alice="trusted", bob="trusted")
    with served(work, home, "--profile", "trusted") as one:
        yield Here(work, home, one, {"alice": alice, "bob": bob})


def status(one: RawClient) -> str:
    answer = one.request("prompts/get", {"name": "status", "arguments": {}})
    return answer["result"]["messages"][0]["content"]["text"]


def test_in_a_host_everybody_sees_their_own(here: Here) -> None:
    (here.work / "notes.md").write_text("keep me\n")
    with here.speaker("alice") as alice, here.speaker("bob") as bob:
        assert "APPROVAL_REQUIRED" in said(alice.call("fs_delete", path="notes.md"))
        alice.request("prompts/get", {"name": "pause", "arguments": {"when": "now lunch"}})
        (asked,) = facts(here.work, here.home)["approvals"]
        hers = status(alice)
        assert "because the user paused it: lunch." in hers
        assert f"; answer with `menugate approve {asked['id']}`" in hers
        assert "Waiting for the user's approval: `fs_delete`, for " in hers
        his = status(bob)
        assert "Paused" not in his and "Waiting" not in his
    # The person at the terminal sees everybody's, with whose it is.
    shown = typed(here.work, here.home, "status")
    assert "needs your approval: `fs_delete` of alice, since " in shown
    assert "of alice, since " in shown.partition("paused: ")[2]
    assert "`menugate next --principal alice --session " in shown
