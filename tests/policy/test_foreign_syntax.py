"""Is a predicate as another language writes it known for one, and is a text that can be meant left alone?"""

import pytest

from mcp_server.policy.foreign_syntax import describe_foreign_predicate
from mcp_server.policy.rule_syntax import PredicateOperator

ARGUMENTS = ("depth", "path", "flag")
OPERATORS = tuple(PredicateOperator)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("depth: 3", "`depth eq 3`"),
        ("$.depth gt 3", "`depth gt 3`"),
        ("3 lt depth", "`depth gt 3`"),
        ('"depth" gt 3', "`depth gt 3`"),
        ("gt depth 3", "`depth gt 3`"),
        ("not depth", "`depth exists false`"),
    ],
)
def test_each_is_said_with_the_spelling_that_speaks(text: str, meant: str) -> None:
    message = describe_foreign_predicate(text, ARGUMENTS, OPERATORS, command=False)
    assert message is not None
    assert f"did you mean {meant}?" in message


@pytest.mark.parametrize("text", ["src/**", "docs/a.md", "a plain text", "depth gt 3", ""])
def test_what_can_be_meant_is_left_alone(text: str) -> None:
    assert describe_foreign_predicate(text, ARGUMENTS, OPERATORS, command=False) is None


def test_in_a_line_of_shell_a_name_may_be_a_program() -> None:
    assert describe_foreign_predicate("not depth", ARGUMENTS, OPERATORS, command=True) is None
