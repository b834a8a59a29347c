"""Did a line run tests, and what does its exit code say about them?"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.verification import FAILED, PASSED, LineEvidence, find_test_outcome, judge_line
from tests.policy.world import spoken, table, tools
from tools.catalog import READ_LINE

LINES: dict[str, list[str]] = table("tested_lines")
BASH = tools()["bash"]


def test_the_table_speaks_of_every_kind() -> None:
    assert set(LINES) == set(LineEvidence)


@pytest.mark.parametrize(
    ("said", "line"),
    [(said, line) for said, lines in LINES.items() for line in lines],
    ids=lambda value: spoken(repr(value)),
)
def test_reviewed_lines(said: str, line: str) -> None:
    assert judge_line(READ_LINE(line), READ_LINE) == said


@given(st.text(max_size=60))
def test_what_stands_beside_a_test_run_takes_the_proof_from_it(line: str) -> None:
    assert judge_line(READ_LINE(f"pytest; {line}"), READ_LINE) is not LineEvidence.PROOF


@pytest.mark.parametrize(
    ("line", "ending", "said"),
    [
        ("pytest -q", Done("", {"exit_code": 0}), PASSED),
        ("cd src && python -m pytest tests", Done("", {"exit_code": 1}), FAILED),
        ("make -C web test", Problem(Code.TOOL_FAILED, "exit code 2", data={"exit_code": 2}), FAILED),
        ("npm run test", Problem(Code.TIMEOUT, "too long"), FAILED),
        ("go test ./...", Done("ok"), ""),
        ("pytest | tail -5", Done("", {"exit_code": 0}), ""),
        ("pytest || true", Done("", {"exit_code": 0}), ""),
        ("grep pytest notes.md", Done("", {"exit_code": 0}), ""),
        ("cat pytest.ini", Done("", {"exit_code": 1}), ""),
        ("ls", Problem(Code.TOOL_FAILED, "no"), ""),
        ("pytest", None, ""),
    ],
)
def test_how_they_ended_is_told_by_the_exit_code_where_that_is_theirs(
    line: str, ending: Ending | None, said: str
) -> None:
    assert find_test_outcome(BASH, {"command": line}, ending, READ_LINE) == said


@pytest.mark.parametrize("arguments", [{}, {"command": 7}])
def test_a_call_without_a_line_ran_none(arguments: dict[str, Any]) -> None:
    assert find_test_outcome(BASH, arguments, Done("", {"exit_code": 0}), READ_LINE) == ""


def test_only_a_line_of_shell_runs_tests() -> None:
    assert find_test_outcome(tools()["Read"], {"file_path": "pytest"}, Done("", {"exit_code": 0}), READ_LINE) == ""
