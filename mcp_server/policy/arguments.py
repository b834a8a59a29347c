"""Do a call's arguments fit its tool's schema, and if not, what has to change?

Schemas are compiled on a tool's first call, because most tools of a session are never called. A schema that cannot be
compiled lets nothing through. References to other documents are never fetched.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from mcp_server.model.schema import brief
from mcp_server.model.text import listed, nearest, quoted
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


PLAIN = (str, bool, int, type(None))


def checks(tools: Mapping[str, Tool]) -> Callable[[str, Arguments], str | None]:
    """The check of `Policy.unfit`: what is wrong with these arguments for that tool, or None."""
    compiled: dict[str, Any] = {}

    def unfit(name: str, arguments: Arguments) -> str | None:
        fault = not_json(arguments)
        if fault:
            return fault
        schema = tools[name].arguments
        validator = compiled.get(name)
        if validator is None:
            validator = compiled[name] = _compile(schema)
        given = dict(arguments)
        return None if validator.is_valid(given) else _faults(schema, validator, given)

    return unfit


def _compile(schema: Schema) -> Any:
    from jsonschema_rs import Draft202012Validator  # on the first call, not at every start

    return Draft202012Validator(dict(schema), offline=True)


def not_json(arguments: Arguments) -> str | None:
    """What no schema can be asked about: NaN, text that is no text, bottomless nesting."""
    waiting: list[tuple[str, int, Any]] = [("", 0, dict(arguments))]
    while waiting:
        where, depth, value = waiting.pop()
        if isinstance(value, PLAIN):
            if isinstance(value, str) and not value.isascii() and _broken(value):
                return f"{_at(where)} holds half of a surrogate pair, which is not a character."
        elif isinstance(value, float):
            if value - value != 0:
                return f"{_at(where)} is not a number that JSON knows (NaN or infinity)."
        elif depth >= DEEPEST:
            return f"they are nested more than {DEEPEST} levels deep."
        elif isinstance(value, dict):
            for key, one in cast(dict[Any, Any], value).items():
                if not isinstance(key, str) or _broken(key):
                    return f"{_at(where)} has a key that is not a text."
                waiting.append((f"{where}.{key}" if where else key, depth + 1, one))
        elif isinstance(value, list):
            waiting += [(f"{where}[{index}]", depth + 1, one) for index, one in enumerate(cast(list[Any], value))]
        else:
            return f"{_at(where)} is not a JSON value."
    return None


def _broken(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _at(where: str) -> str:
    return quoted(where) if where else "the whole"


def _faults(schema: Schema, validator: Any, given: Arguments) -> str:
    """Every problem in one message, so that one correction is enough."""
    # Sorted, because the validator's own order is not promised to be the same every time.
    found = sorted({text for error in validator.iter_errors(given) for text in _explain(error, schema, given)})
    more = [f"and {len(found) - MOST_FAULTS} more"] if len(found) > MOST_FAULTS else []
    takes = brief(schema)
    return (
        "; ".join(found[:MOST_FAULTS] + more) + "." + (f" It takes: {takes}." if takes else " It takes no arguments.")
    )


def _explain(error: Any, schema: Schema, given: Arguments) -> Iterator[str]:
    path, kind = list(error.instance_path), error.kind
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    details: dict[str, Any] = kind.as_dict()
    if kind.name == "required":
        yield f"{_inside(where, details['property'])} is missing"
    elif kind.name == "additionalProperties":
        known = _keys(schema, path)
        for number, key in enumerate(sorted(details["unexpected"])):
            # Looked for where it can be shown: there may be hundreds of thousands of them.
            near = nearest(key, known) if number < MOST_FAULTS else None
            yield f"{_inside(where, key)} is not an argument" + (f" (did you mean {quoted(near)}?)" if near else "")
    else:
        yield f"{_at(where)} is {_shown(_found(given, path))}, {_wanted(kind.name, details)}"


def _inside(where: str, key: str) -> str:
    return quoted(f"{where}.{key}" if where else key)


def _wanted(keyword: str, details: Mapping[str, Any]) -> str:
    limit = details.get("limit")
    match keyword:
        case "type":
            return f"and has to be {_kinds(details['types'])}"
        case "enum":
            return f"and has to be one of {listed(map(str, details['options'][:20]))}"
        case "const":
            return f"and has to be {quoted(str(details['expected_value']))}"
        case "minimum" | "maximum":
            return f"and has to be at {'least' if keyword == 'minimum' else 'most'} {limit}"
        case "exclusiveMinimum" | "exclusiveMaximum":
            return f"and has to be {'more' if keyword == 'exclusiveMinimum' else 'less'} than {limit}"
        case "minLength" | "maxLength":
            return f"and has to have at {'least' if keyword == 'minLength' else 'most'} {limit:,} characters"
        case "minItems" | "maxItems" | "minProperties" | "maxProperties":
            return f"and has to have at {'least' if keyword.startswith('min') else 'most'} {limit:,} entries"
        case "pattern":
            return f"and has to fit the pattern {quoted(details['pattern'])}"
        case "anyOf" | "oneOf":
            return _branches(details["context"])
        case _:
            return f"and does not meet {quoted(keyword)} of the schema"


def _branches(context: Any) -> str:
    """Alternatives that differ in kind are told by kind; others only by their number."""
    errors = [branch[0] for branch in context if branch]
    if not errors or len(errors) < len(context):
        return "and fits several of its forms at once"
    if all(error.kind.name == "type" for error in errors):
        return f"and has to be {_kinds([kind for error in errors for kind in error.kind.as_dict()['types']])}"
    return f"and fits none of its {len(context)} forms"


def _kinds(types: list[str]) -> str:
    return " or ".join(dict.fromkeys(WANTED[kind] for kind in types))


def _shown(value: Any) -> str:
    """The kind of a value, and a short value itself; a long one may hold anything."""
    if isinstance(value, str):
        return f"the text {quoted(value)}" if len(value) <= SHORT else f"a text of {len(value):,} characters"
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"the number {str(value)[:SHORT]}"
    return f"{KINDS[type(value)]} of {len(value):,}"


def _found(given: Any, path: list[str | int]) -> Any:
    for step in path:
        given = given[step]
    return given


def _keys(schema: Any, path: list[str | int]) -> list[str]:
    """The names an object at that path may have."""
    for step in path:
        schema = _schema_of(schema, None if isinstance(step, int) else step)
    return [key for one in _alternatives(schema) for key in one.get("properties", {})]


def normalised(schema: Any, value: Any) -> Any:
    """The same arguments with 3.0 written as 3 where a whole number is wanted: JSON Schema holds both for integers,
    and a tool should not have to know. Gives back what it got where nothing changes."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and _wants_whole(schema) else value
    if isinstance(value, Mapping):
        entries = cast(Mapping[str, Any], value)
        changed = {key: normalised(_schema_of(schema, key), one) for key, one in entries.items()}
        return value if all(changed[key] is entries[key] for key in entries) else changed  # pyright: ignore[reportUnknownVariableType]  # any JSON
    if isinstance(value, list):
        items = cast(list[Any], value)
        listing = [normalised(_schema_of(schema, None), one) for one in items]
        return items if all(one is other for one, other in zip(listing, items, strict=True)) else listing
    return value


