"""Do the operator's rules hold through every way to a tool?"""

from pathlib import Path

import pytest

from tests.doors.pipe import pipe

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
            (one.call("Read", file_path="notes.md"), None),
        ]:
            assert answer["isError"] is (code is not None)
            text = answer["content"][0]["text"]
            assert "the plan" not in text
            assert code is None or text.startswith(f"Error {code}")
