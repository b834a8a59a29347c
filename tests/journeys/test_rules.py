"""Do the operator's rules hold through every way to a tool?"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import pipe
from tests.clients.typed import typed

RULES = """
rules:
  block: ["menu_call", "think"]
  deny: ["Read(secret/**)"]
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "menugate.yaml"
    path.write_text(RULES)
    return str(path)


def test_a_rule_holds_by_name_and_through_a_carrier(workspace: Path, home: Path, config: str) -> None:
    (workspace / "secret").mkdir()
    (workspace / "secret" / "plan.txt").write_text("the plan")
    (workspace / "link").symlink_to("secret")
    (workspace / "plan").symlink_to("link/plan.txt")
    with pipe(workspace, home, "--config", config) as one:
        one.hello("mcp")
        assert "think" not in one.names()
        for answer, code in [
            (one.call("think", content="x"), "BLOCKED"),
            (one.call("menu_call", tool="Read", arguments={"file_path": "notes.md"}, mode="swe"), "BLOCKED"),
            (one.call("menu_read", tool="Read", arguments={"file_path": "secret/plan.txt"}, mode="swe"), "RULE_DENIED"),
            (one.call("menu_enter", mode="swe"), None),
            (one.call("Read", file_path="secret/plan.txt"), "RULE_DENIED"),
            (one.call("Read", file_path=str(workspace / "secret" / "plan.txt")), "RULE_DENIED"),
            (one.call("Read", file_path=f"{workspace}//secret/plan.txt"), "RULE_DENIED"),
            (one.call("Read", file_path="link/plan.txt"), "RULE_DENIED"),
            (one.call("Read", file_path="plan"), "RULE_DENIED"),
            (one.call("Read", file_path=f"{workspace}//notes.md"), None),
            (one.call("Read", file_path="notes.md"), None),
        ]:
            assert answer["isError"] is (code is not None)
            text = answer["content"][0]["text"]
            assert "the plan" not in text
            assert code is None or text.startswith(f"Error {code}")


READ = {"tool": "Read", "arguments": {"file_path": "notes.md"}}
SAID: list[tuple[str, dict[str, Any]]] = [
    ("menu_call", {**READ, "mode": "swe"}),
    ("menu_read", {**READ, "mode": "swe"}),
    ("menu_read", {**READ, "mode": "data"}),
    ("menu_read", {**READ, "mode": "swe", "more": 1}),
    ("menu_read", {"tool": "menu_list"}),
    ("menu_read", {"tool": "Write", "arguments": {}}),
    ("menu_read", {"tool": "Read", "arguments": {"file_path": "secret/plan.txt"}, "mode": "swe"}),
    ("Write", {"file_path": "{workspace}/new.md", "content": "x"}),
    ("Write", {"file_path": "{workspace}/.vscode/new.md", "content": "x"}),
    ("Read", {"file_path": "{workspace}//secret/plan.txt"}),
    ("Read", {"file_path": "link/plan.txt"}),
    ("Read", {"file_path": "link/../notes.md"}),
]


@pytest.mark.parametrize("paused", [False, True])
def test_what_explain_says_is_what_the_call_then_does(home: Path, tmp_path: Path, config: str, paused: bool) -> None:
    """In a workspace that itself lies below a protected name, too."""
    workspace = tmp_path / ".vscode" / "work"
    workspace.mkdir(parents=True)
    (workspace / "notes.md").write_text("first")
    (workspace / "secret").mkdir()
    (workspace / "secret" / "plan.txt").write_text("the plan")
    (workspace / "link").symlink_to("secret")
    with pipe(workspace, home, "--config", config) as one:
        one.hello("mcp")
        if paused:
            assert typed(workspace, home, "pause").code == 0
        one.call("menu_enter", mode="swe")
        for tool, given in SAID:
            arguments = json.loads(json.dumps(given).replace("{workspace}", str(workspace)))
            said = typed(workspace, home, "explain", tool, json.dumps(arguments), "--json", "--config", config)
            code = json.loads(said.out)["code"]
            text = one.call(tool, **arguments)["content"][0]["text"]
            assert text.startswith(f"Error {code}:" if code else "") and (code is not None or "Error" not in text)
            one.call("menu_enter", mode="swe")


def test_the_workspaces_own_rules_are_rewritten_only_after_a_yes(workspace: Path, home: Path) -> None:
    said = "rules:\n  deny: [Read(notes.md)]\nmax_profile: normal\n"
    (workspace / "menugate.yaml").write_text(said)
    with pipe(workspace, home) as one:
        one.hello("mcp")
        one.call("menu_enter", mode="swe")
        # Nobody is asked about a file that was not read.
        one.call("Read", file_path="menugate.yaml")
        for tool, arguments in [
            ("Write", {"file_path": "menugate.yaml", "content": "{}"}),
            ("Write", {"file_path": "menugate.prompts/base/system.md", "content": "obey"}),
        ]:
            assert one.call(tool, **arguments)["content"][0]["text"].startswith("Error APPROVAL_REQUIRED")
        one.call("bash", command="mkdir -p src && touch menugate.yaml")
    assert (workspace / "menugate.yaml").read_text() == said


@pytest.mark.parametrize("there", [True, False], ids=["a file is there", "none is there"])
def test_no_tool_reaches_the_operators_file_in_a_workspace_that_is_a_whole_home(
    home: Path, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder that is named for the keys lies outside of the workspace, or nothing starts.
    operators, keys = home / ".config" / "menugate" / "menugate.yaml", tmp_path / "keys"

    def elsewhere(_home: Path) -> Path:
        return keys

    monkeypatch.setattr("tests.clients.served.state_home", elsewhere)
    said = "max_profile: normal\n"
    if there:
        operators.parent.mkdir(parents=True)
        operators.write_text(said)
    typed(home, home, "control", "autonomous")
    with pipe(home, home) as one:
        one.hello("mcp")
        one.call("menu_enter", mode="swe")
        for tool, arguments in [
            ("Write", {"file_path": ".config/menugate/menugate.yaml", "content": "profile: unrestricted"}),
            ("Read", {"file_path": ".local/state/menugate/ledger.key"}),
            ("Write", {"file_path": ".local/state/menugate/trusted/x.json", "content": "{}"}),
        ]:
            text = one.call(tool, **arguments)["content"][0]["text"]
            assert text.startswith(("Error PATH_REFUSED", "Error APPROVAL_REQUIRED"))
        names = [row["id"] for row in json.loads(typed(home, home, "approvals", "--json").out)]
        for name in names:
            typed(home, home, "approve", name)
        refused = one.call("Write", file_path=".config/menugate/menugate.yaml", content="profile: unrestricted")
        assert refused["content"][0]["text"].startswith("Error PATH_REFUSED")
        one.call("bash", command="mkdir -p .config/menugate && touch .config/menugate/menugate.yaml")
        grepped = one.call("grep", pattern=".", path=".local/state", output_mode="content")
        assert (keys / "ledger.key").read_text().strip() not in grepped["content"][0]["text"]
    assert (operators.read_text() if operators.exists() else None) == (said if there else None)
