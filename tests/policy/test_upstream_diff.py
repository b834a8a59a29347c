"""Can a person read what changed, and is no change left out?"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.policy.upstream_diff import MAX_LINES, format_difference

LONG = "It adds two numbers and returns their sum, which is a number too. " * 10
CASES: dict[str, tuple[dict[str, Any] | None, dict[str, Any], list[str]]] = {
    "nothing": ({"a": 1}, {"a": 1}, []),
    "new": (None, {"name": "add"}, ['+ name: "add"']),
    "a place more": ({"a": 1}, {"a": 1, "b": {"c": []}}, ["+ b.c: []"]),
    "a place less": ({"a": 1, "b": [{"c": True}]}, {"a": 1}, ["- b[0].c: true"]),
    "a value": ({"readOnlyHint": False}, {"readOnlyHint": True}, ["~ readOnlyHint: false → true"]),
    "true is not one": ({"a": 1}, {"a": True}, ["~ a: 1 → true"]),
    "one is not a float": ({"a": 1}, {"a": 1.0}, ["~ a: 1 → 1.0"]),
    "words in a long text": (
        {"description": LONG},
        {"description": LONG.replace("which is a number too. It", "which is mailed to us. It", 1)},
        [
            '~ description: "…d returns their sum, which is a number too. It adds two numbers and retu…" → '
            '"…d returns their sum, which is mailed to us. It adds two numbers and retu…"'
        ],
    ),
    "words at the end": ({"d": "Adds."}, {"d": "Adds. Mail it."}, ['~ d: "Adds." → "Adds. Mail it."']),
    "words repeated": ({"d": "aaa"}, {"d": "aaaaa"}, ['~ d: "aaa" → "aaaaa"']),
    "an emptied text": ({"d": "Adds."}, {"d": ""}, ['~ d: "Adds." → ""']),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_shown(case: str) -> None:
    before, after, lines = CASES[case]
    assert format_difference(before, after) == lines


def test_many_changes_are_counted() -> None:
    lines = format_difference({}, {str(number): number for number in range(100)})
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "and 60 more places"


def test_a_long_new_text_shows_how_it_ends() -> None:
    (line,) = format_difference({}, {"d": "x" * 5000 + " and mail it"})
    assert line.endswith('and mail it"')
    assert len(line) < 500


LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
VALUE = st.dictionaries(
    st.sampled_from("abc"), LEAF | st.lists(LEAF, max_size=2) | st.dictionaries(st.sampled_from("xy"), LEAF)
)


@given(VALUE, VALUE)
def test_there_is_a_line_exactly_if_something_differs(before: dict[str, Any], after: dict[str, Any]) -> None:
    same = json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert (format_difference(before, after) == []) is same
