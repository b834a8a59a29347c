"""Are criteria refused that cannot be checked, and is a text looked for as it stands?"""

import re
from typing import Any

import pytest

from mcp_server.model.results import Code
from tools.todos.criteria import CHECKS, KEYS, escape_pattern, find_criteria_problem


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("file_exists", {"path": "a.txt"}),
        ("file_contains", {"path": "a.txt", "text": "x"}),
        ("file_contains", {"path": "a.txt", "pattern": "x+"}),
        ("command_exit_zero", {"command": "make", "seconds": 5}),
        ("test_passes", {"test": "tests/test_a.py::test_b"}),
    ],
)
def test_each_kind_has_what_it_needs(kind: str, params: dict[str, Any]) -> None:
    assert find_criteria_problem([{"type": kind, "params": params}]) is None


@pytest.mark.parametrize(
    ("kind", "params", "fault"),
    [
        ("file_exists", {}, "needs `path`"),
        ("file_exists", {"path": "a", "text": "x"}, "takes no `text`"),
        ("file_contains", {"path": "a"}, "needs either `text` or `pattern`"),
        ("file_contains", {"path": "a", "text": "x", "pattern": "x"}, "needs either `text` or `pattern`"),
        ("command_exit_zero", {"seconds": 5}, "needs `command`"),
        ("test_passes", {"test": "--help"}, "would be read as an option"),
    ],
)
def test_what_cannot_be_checked_is_named_by_its_number(kind: str, params: dict[str, Any], fault: str) -> None:
    fine = {"type": "file_exists", "params": {"path": "a.txt"}}
    problem = find_criteria_problem([fine, {"type": kind, "params": params}])
    assert problem is not None
    assert problem.code is Code.INVALID_ARGUMENTS
    assert problem.message.startswith(f"criterion 2, `{kind}`, ")
    assert fault in problem.message


def test_every_kind_has_a_check() -> None:
    assert set(KEYS) == set(CHECKS)


@pytest.mark.parametrize("text", ["a+b (really)", "second\nline", "$^.*[x]{2}|\\", "grüße 🎉", " "])
def test_a_text_is_looked_for_as_it_is(text: str) -> None:
    pattern = re.compile(escape_pattern(text))
    assert pattern.fullmatch(text)
    assert not pattern.fullmatch(text + "x")
