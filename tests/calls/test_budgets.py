"""What does a run spend, and when is that too much?"""

from pathlib import Path

import pytest

from mcp_server.calls.budgets import BudgetMeter
from mcp_server.model.results import Code, Done, Problem
from tests.clients.pipe import pipe

FAILED = Problem(Code.NOT_FOUND, "nothing there")


def test_only_the_same_call_failing_again_is_counted_as_such() -> None:
    spending = BudgetMeter()
    for call, ending, failures in [
        ("Read a", FAILED, 1),
        ("Read a", FAILED, 2),
        ("Read b", FAILED, 1),
        ("Read b", Done("text"), 0),
        ("Read b", FAILED, 1),
    ]:
        spending.add_result(ending, call)
        assert spending.get_budget_use().repeated_failures == failures
    assert spending.get_budget_use().result_bytes == 4 * len(FAILED.text) + len("text")


def test_minutes_run_from_the_first_call() -> None:
    spending = BudgetMeter()
    assert spending.get_budget_use().minutes == 0
    spending.begun_ns = 0
    assert spending.get_budget_use().minutes > 0


@pytest.mark.parametrize(
    ("budget", "calls", "refused"),
    [
        ("calls: 2", ["notes.md", "notes.md", "notes.md"], 2),
        ("repeated_failures: 2", ["gone", "gone", "gone"], 2),
        ("result_bytes: 10", ["notes.md", "notes.md"], 1),
    ],
)
def test_a_spent_budget_refuses_and_the_next_run_has_a_new_one(
    workspace: Path, home: Path, tmp_path: Path, budget: str, calls: list[str], refused: int
) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text(f"budget:\n  {budget}\n")
    with pipe(workspace, home, "--mode", "swe", "--config", str(config)) as one:
        one.hello()
        answers = [one.call("Read", file_path=path)["content"][0]["text"] for path in calls]
        assert [number for number, text in enumerate(answers) if "BUDGET_SPENT" in text] == [refused]
        assert not one.call("think", content="still there")["isError"]
        assert not one.call("complete", final_answer="that is all")["isError"]
        assert "BUDGET_SPENT" not in one.call("Read", file_path="notes.md")["content"][0]["text"]


def test_calls_made_at_once_share_no_place_in_the_budget(workspace: Path, home: Path, tmp_path: Path) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text("budget:\n  calls: 3\n")
    with pipe(workspace, home, "--config", str(config), "--mode", "swe") as one:
        one.hello()
        asked = [one.send("tools/call", {"name": "Read", "arguments": {"file_path": "notes.md"}}) for _ in range(12)]
        answers: dict[int, bool] = {}
        while len(answers) < len(asked):
            message = one.message()
            if message.get("id") in asked:
                answers[message["id"]] = bool(message["result"].get("isError"))
        assert list(answers.values()).count(False) == 3
