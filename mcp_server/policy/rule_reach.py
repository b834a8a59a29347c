"""Can a predicate ever be true of arguments that fit the tool's schema? A rule that can never match is an error.

Only certain cases are errors: if the schema says nothing, anything is possible.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from mcp_server.model.text import find_nearest_name, format_list, quote_text
from mcp_server.model.tools import Schema
from mcp_server.policy.rule_match import build_predicate_test
from mcp_server.policy.rule_syntax import Predicate, PredicateOperator

MAX_DEPTH = 16
JSON_TYPES = frozenset(("string", "integer", "number", "boolean", "array", "object", "null"))
ANYTHING: Schema = {}


def find_schemas_at(schema: Schema, path: Sequence[str]) -> tuple[Schema, ...]:
    """Find the schemas of what a path may lead to: none if it leads nowhere, an empty schema for anything."""
    level: tuple[Schema, ...] = (schema,)
    for key in path:
        level = tuple(
            below for node in level for one in _list_branches(node) for below in _find_schemas_below(one, key)
        )
    return level


def find_names_at(schema: Schema, path: Sequence[str]) -> frozenset[str]:
    """Find the names that may follow on a path, as far as the schema lists them."""
    level = [one for node in find_schemas_at(schema, path) for one in _list_branches(node)]
    return frozenset(name for one in level for name in one.get("properties", {}))


def describe_impossible_predicates(schema: Schema, predicates: Sequence[Predicate]) -> str | None:
    """Say why the predicates can never be true together; None if they can."""
    for predicate in predicates:
        fault = _describe_impossible_predicate(schema, predicate)
        if fault:
            return fault
    for one in predicates:
        for other in predicates:
            if one.path == other.path and _is_contradiction(schema, one, other):
                return f"`{one.where}` cannot satisfy `{one.op}` and `{other.op}` at once."
    return None


def describe_unknown_value(schema: Schema, predicates: Sequence[Predicate]) -> str | None:
    """Describe a value that an argument with few values never has, and the one that was meant."""
    for predicate in predicates:
        leaves = [leaf for node in find_schemas_at(schema, predicate.path) for leaf in _list_branches(node)]
        known = [_list_enumerated_values(leaf) for leaf in leaves]
        if (
            predicate.op
            not in (PredicateOperator.EQ, PredicateOperator.NEQ, PredicateOperator.IN, PredicateOperator.NOT_IN)
            or None in known
        ):
            continue
        choices = [value for values in known for value in values or () if isinstance(value, str)]
        operands: list[Any] = (
            predicate.value if predicate.op in (PredicateOperator.IN, PredicateOperator.NOT_IN) else [predicate.value]
        )
        folded = {choice.casefold() for choice in choices}
        wrong = next((value for value in operands if isinstance(value, str) and value.casefold() not in folded), None)
        if choices and wrong is not None:
            near = find_nearest_name(wrong, choices)
            hint = f"Did you mean {quote_text(near)}?" if near else f"It can be {format_list(choices)}."
            return f"`{predicate.where}` is never {quote_text(wrong)}. {hint}"
    return None


def _list_branches(node: Any, depth: int = 0) -> Iterator[Schema]:
    """Yield the schema, its alternatives, and those of the elements if it is a list."""
    if depth > MAX_DEPTH or not isinstance(node, Mapping) or "$ref" in node:
        yield ANYTHING
        return
    schema = cast(Schema, node)
    nested = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())]
    for one in nested:
        yield from _list_branches(one, depth + 1)
    if "type" in schema or "properties" in schema or not nested:
        yield schema
    if "items" in schema:
        yield from _list_branches(schema["items"], depth + 1)


def _find_schemas_below(schema: Schema, key: str) -> Iterator[Schema]:
    if "object" not in _get_types(schema):
        return
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    if key == "*" and properties:
        yield from properties.values()
    elif key in properties:
        yield properties[key]
    elif "patternProperties" in schema or (more is True and not properties):
        yield ANYTHING
    if isinstance(more, Mapping) and key not in properties:
        yield cast(Schema, more)


def _get_types(schema: Schema) -> frozenset[str]:
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset((declared,))
    if isinstance(declared, list | tuple):
        return frozenset(cast(list[str], declared))
    return frozenset(("object",)) if "properties" in schema else JSON_TYPES


def _list_enumerated_values(schema: Schema) -> list[Any] | None:
    """List every value that the schema allows, if it lists them; else None."""
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    if _get_types(schema) <= {"boolean", "null"}:
        return [
            value
            for kind, values in (("boolean", (True, False)), ("null", (None,)))
            if kind in _get_types(schema)
            for value in values
        ]
    return None


def _describe_impossible_predicate(schema: Schema, predicate: Predicate) -> str | None:
    if predicate.op is PredicateOperator.EXISTS:
        always = len(predicate.path) == 1 and predicate.path[0] in schema.get("required", ())
        return f"`{predicate.where}` is a required argument." if always and not predicate.value else None
    leaves = [leaf for node in find_schemas_at(schema, predicate.path) for leaf in _list_branches(node)]
    if any(_is_possible(leaf, predicate) for leaf in leaves):
        return None
    return f"`{predicate.op}` {quote_text(str(predicate.value))} is never true of `{predicate.where}`."


def _is_possible(leaf: Schema, predicate: Predicate) -> bool:
    known = _list_enumerated_values(leaf)
    if known is not None:
        test = build_predicate_test(predicate, cautious=False)
        return any(test(value) is True for value in known)
    types, value = _get_types(leaf), predicate.value
    numbers = types & {"number", "integer"}
    if predicate.op is PredicateOperator.GT:
        return bool(numbers) and leaf.get("maximum", value + 1) > value
    if predicate.op is PredicateOperator.LT:
        return bool(numbers) and leaf.get("minimum", value - 1) < value
    if predicate.op in (PredicateOperator.GLOB, PredicateOperator.REGEX):
        return "string" in types
    if predicate.op is PredicateOperator.CONTAINS:
        return "array" in types or ("string" in types and isinstance(value, str))
    if predicate.op is PredicateOperator.EQ:
        return _is_value_allowed(leaf, value)
    return predicate.op is not PredicateOperator.IN or any(_is_value_allowed(leaf, one) for one in value)


def _is_value_allowed(leaf: Schema, value: Any) -> bool:
    types = _get_types(leaf)
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        whole = "number" in types or ("integer" in types and value == int(value))
        return whole and leaf.get("minimum", value) <= value <= leaf.get("maximum", value)
    kinds = {str: "string", list: "array", type(None): "null"}
    return kinds[type(value)] in types


def _is_contradiction(schema: Schema, one: Predicate, other: Predicate) -> bool:
    """True if no value satisfies both. In a list each may hold for another element, so only single values count."""
    if len(one.path) > 1 or any(
        "array" in _get_types(leaf) for node in find_schemas_at(schema, one.path) for leaf in _list_branches(node)
    ):
        return False
    if one.op is PredicateOperator.EQ and one is not other:
        return build_predicate_test(other, cautious=False)(one.value) is not True
    return one.op is PredicateOperator.GT and other.op is PredicateOperator.LT and one.value >= other.value
