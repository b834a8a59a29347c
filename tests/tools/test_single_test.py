"""Is one test run by its name whatever is in it, and is it known how it ended?"""

import shlex

import pytest

from mcp_server.model.results import Code, Done, Ending, Problem
from tools.single_test import (
    SingleTestOutcome,
    build_test_command,
    find_name_fault,
    get_exit_code,
    is_unittest_name,
    parse_test_run,
)

PYTEST, UNITTEST = "tests/test_a.py::test_b", "tests.test_a.Case.test_b"


@pytest.mark.parametrize(
    "test", ["-x", "@file", "a\nb", "a\x7fb", "/etc/test.py", "../test_a.py", "a/../../b.py::test_c"]
)
def test_what_is_no_name_of_a_test_here(test: str) -> None:
    assert find_name_fault(test)


@pytest.mark.parametrize("test", [PYTEST, UNITTEST, "test_a.py::test_b[$(touch x)]", "test_a.py::test_b[..-1]"])
def test_a_name_stays_one_word(test: str) -> None:
    assert find_name_fault(test) == ""
    assert shlex.split(build_test_command(test))[-1] == test


def test_each_is_run_as_its_name_says() -> None:
    assert is_unittest_name(UNITTEST)
    assert not is_unittest_name(PYTEST)
    assert not is_unittest_name("tests/test_a.py")
    assert build_test_command(UNITTEST).startswith("python3 -m unittest ")
    assert build_test_command(PYTEST, ".venv/bin/python").startswith(".venv/bin/python -m pytest -q ")


def ended(code: int | None, text: str) -> Ending:
    return Done(text, {"exit_code": code, "output": text})


@pytest.mark.parametrize(
    ("test", "code", "text", "outcome"),
    [
        (PYTEST, 0, "1 passed in 0.01s", SingleTestOutcome.PASSED),
        (PYTEST, 0, "1 skipped in 0.01s", SingleTestOutcome.UNCLEAR),
        (PYTEST, 1, "1 failed", SingleTestOutcome.FAILED),
        (PYTEST, 2, "ERROR collecting tests/test_a.py", SingleTestOutcome.FAILED),
        (PYTEST, 4, "no tests ran", SingleTestOutcome.MISSING),
        (PYTEST, 1, "python3: No module named pytest", SingleTestOutcome.UNCLEAR),
        (PYTEST, 3, "internal error", SingleTestOutcome.UNCLEAR),
        (UNITTEST, 0, "Ran 1 test in 0.000s\n\nOK", SingleTestOutcome.PASSED),
        (UNITTEST, 0, "Ran 1 test\n\nOK (skipped=1)", SingleTestOutcome.UNCLEAR),
        (UNITTEST, 1, "FAILED (failures=1)", SingleTestOutcome.FAILED),
        (UNITTEST, 1, "unittest.loader._FailedTest: no attribute", SingleTestOutcome.MISSING),
        (UNITTEST, 1, "Failed to import test module\nNo module named 'numpy'", SingleTestOutcome.FAILED),
        (UNITTEST, 1, "Failed to import test module: _FailedTest\nNo module named 'tests'", SingleTestOutcome.MISSING),
    ],
)
def test_how_it_ended(test: str, code: int, text: str, outcome: SingleTestOutcome) -> None:
    run = parse_test_run(test, ended(code, text))
    assert (run.outcome, run.text, run.refusal) == (outcome, text, None)


def test_what_was_not_run_is_unclear_and_says_why() -> None:
    refused = Problem(Code.PROFILE_TOO_LOW, "not here")
    run = parse_test_run(PYTEST, refused)
    assert (run.outcome, run.refusal) == (SingleTestOutcome.UNCLEAR, refused)
    assert get_exit_code(ended(None, "still running")) is None
    assert get_exit_code(Problem(Code.TOOL_FAILED, "no", data={"exit_code": 3})) == 3
