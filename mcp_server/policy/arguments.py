"""Do a call's arguments fit its tool's schema, and if not, what has to change?

Schemas are compiled on a tool's first call, because most tools of a session are never called. A schema that cannot be
compiled lets nothing through. References to other documents are never fetched.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from mcp_server.model.schema import format_brief_schema
from mcp_server.model.text import find_nearest_name, format_list, quote_text
from mcp_server.model.tools import Arguments, Schema, Tool

DEEPEST = 64
MOST_FAULTS = 5
SHORT = 40
KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
WANTED = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


PLAIN = (str, bool, type(None))
SETTLED = (str, int)
"""Texts and whole numbers stay as they are, and nearly every argument is one."""
LARGEST = 2**63 - 1
"""The largest number that SQLite and the system's calls can be given."""


def build_argument_check(tools: Mapping[str, Tool]) -> Callable[[str, Arguments], str | None]:
    """The check of `Policy.unfit`: what is wrong with these arguments for that tool, or None."""
    compiled: dict[str, Any] = {}

    def describe_misfit(name: str, arguments: Arguments) -> str | None:
        fault = find_json_fault(arguments)
        if fault:
            return fault
        schema = tools[name].arguments
        validator = compiled.get(name)
        if validator is None:
            validator = compiled[name] = _compile(schema)
        given = dict(arguments)
        return None if validator.is_valid(given) else _describe_faults(schema, validator, given)

    return describe_misfit


def _compile(schema: Schema) -> Any:
    from jsonschema_rs import Draft202012Validator  # on the first call, not at every start

    return Draft202012Validator(dict(schema), offline=True)


def find_json_fault(arguments: Arguments) -> str | None:
    """What no schema can be asked about: NaN, text that is no text, bottomless nesting."""
    waiting: list[tuple[str, int, Any]] = [("", 0, dict(arguments))]
    while waiting:
        where, depth, value = waiting.pop()
        if isinstance(value, PLAIN):
            if isinstance(value, str) and not value.isascii() and _has_surrogates(value):
                return f"{_describe_place(where)} holds half of a surrogate pair, which is not a character."
        elif isinstance(value, int | float):
            if value - value != 0:
                return f"{_describe_place(where)} is not a number that JSON knows (NaN or infinity)."
            if not -LARGEST <= value <= LARGEST:
                return f"{_describe_place(where)} is too large a number."
        elif depth >= DEEPEST:
            return f"they are nested more than {DEEPEST} levels deep."
        elif isinstance(value, dict):
            for key, one in cast(dict[Any, Any], value).items():
                if not isinstance(key, str) or (not key.isascii() and _has_surrogates(key)):
                    return f"{_describe_place(where)} has a key that is not a text."
                waiting.append((f"{where}.{key}" if where else key, depth + 1, one))
        elif isinstance(value, list):
            waiting += [(f"{where}[{index}]", depth + 1, one) for index, one in enumerate(cast(list[Any], value))]
        else:
            return f"{_describe_place(where)} is not a JSON value."
    return None


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _describe_place(where: str) -> str:
    return quote_text(where) if where else "the whole"


def _describe_faults(schema: Schema, validator: Any, given: Arguments) -> str:
    """Every problem in one message, so that one correction is enough."""
    # Sorted, because the validator's own order is not promised to be the same every time.
    found = sorted({text for error in validator.iter_errors(given) for text in _explain_error(error, schema, given)})
    more = [f"and {len(found) - MOST_FAULTS} more"] if len(found) > MOST_FAULTS else []
    takes = format_brief_schema(schema)
    return (
        "; ".join(found[:MOST_FAULTS] + more) + "." + (f" It takes: {takes}." if takes else " It takes no arguments.")
    )


def _explain_error(error: Any, schema: Schema, given: Arguments) -> Iterator[str]:
    path, kind = list(error.instance_path), error.kind
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    details: dict[str, Any] = kind.as_dict()
    if kind.name == "required":
        yield f"{_describe_key(where, details['property'])} is missing"
    elif kind.name == "additionalProperties":
        known = _list_keys(schema, path)
        for number, key in enumerate(sorted(details["unexpected"])):
            # Looked for where it can be shown: there may be hundreds of thousands of them.
            near = find_nearest_name(key, known) if number < MOST_FAULTS else None
            yield f"{_describe_key(where, key)} is not an argument" + (
                f" (did you mean {quote_text(near)}?)" if near else ""
            )
    else:
        value = _describe_value(_find_value(given, path))
        yield f"{_describe_place(where)} is {value}, {_describe_wanted(kind.name, details)}"


def _describe_key(where: str, key: str) -> str:
    return quote_text(f"{where}.{key}" if where else key)


def _describe_wanted(keyword: str, details: Mapping[str, Any]) -> str:
    limit = details.get("limit")
    match keyword:
        case "type":
            return f"and has to be {_describe_kinds(details['types'])}"
        case "enum":
            return f"and has to be one of {format_list(map(str, details['options'][:20]))}"
        case "const":
            return f"and has to be {quote_text(str(details['expected_value']))}"
        case "minimum" | "maximum":
            return f"and has to be at {'least' if keyword == 'minimum' else 'most'} {limit}"
        case "exclusiveMinimum" | "exclusiveMaximum":
            return f"and has to be {'more' if keyword == 'exclusiveMinimum' else 'less'} than {limit}"
        case "minLength" | "maxLength":
            return f"and has to have at {'least' if keyword == 'minLength' else 'most'} {limit:,} characters"
        case "minItems" | "maxItems" | "minProperties" | "maxProperties":
            return f"and has to have at {'least' if keyword.startswith('min') else 'most'} {limit:,} entries"
        case "pattern":
            return f"and has to fit the pattern {quote_text(details['pattern'])}"
        case "anyOf" | "oneOf":
            return _describe_branches(details["context"])
        case _:
            return f"and does not meet {quote_text(keyword)} of the schema"