def meanings(tools: Mapping[str, Tool]) -> Callable[[str, Arguments], Arguments]:
    """The reading of `Policy.meant`, for these tools: many hosts fill in every optional argument, and say nothing by
    null, or by an empty text where the schema takes none. What others made may tell null from nothing."""

    def meant(name: str, arguments: Arguments) -> Arguments:
        return _spoken(tools[name].arguments, arguments) if name in tools else arguments

    return meant


def _spoken(schema: Any, value: Any) -> Any:
    """Without the entries that say nothing, at every depth that the schema describes."""
    if isinstance(value, list):
        below = _schema_of(schema, None)
        return [_spoken(below, one) for one in cast(list[Any], value)]
    if not isinstance(value, Mapping):
        return value
    every = list(_alternatives(schema))
    needed = {name for one in every for name in one.get("required", ())}
    closed = any(one.get("additionalProperties") is False for one in every)
    said: dict[str, Any] = {}
    for name, one in cast(Mapping[str, Any], value).items():
        below = _schema_of(schema, name)
        if name in needed or not (below or closed) or not _says_nothing(below, one):
            said[name] = _spoken(below, one)
    return said


def _says_nothing(schema: Any, value: Any) -> bool:
    if value is None:
        return not any(_allows(one, "null") for one in _alternatives(schema))
    if value != "" or not schema:
        return False
    every = [one for one in _alternatives(schema) if one.keys() & {"type", "enum", "minLength"}]
    return bool(every) and not any(_allows(one, "string") and not _wants_more(one) for one in every)


def _allows(schema: Mapping[str, Any], kind: str) -> bool:
    said = schema.get("type", ())
    return said == kind or (isinstance(said, list) and kind in cast(list[str], said))


def _wants_more(schema: Mapping[str, Any]) -> bool:
    """Is this a text of which an empty one says nothing?"""
    return schema.get("minLength", 0) > 0 or ("enum" in schema and "" not in schema["enum"])


def _schema_of(schema: Any, key: str | None) -> Any:
    """The schemas of an entry (or of a list's items), as alternatives."""
    found: list[Any] = []
    for one in _alternatives(schema):
        properties: Mapping[str, Any] = one.get("properties", {})
        below = one.get("items") if key is None else properties.get(key, one.get("additionalProperties"))
        found += [below] if isinstance(below, Mapping) else []
    return {"anyOf": found} if found else {}


def _alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        node = cast(Mapping[str, Any], schema)
        yield node
        for key in ("anyOf", "oneOf", "allOf"):
            for one in node.get(key, ()):
                yield from _alternatives(one)


def _wants_whole(schema: Any) -> bool:
    said = [one.get("type") for one in _alternatives(schema)]
    kinds = {kind for one in said for kind in (cast(list[str], one) if isinstance(one, list) else [one])}
    return "integer" in kinds and "number" not in kinds
