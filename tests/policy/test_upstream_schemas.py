"""Is a schema from outside used only if no host and no check can be harmed by it?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.regex import is_exponential
from mcp_server.policy.upstream_schemas import find_schema_fault, leave_out_arguments, normalize_schema
from tests.yaml_text import load_yaml

CASES = load_yaml((Path(__file__).parents[1] / "tables" / "upstream_schemas.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_schema_is_used_or_set_aside(case: Mapping[str, Any]) -> None:
    fault = find_schema_fault(case["schema"])
    assert (case["says"] in str(fault)) if "says" in case else fault is None


def test_depth_and_size_are_bounded() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(100_000):
        deep = {"items": deep}
    assert "nested more than" in str(find_schema_fault({"type": "object", "properties": {"a": deep}}))
    wide = {"type": "object", "properties": {f"a{number}": {"type": "string"} for number in range(5_000)}}
    assert "parts" in str(find_schema_fault(wide))
    assert "characters" in str(find_schema_fault({"type": "object", "description": "x" * 200_000}))


def test_boolean_schemas_become_objects_everywhere() -> None:
    schema = {"properties": {"a": True, "b": {"items": True, "anyOf": [False]}}, "additionalProperties": False}
    assert normalize_schema(schema) == {
        "properties": {"a": {}, "b": {"items": True, "anyOf": [{"not": {}}]}},
        "additionalProperties": False,
    }


def test_arguments_leave_the_schema() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    assert leave_out_arguments(schema, frozenset({"a"})) == {
        "type": "object",
        "properties": {"b": {}},
        "required": ["b"],
    }
    assert leave_out_arguments(schema, frozenset({"a", "b"})) == {"type": "object", "properties": {}}


EXPONENTIAL = [r"(a+)+", r"(\w+ ?)*", r"(a|b+)*", r"(x+x+)+y", r"((a+))+", r"((-a+)*)+", r"(?:[a-z]+)*$", r"(.*)*"]
FAST = [
    r"^[a-z0-9]+(-[a-z0-9]+)*$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^([a-z]+\.)+[a-z]{2,}$",
    r"^(foo|bar)+$",
    r"^(?:[A-Z]{2}\d+,)*[A-Z]{2}\d+$",
    r"^(/[^/]+)*/?$",
    r"^(-+[a-z]+)*$",
    r"(a+|b)?c",
]


@pytest.mark.parametrize(("pattern", "slow"), [(one, True) for one in EXPONENTIAL] + [(one, False) for one in FAST])
def test_patterns_that_take_exponential_time_are_known(pattern: str, slow: bool) -> None:
    assert is_exponential(pattern) is slow
