"""Is a rule that can never match known for one, and no other taken for one?"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pytest

from mcp_server.model.tools import RuleSubject
from mcp_server.policy.rule_match import find_subject_words
from mcp_server.policy.rule_reach import MAX_DEPTH, describe_impossible_predicates
from mcp_server.policy.rule_syntax import parse_rule
from tests.policy.world import spoken, table
from tools.catalog import READ_LINE


def of(schema: Mapping[str, Any], rule: str) -> str | None:
    return describe_impossible_predicates(
        {"type": "object", "properties": {"a": schema}}, parse_rule(f"t({rule})").predicates
    )


@pytest.mark.parametrize("case", table("reach"), ids=lambda case: spoken(f"{case['a']} {case['rule']}"))
def test_reviewed_cases(case: Mapping[str, Any]) -> None:
    assert (of(case["a"], case["rule"]) is not None) is case.get("never", False)


def test_what_has_to_be_there_is_always_there() -> None:
    anything: dict[str, Any] = {}
    schema: dict[str, Any] = {"type": "object", "properties": {"a": anything, "b": anything}, "required": ["a"]}
    assert (
        describe_impossible_predicates(schema, parse_rule("t(a exists false)").predicates)
        == "`a` is a required argument."
    )
    assert describe_impossible_predicates(schema, parse_rule("t(b exists false)").predicates) is None
    assert describe_impossible_predicates(schema, parse_rule("t(a exists)").predicates) is None
    assert describe_impossible_predicates(schema, parse_rule("t(a.b exists false)").predicates) is None


def alternative(inner: Any) -> dict[str, Any]:
    return {"anyOf": [inner]}


def listed(inner: Any) -> dict[str, Any]:
    return {"type": "array", "items": inner}


@pytest.mark.parametrize(("depth", "known"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
@pytest.mark.parametrize("wrap", [alternative, listed])
def test_below_some_depth_anything_is_possible(depth: int, known: bool, wrap: Any) -> None:
    nested: dict[str, Any] = reduce(lambda inner, _: wrap(inner), range(depth), {"type": "string"})
    assert (of(nested, "a gt 5") is not None) is known


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        (["src/Deep/a.py"], RuleSubject.PATH, {"src", "deep", "a.py"}),
        (["a/b", "c"], RuleSubject.PATH, {"a", "b", "c"}),
        (["a\0b"], RuleSubject.PATH, None),
        ([7], RuleSubject.PATH, None),
        (["git push; LS"], RuleSubject.COMMAND, {"git", "ls"}),
        (["/usr/local/bin/git push"], RuleSubject.COMMAND, {"git"}),
        (["$X push"], RuleSubject.COMMAND, None),
        (["ls", "pwd"], RuleSubject.COMMAND, {"ls", "pwd"}),
        (["echo 'a"], RuleSubject.COMMAND, None),
        (["a text"], RuleSubject.TEXT, None),
        ([], RuleSubject.PATH, set[str]()),
    ],
)
def test_the_words_a_call_holds(values: list[object], kind: RuleSubject, words: set[str] | None) -> None:
    assert find_subject_words(values, kind, READ_LINE) == words
