"""Do a call's arguments fit its tool's schema, and if not, what must change?

Schemas are compiled on a tool's first call, because most tools of a session are never called. A schema that cannot be
compiled lets nothing through. References to other documents are never fetched.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from mcp_server.model.schema import format_brief_schema
from mcp_server.model.text import find_nearest_name, format_count, format_list, quote_text
from mcp_server.model.tools import Arguments, Schema, Tool

DEEPEST = 64
MAX_FAULTS = 5
SHORT = 40
KINDS = {dict: "an object", list: "a list"}
TYPE_WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
PLAIN = (str, bool, type(None))
SETTLED = (str, int)
"""Strings and whole numbers stay as they are, and nearly every argument is one of these."""
LARGEST = 2**63 - 1
"""The largest number that SQLite and the system's calls take."""


def build_argument_check(tools: Mapping[str, Tool]) -> Callable[[str, Arguments], str | None]:
    """Build the check of `Policy.unfit`, which says what is wrong with the arguments of a call, or None."""
    compiled: dict[str, Any] = {}

    def describe_misfit(name: str, arguments: Arguments) -> str | None:
        fault = find_json_fault(arguments)
        if fault:
            return fault
        tool = tools[name]
        schema = tool.offered
        validator = compiled.get(name)
        if validator is None:
            validator = compiled[name] = _compile(schema)
        values = dict(arguments)
        if tool.fixed or tool.hidden:
            values = {key: value for key, value in values.items() if not _is_fixed(tool, key, value)}
            if closed := sorted(values.keys() & (tool.fixed.keys() | tool.hidden)):
                return f"{format_list(closed, 'and')} cannot be given here."
        return None if validator.is_valid(values) else _describe_faults(schema, validator, values)

    return describe_misfit


def _is_fixed(tool: Tool, name: str, value: Any) -> bool:
    # Compared as JSON, in which 1 and true differ.
    return name in tool.fixed and json.dumps(tool.fixed[name], sort_keys=True) == json.dumps(value, sort_keys=True)


def _compile(schema: Schema) -> Any:
    from jsonschema_rs import Draft202012Validator  # on the first call, not at every start

    return Draft202012Validator(dict(schema), offline=True)


def find_json_fault(arguments: Arguments) -> str | None:
    """Describe what no schema can check: NaN, half of a surrogate pair, too much nesting."""
    waiting: list[tuple[str, int, Any]] = [("", 0, dict(arguments))]
    while waiting:
        where, depth, value = waiting.pop()
        if isinstance(value, PLAIN):
            if isinstance(value, str) and not value.isascii() and _has_surrogates(value):
                return f"{_describe_place(where)} contains half of a surrogate pair, which is not a character."
        elif isinstance(value, int | float):
            if value - value != 0:
                return f"{_describe_place(where)} is NaN or infinity, which JSON does not have."
            if not -LARGEST <= value <= LARGEST:
                return f"{_describe_place(where)} is too large a number."
        elif depth >= DEEPEST:
            return f"they are nested more than {DEEPEST} levels deep."
        elif isinstance(value, dict):
            for key, one in cast(dict[Any, Any], value).items():
                if not isinstance(key, str) or (not key.isascii() and _has_surrogates(key)):
                    return f"{_describe_place(where)} has a key that is not a string."
                waiting.append((f"{where}.{key}" if where else key, depth + 1, one))
        elif isinstance(value, list):
            waiting += [(f"{where}[{index}]", depth + 1, one) for index, one in enumerate(cast(list[Any], value))]
        else:
            return f"{_describe_place(where)} is not a JSON value."
    return None


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _describe_place(where: str) -> str:
    return quote_text(where) if where else "the arguments object"


def _describe_faults(schema: Schema, validator: Any, values: Arguments) -> str:
    """Put every fault into one message, so that one correction is enough."""
    # Sorted, because the validator does not promise an order.
    faults = sorted({text for error in validator.iter_errors(values) for text in _explain_error(error, schema, values)})
    more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    signature = format_brief_schema(schema)
    takes = f"It takes: {signature}." if signature else "It takes no arguments."
    return f"{'; '.join(faults[:MAX_FAULTS] + more)}. {takes}"