def _describe_branches(context: Any) -> str:
    """Alternatives that differ in kind are told by kind; others only by their number."""
    errors = [branch[0] for branch in context if branch]
    if not errors or len(errors) < len(context):
        return "and fits several of its forms at once"
    if all(error.kind.name == "type" for error in errors):
        return f"and has to be {_describe_kinds([kind for error in errors for kind in error.kind.as_dict()['types']])}"
    return f"and fits none of its {len(context)} forms"


def _describe_kinds(types: list[str]) -> str:
    return " or ".join(dict.fromkeys(WANTED[kind] for kind in types))


def _describe_value(value: Any) -> str:
    """The kind of a value, and a short value itself; a long one may hold anything."""
    if isinstance(value, str):
        return f"the text {quote_text(value)}" if len(value) <= SHORT else f"a text of {len(value):,} characters"
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"the number {str(value)[:SHORT]}"
    return f"{KINDS[type(value)]} of {len(value):,}"


def _find_value(given: Any, path: list[str | int]) -> Any:
    for step in path:
        given = given[step]
    return given


def _list_keys(schema: Any, path: list[str | int]) -> list[str]:
    """The names an object at that path may have."""
    for step in path:
        schema = _find_entry_schema(schema, None if isinstance(step, int) else step)
    return [key for one in _list_alternatives(schema) for key in one.get("properties", {})]


def normalize_arguments(schema: Any, value: Any) -> Any:
    """The same arguments with 3.0 written as 3 where a whole number is wanted: JSON Schema holds both for integers,
    and a tool should not have to know. Gives back what it got where nothing changes."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and _is_integer_wanted(schema) else value
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, Any], value)
        if all(isinstance(one, SETTLED) for one in entries.values()):
            return value  # pyright: ignore[reportUnknownVariableType]  # any JSON
        changed = {key: normalize_arguments(_find_entry_schema(schema, key), one) for key, one in entries.items()}
        return value if all(changed[key] is entries[key] for key in entries) else changed  # pyright: ignore[reportUnknownVariableType]  # any JSON
    if isinstance(value, list):
        items = cast(list[Any], value)
        listing = [normalize_arguments(_find_entry_schema(schema, None), one) for one in items]
        return items if all(one is other for one, other in zip(listing, items, strict=True)) else listing
    return value


def build_argument_cleaner(tools: Mapping[str, Tool]) -> Callable[[str, Arguments], Arguments]:
    """The reading of `Policy.meant`, for these tools: many hosts fill in every optional argument, and say nothing by
    null, or by an empty text where the schema takes none. What others made may tell null from nothing."""

    def drop_nulls(name: str, arguments: Arguments) -> Arguments:
        if all(isinstance(one, SETTLED) and one != "" for one in arguments.values()):
            return arguments
        return _drop_empty_entries(tools[name].arguments, arguments) if name in tools else arguments

    return drop_nulls


def _drop_empty_entries(schema: Any, value: Any) -> Any:
    """Without the entries that say nothing, at every depth that the schema describes."""
    if isinstance(value, list):
        below = _find_entry_schema(schema, None)
        return [_drop_empty_entries(below, one) for one in cast(list[Any], value)]
    if not isinstance(value, Mapping):
        return value
    every = list(_list_alternatives(schema))
    needed = {name for one in every for name in one.get("required", ())}
    closed = any(one.get("additionalProperties") is False for one in every)
    said: dict[str, Any] = {}
    for name, one in cast(Mapping[str, Any], value).items():
        below = _find_entry_schema(schema, name)
        if name in needed or not (below or closed) or not _is_empty_value(below, one):
            said[name] = _drop_empty_entries(below, one)
    return said


def _is_empty_value(schema: Any, value: Any) -> bool:
    if value is None:
        return not any(_is_kind_allowed(one, "null") for one in _list_alternatives(schema))
    if value != "" or not schema:
        return False
    every = [one for one in _list_alternatives(schema) if one.keys() & {"type", "enum", "minLength"}]
    return bool(every) and not any(_is_kind_allowed(one, "string") and not _is_empty_text_refused(one) for one in every)


def _is_kind_allowed(schema: Mapping[str, Any], kind: str) -> bool:
    said = schema.get("type", ())
    return said == kind or (isinstance(said, list) and kind in cast(list[str], said))


def _is_empty_text_refused(schema: Mapping[str, Any]) -> bool:
    """Is this a text of which an empty one says nothing?"""
    return schema.get("minLength", 0) > 0 or ("enum" in schema and "" not in schema["enum"])


def _find_entry_schema(schema: Any, key: str | None) -> Any:
    """The schemas of an entry (or of a list's items), as alternatives."""
    found: list[Any] = []
    for one in _list_alternatives(schema):
        properties: Mapping[str, Any] = one.get("properties", {})
        below = one.get("items") if key is None else properties.get(key, one.get("additionalProperties"))
        found += [below] if isinstance(below, Mapping) else []
    return {"anyOf": found} if found else {}


def _list_alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        node = cast(Mapping[str, Any], schema)
        yield node
        for key in ("anyOf", "oneOf", "allOf"):
            for one in node.get(key, ()):
                yield from _list_alternatives(one)


def _is_integer_wanted(schema: Any) -> bool:
    said = [one.get("type") for one in _list_alternatives(schema)]
    kinds = {kind for one in said for kind in (cast(list[str], one) if isinstance(one, list) else [one])}
    return "integer" in kinds and "number" not in kinds
