"""Which arguments does a tool take? The JSON Schema of a TypedDict, derived from its annotations.

Arguments are TypedDicts, so a call's arguments are the validated JSON object itself. Such a class costs microseconds at
start. A model class costs a millisecond, which each tool would add to every cold start.
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from msgspec import Struct

from mcp_server.model.tools import Schema

PLAIN: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Is(Struct, frozen=True):
    """Limits of one argument, written inside its annotation: `Annotated[int, "1-based line", Is(at_least=1)]`."""

    default: Any = None
    at_least: float | None = None
    at_most: float | None = None
    longest: int | None = None
    shortest: int | None = None
    most_items: int | None = None
    pattern: str | None = None
    enum: tuple[str, ...] = ()


KEYWORDS = {
    "default": "default",
    "at_least": "minimum",
    "at_most": "maximum",
    "longest": "maxLength",
    "shortest": "minLength",
    "most_items": "maxItems",
    "pattern": "pattern",
}


def build_schema(arguments: type) -> dict[str, Any]:
    """Build the object schema of a TypedDict. It describes every key and allows no others."""
    if not is_typeddict(arguments):
        raise TypeError(f"{arguments!r} is not a TypedDict")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": _build_properties(arguments),
        "additionalProperties": False,
    }
    keys: frozenset[str] = arguments.__required_keys__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # narrowed to a bare type
    required = [name for name in schema["properties"] if name in keys]
    return schema | ({"required": required} if required else {})


def _build_properties(arguments: type) -> dict[str, dict[str, Any]]:
    try:
        return {name: _build_hint_schema(hint) for name, hint in arguments.__annotations__.items()}
    except KeyError:
        # Some annotation is a string. Resolving those takes as long as all the rest, so it is done only if needed.
        hints = get_type_hints(arguments, include_extras=True)
        return {name: _build_hint_schema(hint) for name, hint in hints.items()}


def _build_hint_schema(hint: Any) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _build_annotated_schema(parts[0], parts[1:])
    if getattr(origin, "_name", "") in ("NotRequired", "Required"):
        return _build_hint_schema(parts[0])
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if origin in (list, tuple):
        return {"type": "array", "items": _build_hint_schema(parts[0])}
    if origin in (Union, UnionType):
        return {"anyOf": [_build_hint_schema(part) for part in parts]}
    if origin in (dict, Mapping) or hint is dict:
        return {"type": "object"}
    if hint is NoneType:
        return {"type": "null"}
    if hint is Any:
        return {}
    if is_typeddict(hint):
        return build_schema(hint)
    return {"type": PLAIN[hint]}


def _build_annotated_schema(inner: Any, notes: tuple[Any, ...]) -> dict[str, Any]:
    schema = _build_hint_schema(inner)
    for note in notes:
        if isinstance(note, str):
            schema["description"] = note
        elif isinstance(note, Is):
            schema |= {KEYWORDS[key]: value for key in KEYWORDS if (value := getattr(note, key)) is not None} | (
                {"enum": list(note.enum)} if note.enum else {}
            )
    return schema


def format_brief_schema(schema: Schema) -> str:
    """Format a schema on one line, the short form in answers of `menu_enter`: `path, limit?: integer`."""
    required = set(schema.get("required", ()))
    return ", ".join(
        name + ("" if name in required else "?") + _format_kind(value)
        for name, value in schema.get("properties", {}).items()
    )


def _format_kind(schema: Schema) -> str:
    if "enum" in schema:
        return ": " + "|".join(str(value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        return ": " + "|".join(str(one) for one in cast(list[Any], kind))
    if kind == "array":
        return f": {schema.get('items', {}).get('type', 'any')}[]"
    return "" if kind in ("string", None) else f": {kind}"