def _explain_error(error: Any, schema: Schema, values: Arguments) -> Iterator[str]:
    path, kind = list(error.instance_path), error.kind
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    details: dict[str, Any] = kind.as_dict()
    if kind.name == "required":
        yield f"{_describe_key(where, details['property'])} is missing"
    elif kind.name == "additionalProperties":
        known = _list_keys(schema, path)
        for number, key in enumerate(sorted(details["unexpected"])):
            # Only for those that are shown: there may be hundreds of thousands.
            near = find_nearest_name(key, known) if number < MAX_FAULTS else None
            hint = f" (did you mean {quote_text(near)}?)" if near else ""
            yield f"{_describe_key(where, key)} is not an argument{hint}"
    else:
        value = _describe_value(_find_value(values, path))
        yield f"{_describe_place(where)} must {_describe_requirement(kind.name, details)}, but is {value}"


def _describe_key(where: str, key: str) -> str:
    return quote_text(f"{where}.{key}" if where else key)


def _describe_requirement(keyword: str, details: Mapping[str, Any]) -> str:
    limit: Any = details.get("limit")
    match keyword:
        case "type":
            return f"be {_describe_kinds(details['types'])}"
        case "enum":
            return f"be one of {format_list(map(str, details['options'][:20]))}"
        case "const":
            return f"be {quote_text(str(details['expected_value']))}"
        case "minimum" | "maximum":
            return f"be at {'least' if keyword == 'minimum' else 'most'} {limit}"
        case "exclusiveMinimum" | "exclusiveMaximum":
            return f"be {'more' if keyword == 'exclusiveMinimum' else 'less'} than {limit}"
        case "minLength" | "maxLength":
            return f"have at {'least' if keyword == 'minLength' else 'most'} {format_count(limit, 'character')}"
        case "minItems" | "maxItems" | "minProperties" | "maxProperties":
            entries = format_count(limit, "entry", "entries")
            return f"have at {'least' if keyword.startswith('min') else 'most'} {entries}"
        case "pattern":
            return f"match the pattern {quote_text(details['pattern'])}"
        case "anyOf" | "oneOf":
            return _describe_branches(details["context"])
        case _:
            return f"satisfy {quote_text(keyword)} in the schema"


def _describe_branches(context: Any) -> str:
    """Name the types of the alternatives if they differ in type, otherwise say how many there are."""
    errors = [branch[0] for branch in context if branch]
    if not errors or len(errors) < len(context):
        return "match only one of its forms"
    if all(error.kind.name == "type" for error in errors):
        return f"be {_describe_kinds([kind for error in errors for kind in error.kind.as_dict()['types']])}"
    return f"match one of its {len(context)} forms"


def _describe_kinds(types: list[str]) -> str:
    return " or ".join(dict.fromkeys(TYPE_WORDS[kind] for kind in types))


def _describe_value(value: Any) -> str:
    """Name the type of a value, and the value itself if it is short; a long one may hold anything."""
    if isinstance(value, str):
        return f"the string {quote_text(value)}" if len(value) <= SHORT else f"a string of {len(value):,} characters"
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"the number {str(value)[:SHORT]}"
    return f"{KINDS[type(value)]} of {len(value):,}"


