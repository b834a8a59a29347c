"""Is the text of a rule taken apart as it was meant, or refused where it goes wrong?"""

import pytest

from mcp_server.policy.rule_syntax import MalformedRule, ParsedRule, Predicate, PredicateOperator, parse_rule


def test_what_a_text_is_taken_apart_into() -> None:
    assert parse_rule("server:tool(a.b-c gt -1.5 and d in ['x\\'y', \"\\u00e9\", 2])") == ParsedRule(
        "server:tool",
        None,
        (Predicate(("a", "b-c"), PredicateOperator.GT, -1.5), Predicate(("d",), PredicateOperator.IN, ["x'y", "é", 2])),
    )
    assert parse_rule("bash('a eq b')") == ParsedRule("bash", "a eq b")
    assert parse_rule("bash(echo (a))") == ParsedRule("bash", "echo (a)")
    assert parse_rule('bash("a\nb")') == ParsedRule("bash", "a\nb")
    assert parse_rule("mcp__s__t__u") == ParsedRule("s:t__u")


def test_malformed_text_says_where() -> None:
    with pytest.raises(MalformedRule, match="`now` is left over"):
        parse_rule("bash(timeout gt 1 now)")
