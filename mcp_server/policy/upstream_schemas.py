"""Can the schema of somebody else's tool be used? It comes from outside, and every host and every check obeys it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_server.model.regex import describe_pattern_danger, is_exponential
from mcp_server.model.text import quote_text
from mcp_server.model.tools import Schema

MAX_DEPTH = 32
MAX_VALUES = 5_000
MAX_CHARS = 100_000
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PATTERNED = ("patternProperties",)
SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMA_KEYS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
BOOLEAN_FORMS: Mapping[bool, Schema] = {True: {}, False: {"not": {}}}


def find_schema_fault(schema: Any) -> str | None:
    """Say why the schema cannot be used; None if it can."""
    if not isinstance(schema, Mapping):
        return "it is not an object"
    root = cast(Mapping[str, Any], schema)
    if root.get("type") != "object":
        kind = root.get("type")
        return "it has no `type: object`" if kind is None else f"its type is {quote_text(str(kind))}, not `object`"
    if not isinstance(root.get("properties", {}), Mapping):
        return "its `properties` are not an object"
    required = root.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast(list[Any], required)):
        return "its `required` is not a list of names"
    fault = _find_size_fault(root) or next(_find_unsafe_parts(root), None)
    return fault or _find_compile_fault(root)


def _find_size_fault(schema: Mapping[str, Any]) -> str | None:
    waiting: list[tuple[Any, int]] = [(schema, 1)]
    count = 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            return f"it is nested more than {MAX_DEPTH} levels deep"
        if count > MAX_VALUES:
            return f"it has more than {MAX_VALUES:,} parts"
        if isinstance(value, Mapping):
            waiting += [(one, depth + 1) for one in cast(Mapping[str, Any], value).values()]
        elif isinstance(value, list):
            waiting += [(one, depth + 1) for one in cast(list[Any], value)]
    size = len(json.dumps(schema))
    return f"it has {size:,} characters; the limit is {MAX_CHARS:,}" if size > MAX_CHARS else None


def _find_unsafe_parts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in cast(list[Any], value):
            yield from _find_unsafe_parts(one)
        return
    if not isinstance(value, Mapping):
        return
    node = cast(Mapping[str, Any], value)
    for key in REFERENCES:
        target = node.get(key)
        if isinstance(target, str) and not target.startswith("#"):
            yield f"it refers to another document, {quote_text(target)}"
    patterns = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
    for key in PATTERNED:
        more = node.get(key)
        patterns += cast(Mapping[str, Any], more) if isinstance(more, Mapping) else []
    for pattern in patterns:
        if danger := describe_pattern_danger(pattern):
            yield f"it has a pattern that is not safe to use, {quote_text(pattern)}: {danger}"
        elif is_exponential(pattern):
            yield f"it has a pattern that can take forever, {quote_text(pattern)}"
    for one in node.values():
        yield from _find_unsafe_parts(one)


def _find_compile_fault(schema: Mapping[str, Any]) -> str | None:
    from jsonschema_rs import Draft202012Validator  # only servers with other servers behind them need it at start

    try:
        Draft202012Validator(dict(schema), offline=True)
    except Exception as fault:  # the library has several, and none of them may stop the server
        return f"it is not a JSON Schema: {quote_text(str(fault).splitlines()[0] if str(fault) else 'invalid')}"
    return None


def normalize_schema(schema: Any) -> Any:
    """Write the schemas `true` and `false` as objects, which mean the same and can be looked into."""
    if isinstance(schema, bool):
        return BOOLEAN_FORMS[schema]
    if not isinstance(schema, Mapping):
        return schema
    node = dict(cast(Mapping[str, Any], schema))
    for key in SCHEMAS_BY_NAME:
        if isinstance(node.get(key), Mapping):
            node[key] = {name: normalize_schema(one) for name, one in node[key].items()}
    for key in SCHEMA_LISTS:
        if isinstance(node.get(key), list):
            node[key] = [normalize_schema(one) for one in node[key]]
    for key in SCHEMA_KEYS:
        if isinstance(node.get(key), Mapping):
            node[key] = normalize_schema(node[key])
    return node


def leave_out_arguments(schema: Schema, names: frozenset[str]) -> Schema:
    """Return the schema without these arguments."""
    if not names:
        return schema
    properties = {name: one for name, one in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    rest = {key: value for key, value in schema.items() if key != "required"}
    return {**rest, "properties": properties, **({"required": required} if required else {})}
