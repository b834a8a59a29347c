"""Can a predicate ever be true of arguments that fit the tool's schema? What can never match is refused at start.

Only what is certain is found: where a schema says nothing, anything is possible.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from mcp_server.model.text import nearest, quoted
from mcp_server.model.tools import Schema
from mcp_server.policy.rule_match import predicate_test
from mcp_server.policy.rule_syntax import Predicate, PredicateOperator

DEEPEST = 16
JSON_TYPES = frozenset(("string", "integer", "number", "boolean", "array", "object", "null"))
ANYTHING: Schema = {}


def schemas_at(schema: Schema, path: Sequence[str]) -> tuple[Schema, ...]:
    """The schemas of what a path may lead to; none where it leads nowhere, an empty one for anything."""
    level: tuple[Schema, ...] = (schema,)
    for key in path:
        level = tuple(below for node in level for one in _branches(node) for below in _below(one, key))
    return level


def names_at(schema: Schema, path: Sequence[str]) -> frozenset[str]:
    """The names that may follow on a path, as far as the schema knows them."""
    level = [one for node in schemas_at(schema, path) for one in _branches(node)]
    return frozenset(name for one in level for name in one.get("properties", {}))


def never(schema: Schema, predicates: Sequence[Predicate]) -> str | None:
    """Why the predicates can never be true together, in words for whoever wrote them; None where they can."""
    for predicate in predicates:
        fault = _alone(schema, predicate)
        if fault:
            return fault
    for one in predicates:
        for other in predicates:
            if one.path == other.path and _contradict(schema, one, other):
                return f"`{one.where}` cannot satisfy `{one.op}` and `{other.op}` at once."
    return None


def no_such_value(schema: Schema, predicates: Sequence[Predicate]) -> str | None:
    """A text that the argument, which has few values, never is, and the one that was meant."""
    for predicate in predicates:
        leaves = [leaf for node in schemas_at(schema, predicate.path) for leaf in _branches(node)]
        known = [_enumerated(leaf) for leaf in leaves]
        if (
            predicate.op
            not in (PredicateOperator.EQ, PredicateOperator.NEQ, PredicateOperator.IN, PredicateOperator.NOT_IN)
            or None in known
        ):
            continue
        every = [one for values in known for one in values or () if isinstance(one, str)]
        said: list[Any] = (
            predicate.value if predicate.op in (PredicateOperator.IN, PredicateOperator.NOT_IN) else [predicate.value]
        )
        folded = {one.casefold() for one in every}
        wrong = next((one for one in said if isinstance(one, str) and one.casefold() not in folded), None)
        if every and wrong is not None:
            near = nearest(wrong, every)
            meant = f"Did you mean {quoted(near)}?" if near else f"There are {', '.join(map(quoted, every))}."
            return f"`{predicate.where}` is never {quoted(wrong)}. {meant}"
    return None


def _branches(node: Any, depth: int = 0) -> Iterator[Schema]:
    """A schema and its alternatives, and through a list its elements."""
    if depth > DEEPEST or not isinstance(node, Mapping) or "$ref" in node:
        yield ANYTHING
        return
    schema = cast(Schema, node)
    nested = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())]
    for one in nested:
        yield from _branches(one, depth + 1)
    if "type" in schema or "properties" in schema or not nested:
        yield schema
    if "items" in schema:
        yield from _branches(schema["items"], depth + 1)


def _below(schema: Schema, key: str) -> Iterator[Schema]:
    if "object" not in _types(schema):
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


def _types(schema: Schema) -> frozenset[str]:
    said = schema.get("type")
    if isinstance(said, str):
        return frozenset((said,))
    if isinstance(said, list | tuple):
        return frozenset(cast(list[str], said))
    return frozenset(("object",)) if "properties" in schema else JSON_TYPES


def _enumerated(schema: Schema) -> list[Any] | None:
    """Every value there is, where they are few."""
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    if _types(schema) <= {"boolean", "null"}:
        return [
            value
            for kind, values in (("boolean", (True, False)), ("null", (None,)))
            if kind in _types(schema)
            for value in values
        ]
    return None


def _alone(schema: Schema, predicate: Predicate) -> str | None:
    if predicate.op is PredicateOperator.EXISTS:
        always = len(predicate.path) == 1 and predicate.path[0] in schema.get("required", ())
        return f"`{predicate.where}` is always there." if always and not predicate.value else None
    leaves = [leaf for node in schemas_at(schema, predicate.path) for leaf in _branches(node)]
    if any(_possible(leaf, predicate) for leaf in leaves):
        return None
    return f"`{predicate.where}` can never be such that `{predicate.op}` {quoted(str(predicate.value))} is true."


def _possible(leaf: Schema, predicate: Predicate) -> bool:
    known = _enumerated(leaf)
    if known is not None:
        test = predicate_test(predicate, cautious=False)
        return any(test(value) is True for value in known)
    types, value = _types(leaf), predicate.value
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
        return _fits(leaf, value)
    return predicate.op is not PredicateOperator.IN or any(_fits(leaf, one) for one in value)


def _fits(leaf: Schema, value: Any) -> bool:
    types = _types(leaf)
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        whole = "number" in types or ("integer" in types and value == int(value))
        return whole and leaf.get("minimum", value) <= value <= leaf.get("maximum", value)
    kinds = {str: "string", list: "array", type(None): "null"}
    return kinds[type(value)] in types


def _contradict(schema: Schema, one: Predicate, other: Predicate) -> bool:
    """Through a list each predicate may be true of another element, so only single values can contradict."""
    if len(one.path) > 1 or any(
        "array" in _types(leaf) for node in schemas_at(schema, one.path) for leaf in _branches(node)
    ):
        return False
    if one.op is PredicateOperator.EQ and one is not other:
        return predicate_test(other, cautious=False)(one.value) is not True
    return one.op is PredicateOperator.GT and other.op is PredicateOperator.LT and one.value >= other.value