def _find_value(value: Any, path: list[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _list_keys(schema: Any, path: list[str | int]) -> list[str]:
    """List the keys that an object at that path may have."""
    for step in path:
        schema = _find_entry_schema(schema, None if isinstance(step, int) else step)
    return [key for one in _list_alternatives(schema) for key in one.get("properties", {})]


def normalize_arguments(schema: Any, value: Any) -> Any:
    """Write 3.0 as 3 where an integer is required: JSON Schema accepts both, and no tool should have to know.

    Returns the same object if nothing changes."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and _is_integer_allowed(schema) else value
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, Any], value)
        if all(isinstance(one, SETTLED) for one in entries.values()):
            return value  # pyright: ignore[reportUnknownVariableType]  # any JSON
        changed = {key: normalize_arguments(_find_entry_schema(schema, key), one) for key, one in entries.items()}
        return value if all(changed[key] is entries[key] for key in entries) else changed  # pyright: ignore[reportUnknownVariableType]  # any JSON
    if isinstance(value, list):
        items = cast(list[Any], value)
        changed = [normalize_arguments(_find_entry_schema(schema, None), one) for one in items]
        return items if all(one is other for one, other in zip(changed, items, strict=True)) else changed
    return value


def build_argument_cleaner(tools: Mapping[str, Tool]) -> Callable[[str, Arguments], Arguments]:
    """Build `Policy.meant`, which drops arguments that say nothing.

    Many hosts fill in every optional argument, with null, or with an empty string that the schema does not accept.
    Arguments of other packs' tools stay as they are: there null may mean something."""

    def drop_nulls(name: str, arguments: Arguments) -> Arguments:
        if all(isinstance(one, SETTLED) and one != "" for one in arguments.values()):
            return arguments
        return _drop_empty_entries(tools[name].arguments, arguments) if name in tools else arguments

    return drop_nulls


def add_fixed_arguments(
    clean: Callable[[str, Arguments], Arguments], fixing: Mapping[str, Tool]
) -> Callable[[str, Arguments], Arguments]:
    """Add the arguments that the operator fixed. A value of the caller's own stays, and the check refuses it."""

    def get_meant(name: str, arguments: Arguments) -> Arguments:
        return {**fixing[name].fixed, **arguments} if name in fixing else clean(name, arguments)

    return get_meant if fixing else clean


def _drop_empty_entries(schema: Any, value: Any) -> Any:
    """Drop the entries that say nothing, at every depth that the schema describes."""
    if isinstance(value, list):
        entry_schema = _find_entry_schema(schema, None)
        return [_drop_empty_entries(entry_schema, one) for one in cast(list[Any], value)]
    if not isinstance(value, Mapping):
        return value
    alternatives = list(_list_alternatives(schema))
    required = {name for one in alternatives for name in one.get("required", ())}
    closed = any(one.get("additionalProperties") is False for one in alternatives)
    kept_entries: dict[str, Any] = {}
    for name, one in cast(Mapping[str, Any], value).items():
        entry_schema = _find_entry_schema(schema, name)
        if name in required or not (entry_schema or closed) or not _is_empty_value(entry_schema, one):
            kept_entries[name] = _drop_empty_entries(entry_schema, one)
    return kept_entries


def _is_empty_value(schema: Any, value: Any) -> bool:
    if value is None:
        return not any(_is_kind_allowed(one, "null") for one in _list_alternatives(schema))
    if value != "" or not schema:
        return False
    limits = {"type", "enum", "minLength"}
    alternatives = [one for one in _list_alternatives(schema) if one.keys() & limits]
    return bool(alternatives) and not any(
        _is_kind_allowed(one, "string") and not _is_empty_text_refused(one) for one in alternatives
    )


def _is_kind_allowed(schema: Mapping[str, Any], kind: str) -> bool:
    kinds = schema.get("type", ())
    return kinds == kind or (isinstance(kinds, list) and kind in cast(list[str], kinds))


def _is_empty_text_refused(schema: Mapping[str, Any]) -> bool:
    """True if the schema rejects the empty string, so an empty string says nothing."""
    return schema.get("minLength", 0) > 0 or ("enum" in schema and "" not in schema["enum"])


def _find_entry_schema(schema: Any, key: str | None) -> Any:
    """Find the schemas of an entry, or of a list's items if there is no key, as alternatives."""
    schemas: list[Any] = []
    for one in _list_alternatives(schema):
        properties: Mapping[str, Any] = one.get("properties", {})
        entry_schema = one.get("items") if key is None else properties.get(key, one.get("additionalProperties"))
        schemas += [entry_schema] if isinstance(entry_schema, Mapping) else []
    return {"anyOf": schemas} if schemas else {}


def _list_alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        node = cast(Mapping[str, Any], schema)
        yield node
        for key in ("anyOf", "oneOf", "allOf"):
            for one in node.get(key, ()):
                yield from _list_alternatives(one)


def _is_integer_allowed(schema: Any) -> bool:
    types = [one.get("type") for one in _list_alternatives(schema)]
    kinds = {kind for one in types for kind in (cast(list[str], one) if isinstance(one, list) else [one])}
    return "integer" in kinds and "number" not in kinds
