"""Is a predicate with a slip in it known for one, and is no text that a call could have taken for one?"""

import pytest

from mcp_server.policy.rule_slips import (
    OPERATOR_BY_SYNONYM,
    describe_missing_argument,
    describe_predicate_slip,
    describe_stray_part,
    describe_wrong_operator,
)
from mcp_server.policy.rule_syntax import PredicateOperator

ARGUMENTS = ("depth", "path", "flag")
OPERATORS = tuple(PredicateOperator)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if depth gt 3", "did you mean `depth gt 3`?"),
        ("path starts with 'src/'", 'did you mean `path regex "^src/"`?'),
        ("depth not in [1, 2]", "did you mean `depth not_in [1, 2]`?"),
        ("src/**)", "there is an extra bracket; did you mean `src/**`?"),
        ("(src/**)", "there is an extra pair of brackets; did you mean `src/**`?"),
        ("C:\\src\\a", "is a Windows path"),
        ("src\\a", "did you mean `src/a`?"),
        ("$HOME/.ssh", "does not expand variables such as `$HOME`"),
    ],
)
def test_what_is_too_much_or_too_little_is_named(text: str, message: str) -> None:
    assert message in (describe_stray_part(text, ARGUMENTS, OPERATORS, command=False) or "")


@pytest.mark.parametrize("text", ["src/(group)/**", "src/**", "a_plain_name", "depth gt 3"])
def test_a_pattern_is_no_stray_part(text: str) -> None:
    assert describe_stray_part(text, ARGUMENTS, OPERATORS, command=False) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("depth > 3", "did you mean `gt`?"),
        ("depth >= 3", "did you mean `gt` with the next lower number?"),
        ("depth equals 3", "did you mean `eq`?"),
        ("depth GT 3", "write `gt` in lower case"),
        ("depth missing", "write `exists false`"),
        ("not path eq 'a'", "a predicate cannot contain `not` or brackets"),
        ("depth", "write `depth exists`"),
        ("dept > 3", "There is no argument `dept` either; did you mean `depth`?"),
        ("src/** and depth gt 3", "`and` joins predicates"),
    ],
)
def test_a_slip_is_said_with_what_was_meant(text: str, message: str) -> None:
    assert message in (describe_predicate_slip(text, ARGUMENTS, OPERATORS, command=False) or "")


@pytest.mark.parametrize("text", ["git push", "depth charge", "npm run depth"])
def test_words_of_a_command_are_no_slip(text: str) -> None:
    assert describe_predicate_slip(text, ARGUMENTS, OPERATORS, command=True) is None


def test_every_saying_leads_to_an_operator_and_no_operator_is_wrong() -> None:
    assert set(OPERATOR_BY_SYNONYM.values()) <= set(OPERATORS)
    assert not OPERATOR_BY_SYNONYM.keys() & set(OPERATORS)
    assert [op for op in OPERATORS if describe_wrong_operator(op, OPERATORS)] == []
    assert [
        word
        for word in OPERATOR_BY_SYNONYM
        if f"`{OPERATOR_BY_SYNONYM[word]}`" not in (describe_wrong_operator(word, OPERATORS) or "")
    ] == []


def test_a_missing_argument_is_said_only_where_it_is_missing() -> None:
    assert describe_missing_argument("depth.deep", ARGUMENTS) == ""
    assert describe_missing_argument("xyz", ARGUMENTS) == " There is no argument `xyz` either"
