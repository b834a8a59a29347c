"""Does a file have the shape it should, and which parts of it can be used? One description checks and documents.

`fit` gives back the parts that are right and reports the others, so that one fault never hides the next.
The JSON Schemas that editors use are made from the same descriptions, in `schemas.py`. The descriptions are named
tuples because those cost a seventh of a dataclass at every start.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from mcp_server.config.faults import FaultCollector
from mcp_server.config.reader import Fields, Items, Leaf, Node, ScalarKind, get_scalar_kind
from mcp_server.model.text import quote_exactly


class LineField(NamedTuple):
    """A text of one line."""

    most: int
    pattern: str = ""
    wants: str = ""
    """What the pattern asks for, in words."""


class IntField(NamedTuple):
    """A whole number."""

    least: int
    most: int


class BoolField(NamedTuple):
    """`true` or `false`."""


class EnumField(NamedTuple):
    """One of these names."""

    names: tuple[str, ...]


class ListField(NamedTuple):
    """A list in which nothing stands twice."""

    item: "Shape"
    least: int = 0
    most: int = 1000


class KeySpec(NamedTuple):
    shape: "Shape"
    says: str
    """What the key is for; editors show it."""
    required: bool = False


class RecordField(NamedTuple):
    keys: Mapping[str, KeySpec]
    says: str = ""


class TextOrField(NamedTuple):
    """A text, or a record that says more."""

    text: LineField
    record: RecordField


Shape: TypeAlias = LineField | IntField | BoolField | EnumField | ListField | RecordField | TextOrField


def fit(node: Node, shape: Shape, findings: FaultCollector) -> Node | None:
    match shape:
        case RecordField():
            return _fit_record(node, shape, findings)
        case ListField():
            return _fit_list(node, shape, findings)
        case TextOrField():
            return fit(node, shape.record if isinstance(node, Fields) else shape.text, findings)
        case LineField():
            return _fit_line(node, shape, findings)
        case EnumField():
            return _fit_choice(node, shape, findings)
        case IntField():
            return _fit_integer(node, shape, findings)
        case BoolField():
            return _fit_boolean(node, findings)


def _fit_record(node: Node, shape: RecordField, findings: FaultCollector) -> Fields | None:
    if not isinstance(node, Fields):
        return _report_wrong_kind(node, "a mapping (`key: value` lines)", findings)
    known = Fields(node.place, {}, node.keys)
    for name, place in node.keys.items():
        if name not in shape.keys:
            findings.add(place, f"there is no key {quote_exactly(name)} here", name, shape.keys)
    for name, key in shape.keys.items():
        if name in node.fields:
            value = fit(node.fields[name], key.shape, findings)
            if value is not None:
                known.fields[name] = value
        elif key.required and name not in node.keys:
            place = replace(node.place, key=f"{node.place.key}.{name}".lstrip("."))
            findings.add(place, f"this key is missing: {key.says}")
    return known


def _fit_list(node: Node, shape: ListField, findings: FaultCollector) -> Items | None:
    if not isinstance(node, Items):
        return _report_wrong_kind(node, "a list (each entry on a line that begins with `- `)", findings)
    if len(node.items) > shape.most:
        findings.add(node.place, f"the list has {len(node.items)} entries; {shape.most} is the most")
        return None
    if len(node.items) < shape.least:
        findings.add(node.place, "the list is empty; name at least one")
        return None
    fitting = [value for item in node.items if (value := fit(item, shape.item, findings)) is not None]
    return Items(tuple(_drop_duplicates(fitting, findings)), node.place)


def _drop_duplicates(nodes: list[Node], findings: FaultCollector) -> list[Node]:
    first: dict[str, Leaf] = {}
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, Leaf) and node.text in first:
            line = first[node.text].place.line
            findings.add(node.place, f"{quote_exactly(node.text)} is in the list twice, first in line {line}")
            continue
        if isinstance(node, Leaf):
            first[node.text] = node
        kept.append(node)
    return kept


def _fit_line(node: Node, shape: LineField, findings: FaultCollector) -> Leaf | None:
    if not isinstance(node, Leaf):
        return _report_wrong_kind(node, "a text", findings)
    what = get_scalar_kind(node)
    if what is not ScalarKind.TEXT:
        shown = f"{quote_exactly(node.text)} is {what.value}" if node.text else "nothing is there"
        findings.add(node.place, f"a text is expected, and {shown}; put it in quotes if it is meant as a text")
        return None
    problem = _find_text_fault(node.text, shape)
    if problem:
        findings.add(node.place, problem)
    return None if problem else node


def _find_text_fault(text: str, shape: LineField) -> str:
    if not text.strip():
        return "the text is empty"
    if text != text.strip() or "\n" in text or "\t" in text:
        return "the text has to be one line without spaces around it; begin a long one with `>-`"
    if len(text) > shape.most:
        return f"the text has {len(text)} characters; {shape.most} is the most"
    if shape.pattern and not re.fullmatch(shape.pattern, text):
        return f"{quote_exactly(text)} does not fit; it has to be {shape.wants}"
    return ""


def _fit_choice(node: Node, shape: EnumField, findings: FaultCollector) -> Leaf | None:
    if not isinstance(node, Leaf):
        return _report_wrong_kind(node, "one of " + ", ".join(shape.names), findings)
    if node.text in shape.names:
        return node
    shown = quote_exactly(node.text) if node.text else "nothing"
    findings.add(node.place, f"{shown} is not one of " + ", ".join(shape.names), node.text, shape.names)
    return None


def _fit_integer(node: Node, shape: IntField, findings: FaultCollector) -> Leaf | None:
    wanted = f"a whole number from {shape.least} to {shape.most}"
    if not isinstance(node, Leaf) or get_scalar_kind(node) is not ScalarKind.WHOLE:
        return _report_wrong_kind(node, wanted, findings)
    if len(node.text) <= 20 and shape.least <= int(node.text) <= shape.most:
        return node
    findings.add(node.place, f"{quote_exactly(node.text)} is not {wanted}")
    return None


def _fit_boolean(node: Node, findings: FaultCollector) -> Leaf | None:
    if isinstance(node, Leaf) and get_scalar_kind(node) is ScalarKind.YES_OR_NO:
        return node
    return _report_wrong_kind(node, "`true` or `false`, without quotes", findings)


def _report_wrong_kind(node: Node, wanted: str, findings: FaultCollector) -> None:
    match node:
        case Fields():
            there = "a mapping is there"
        case Items():
            there = "a list is there"
        case Leaf(text="", plain=True):
            there = "nothing is there"
        case Leaf():
            there = f"{quote_exactly(node.text)} is {'in quotes' if not node.plain else get_scalar_kind(node).value}"
    findings.add(node.place, f"{wanted} is expected, and {there}")


def get_leaf(fields: Fields, name: str) -> Leaf | None:
    value = fields.fields.get(name)
    return value if isinstance(value, Leaf) else None


def get_text(fields: Fields, name: str) -> str:
    """What the key says, or nothing where it is not there."""
    found = get_leaf(fields, name)
    return found.text if found else ""


def get_number(fields: Fields, name: str) -> int | None:
    found = get_leaf(fields, name)
    return int(found.text) if found else None


def get_flag(fields: Fields, name: str, otherwise: bool) -> bool:
    found = get_leaf(fields, name)
    return found.text.casefold() == "true" if found else otherwise


def get_items(fields: Fields, name: str) -> tuple[Node, ...]:
    value = fields.fields.get(name)
    return value.items if isinstance(value, Items) else ()


def get_leaves(fields: Fields, name: str) -> tuple[Leaf, ...]:
    return tuple(item for item in get_items(fields, name) if isinstance(item, Leaf))


def get_records(fields: Fields, name: str) -> tuple[Fields, ...]:
    return tuple(item for item in get_items(fields, name) if isinstance(item, Fields))
