"""Does a file have the right shape, and which parts of it can be used?

`fit` returns the valid parts and reports the others, so that one fault never hides the next. `schemas.py` makes the
JSON Schemas for editors from the same shapes. The shapes are named tuples because at every start those cost a seventh
of what dataclasses do.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from mcp_server.config.faults import FaultCollector
from mcp_server.config.reader import Fields, Items, Leaf, Node, ScalarKind, get_scalar_kind
from mcp_server.model.text import quote_exactly


class LineField(NamedTuple):
    """A string of one line."""

    max_chars: int
    pattern: str = ""
    pattern_words: str = ""
    """The pattern in words, for messages."""


class IntField(NamedTuple):
    minimum: int
    maximum: int


class BoolField(NamedTuple):
    """`true` or `false`."""


class EnumField(NamedTuple):
    names: tuple[str, ...]


class ListField(NamedTuple):
    """A list, without duplicates unless they mean something."""

    item: "Shape"
    min_items: int = 0
    max_items: int = 1000
    unique: bool = True


class KeySpec(NamedTuple):
    shape: "Shape"
    description: str
    """What the key is for; editors show it."""
    required: bool = False


class RecordField(NamedTuple):
    keys: Mapping[str, KeySpec]
    description: str = ""


class MapField(NamedTuple):
    """A mapping whose keys are names from outside, such as paths; every value has the same shape."""

    key: LineField
    value: "Shape"


class ScalarField(NamedTuple):
    """A string of any content, or a number or boolean, which counts as the string that it is written as."""

    max_chars: int


class AnyField(NamedTuple):
    """Any value that JSON has."""


class TextOrField(NamedTuple):
    """A string, or a record or list with more details."""

    text: LineField
    record: RecordField | ListField


Shape: TypeAlias = (
    LineField
    | IntField
    | BoolField
    | EnumField
    | ListField
    | RecordField
    | MapField
    | TextOrField
    | ScalarField
    | AnyField
)


def fit(node: Node, shape: Shape, findings: FaultCollector) -> Node | None:
    match shape:
        case RecordField():
            return _fit_record(node, shape, findings)
        case MapField():
            return _fit_map(node, shape, findings)
        case ListField():
            return _fit_list(node, shape, findings)
        case TextOrField():
            detailed = isinstance(node, Fields if isinstance(shape.record, RecordField) else Items)
            return fit(node, shape.record if detailed else shape.text, findings)
        case LineField():
            return _fit_line(node, shape, findings)
        case EnumField():
            return _fit_choice(node, shape, findings)
        case IntField():
            return _fit_integer(node, shape, findings)
        case BoolField():
            return _fit_boolean(node, findings)
        case ScalarField():
            return _fit_scalar(node, shape, findings)
        case AnyField():
            return node


def _fit_record(node: Node, shape: RecordField, findings: FaultCollector) -> Fields | None:
    if not isinstance(node, Fields):
        return _report_wrong_kind(node, "a mapping (`key: value` lines)", findings)
    record = Fields(node.place, {}, node.keys)
    for name, place in node.keys.items():
        if name not in shape.keys:
            findings.add(place, f"there is no key {quote_exactly(name)} here", name, shape.keys)
    for name, key in shape.keys.items():
        if name in node.fields:
            value = fit(node.fields[name], key.shape, findings)
            if value is not None:
                record.fields[name] = value
        elif key.required and name not in node.keys:
            place = replace(node.place, key=f"{node.place.key}.{name}".lstrip("."))
            findings.add(place, f"this key is missing: {key.description}")
    return record


def _fit_map(node: Node, shape: MapField, findings: FaultCollector) -> Fields | None:
    if not isinstance(node, Fields):
        return _report_wrong_kind(node, "a mapping (`key: value` lines)", findings)
    fitted = Fields(node.place, {}, node.keys)
    for name, place in node.keys.items():
        key = _fit_line(Leaf(name, False, place), shape.key, findings)
        value = fit(node.fields[name], shape.value, findings) if name in node.fields else None
        if key is not None and value is not None:
            fitted.fields[name] = value
    return fitted


def _fit_list(node: Node, shape: ListField, findings: FaultCollector) -> Items | None:
    if not isinstance(node, Items):
        return _report_wrong_kind(node, "a list (each entry on a line that starts with `- `)", findings)
    if len(node.items) > shape.max_items:
        findings.add(node.place, f"the list has {len(node.items)} entries; the limit is {shape.max_items}")
        return None
    if len(node.items) < shape.min_items:
        findings.add(node.place, "the list is empty; name at least one")
        return None
    values = [value for item in node.items if (value := fit(item, shape.item, findings)) is not None]
    return Items(tuple(_drop_duplicates(values, findings) if shape.unique else values), node.place)


def _drop_duplicates(nodes: list[Node], findings: FaultCollector) -> list[Node]:
    first: dict[str, Leaf] = {}
    unique: list[Node] = []
    for node in nodes:
        if isinstance(node, Leaf) and node.text in first:
            line = first[node.text].place.line
            findings.add(node.place, f"{quote_exactly(node.text)} is in the list twice, first on line {line}")
            continue
        if isinstance(node, Leaf):
            first[node.text] = node
        unique.append(node)
    return unique


def _fit_line(node: Node, shape: LineField, findings: FaultCollector) -> Leaf | None:
    if not isinstance(node, Leaf):
        return _report_wrong_kind(node, "a string", findings)
    kind = get_scalar_kind(node)
    if kind is not ScalarKind.TEXT:
        value = f"{quote_exactly(node.text)} is {kind.value}" if node.text else "the value is empty"
        findings.add(node.place, f"this must be a string, but {value}; put it in quotes if you mean a string")
        return None
    problem = _find_text_fault(node.text, shape)
    if problem:
        findings.add(node.place, problem)
    return None if problem else node


def _find_text_fault(text: str, shape: LineField) -> str:
    if not text.strip():
        return "the string is empty"
    if text != text.strip() or "\n" in text or "\t" in text:
        return "the string must be one line without spaces around it; start a long one with `>-`"
    if len(text) > shape.max_chars:
        return f"the string has {len(text)} characters; the limit is {shape.max_chars}"
    if shape.pattern and not re.fullmatch(shape.pattern, text):
        return f"{quote_exactly(text)} must be {shape.pattern_words}"
    return ""


def _fit_choice(node: Node, shape: EnumField, findings: FaultCollector) -> Leaf | None:
    if not isinstance(node, Leaf):
        return _report_wrong_kind(node, "one of " + ", ".join(shape.names), findings)
    if node.text in shape.names:
        return node
    shown = quote_exactly(node.text) if node.text else "nothing"
    findings.add(node.place, f"{shown} is not one of " + ", ".join(shape.names), node.text, shape.names)
    return None


def _fit_scalar(node: Node, shape: ScalarField, findings: FaultCollector) -> Leaf | None:
    if not isinstance(node, Leaf) or get_scalar_kind(node) is ScalarKind.NOTHING:
        return _report_wrong_kind(node, "a string, a number, `true` or `false`", findings)
    if len(node.text) <= shape.max_chars:
        return node
    findings.add(node.place, f"the string has {len(node.text)} characters; the limit is {shape.max_chars}")
    return None


def _fit_integer(node: Node, shape: IntField, findings: FaultCollector) -> Leaf | None:
    expected = f"a whole number from {shape.minimum} to {shape.maximum}"
    if not isinstance(node, Leaf) or get_scalar_kind(node) is not ScalarKind.WHOLE:
        return _report_wrong_kind(node, expected, findings)
    if len(node.text) <= 20 and shape.minimum <= int(node.text) <= shape.maximum:
        return node
    findings.add(node.place, f"{quote_exactly(node.text)} is not {expected}")
    return None


def _fit_boolean(node: Node, findings: FaultCollector) -> Leaf | None:
    if isinstance(node, Leaf) and get_scalar_kind(node) is ScalarKind.YES_OR_NO:
        return node
    return _report_wrong_kind(node, "`true` or `false`, without quotes", findings)


def _report_wrong_kind(node: Node, expected: str, findings: FaultCollector) -> None:
    match node:
        case Fields():
            value = "it is a mapping"
        case Items():
            value = "it is a list"
        case Leaf(text="", plain=True):
            value = "the value is empty"
        case Leaf():
            value = f"{quote_exactly(node.text)} is {'in quotes' if not node.plain else get_scalar_kind(node).value}"
    findings.add(node.place, f"this must be {expected}, but {value}")


def get_leaf(fields: Fields, name: str) -> Leaf | None:
    value = fields.fields.get(name)
    return value if isinstance(value, Leaf) else None


def get_text(fields: Fields, name: str) -> str:
    """Return the value of the key, empty if it is missing."""
    leaf = get_leaf(fields, name)
    return leaf.text if leaf else ""


def get_number(fields: Fields, name: str) -> int | None:
    leaf = get_leaf(fields, name)
    return int(leaf.text) if leaf else None


def get_flag(fields: Fields, name: str, default: bool) -> bool:
    leaf = get_leaf(fields, name)
    return leaf.text.casefold() == "true" if leaf else default


def get_items(fields: Fields, name: str) -> tuple[Node, ...]:
    value = fields.fields.get(name)
    return value.items if isinstance(value, Items) else ()


def get_leaves(fields: Fields, name: str) -> tuple[Leaf, ...]:
    return tuple(item for item in get_items(fields, name) if isinstance(item, Leaf))


def get_records(fields: Fields, name: str) -> tuple[Fields, ...]:
    return tuple(item for item in get_items(fields, name) if isinstance(item, Fields))


def get_strings(fields: Fields, name: str) -> dict[str, Leaf]:
    """Return the entries of a mapping of strings."""
    section = fields.fields.get(name)
    entries = section.fields if isinstance(section, Fields) else {}
    return {key: leaf for key, leaf in entries.items() if isinstance(leaf, Leaf)}


def get_sections(fields: Fields, name: str) -> dict[str, Fields]:
    """Return the entries of a mapping of records."""
    section = fields.fields.get(name)
    entries = section.fields if isinstance(section, Fields) else {}
    return {key: record for key, record in entries.items() if isinstance(record, Fields)}


def convert_to_json(node: Node) -> Any:
    """Convert a node to the value that it has in JSON."""
    match node:
        case Fields():
            return {name: convert_to_json(value) for name, value in node.fields.items()}
        case Items():
            return [convert_to_json(item) for item in node.items]
        case Leaf():
            return _convert_leaf(node)


def _convert_leaf(leaf: Leaf) -> Any:
    match get_scalar_kind(leaf):
        case ScalarKind.TEXT | ScalarKind.UNSURE:
            return leaf.text
        case ScalarKind.NOTHING:
            return None
        case ScalarKind.YES_OR_NO:
            return leaf.text.casefold() == "true"
        case ScalarKind.WHOLE:
            return int(leaf.text)
        case ScalarKind.NUMBER:
            return float(int(leaf.text, 0)) if leaf.text[:2] in ("0o", "0x") else float(leaf.text)
