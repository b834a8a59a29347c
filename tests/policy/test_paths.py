"""Has every path one spelling before it is compared, and is a rule that narrows blind to case where that narrows?"""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_server.policy.paths import build_place_test, normalize_path
from mcp_server.policy.rule_match import build_predicate_test
from mcp_server.policy.rule_syntax import Predicate, PredicateOperator

ROOTS = ("/work",)


@pytest.mark.parametrize(
    ("path", "spelling"),
    [
        ("docs/a.md", "docs/a.md"),
        ("./docs//a.md", "docs/a.md"),
        ("src/../docs/a.md", "docs/a.md"),
        ("docs/a.md/", "docs/a.md"),
        ("/work/docs/a.md", "docs/a.md"),
        ("/work", "."),
        ("", "."),
        ("/etc/../etc/passwd", "/etc/passwd"),
        ("/workshop/a", "/workshop/a"),
        ("../a", "../a"),
        ("cafe\u0301.md", "caf\u00e9.md"),
    ],
)
def test_every_spelling_is_the_same_path(path: str, spelling: str) -> None:
    assert normalize_path(path, ROOTS) == spelling


def build(op: PredicateOperator, value: Any, cautious: bool) -> Callable[[Any], bool | None]:
    predicate = Predicate(("path",), op, value)
    return build_place_test(predicate, cautious, ROOTS, lambda one: build_predicate_test(one, cautious))


@pytest.mark.parametrize("cautious", [True, False])
def test_equal_paths_are_equal_however_they_are_written(cautious: bool) -> None:
    test = build(PredicateOperator.EQ, "docs/a.md", cautious)
    assert test("./docs/x/../a.md") is True
    assert test("/work/docs/a.md") is True
    assert test("docs/b.md") is False


def test_case_is_taken_for_none_where_that_narrows() -> None:
    assert build(PredicateOperator.EQ, "docs/a.md", cautious=True)("Docs/A.md") is True
    assert build(PredicateOperator.EQ, "docs/a.md", cautious=False)("Docs/A.md") is False
    assert build(PredicateOperator.NEQ, "docs/a.md", cautious=True)("Docs/A.md") is True
    assert build(PredicateOperator.NEQ, "docs/a.md", cautious=False)("Docs/A.md") is False


def test_a_part_of_a_path_and_a_list_of_paths() -> None:
    assert build(PredicateOperator.CONTAINS, "docs/", cautious=True)("/work/x/../docs/a.md") is True
    among = build(PredicateOperator.IN, ["a.md", "./b.md"], cautious=True)
    assert among("/work/b.md") is True
    assert among("c.md") is False


def test_what_cannot_be_judged_is_neither() -> None:
    test = build(PredicateOperator.EQ, "a", cautious=True)
    assert test("a\0b") is None
    assert test("a" * 1_000_000) is None
