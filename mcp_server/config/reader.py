"""What does a YAML file say, and on which line? A strict reader: no tags, anchors, duplicate keys or ambiguous values.

It reads the parser's events, for which the parser needs no stack. So a file that nests a hundred thousand deep, or that
expands ten lines into a billion laughs, is refused at its seventeenth level or first anchor, at no cost. A bare `yes`
is a string in YAML 1.2 and a boolean in 1.1; here it is refused.
"""

import os
import re
import stat
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import Struct, field

from mcp_server.config.faults import FaultCollector, SourceLocation
from mcp_server.model.text import quote_exactly

if TYPE_CHECKING:
    from yaml import Event

LARGEST = 256 * 1024
MAX_DEPTH = 16
# Harmful to a terminal or a reader: control characters, halves of surrogate pairs, characters that turn the writing
# direction, and invisible letters that only a model reads.
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff\U000e0000-\U000e007f]"
)


class Leaf(Struct, frozen=True):
    text: str
    plain: bool
    """Not in quotes, so that `true` is a boolean and `5` a number."""
    place: SourceLocation


class Items(Struct, frozen=True):
    items: tuple["Node", ...]
    place: SourceLocation


class Fields(Struct, frozen=True):
    place: SourceLocation
    fields: dict[str, "Node"] = field(default_factory=dict[str, "Node"])
    keys: dict[str, SourceLocation] = field(default_factory=dict[str, SourceLocation])
    """The location of each key, at which a fault about the key is reported."""


Node: TypeAlias = Leaf | Items | Fields


class ScalarKind(Enum):
    """What a plain value is, as messages call it."""

    TEXT = "a string"
    NOTHING = "nothing"
    YES_OR_NO = "true or false"
    WHOLE = "a whole number"
    NUMBER = "a number"
    UNSURE = "a word that some parsers read as true or false"


PLAIN: tuple[tuple[ScalarKind, re.Pattern[str]], ...] = (
    (ScalarKind.NOTHING, re.compile(r"~|null|Null|NULL|")),
    (ScalarKind.YES_OR_NO, re.compile(r"true|True|TRUE|false|False|FALSE")),
    (ScalarKind.UNSURE, re.compile(r"(?i:y|n|yes|no|on|off)")),
    (ScalarKind.WHOLE, re.compile(r"[-+]?[0-9]+")),
    (
        ScalarKind.NUMBER,
        re.compile(
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|0o[0-7]+|0x[0-9a-fA-F]+"
        ),
    ),
)


def get_scalar_kind(leaf: Leaf) -> ScalarKind:
    if not leaf.plain:
        return ScalarKind.TEXT
    return next((kind for kind, pattern in PLAIN if pattern.fullmatch(leaf.text)), ScalarKind.TEXT)


def read_yaml_file(path: Path, findings: FaultCollector) -> Node | None:
    """Read the one document in the file; None after a fault that leaves nothing to check."""
    text = read_text_file(path, findings)
    return None if text is None else parse_yaml(text, str(path), findings)


def read_text_file(path: Path, findings: FaultCollector) -> str | None:
    """Read the text of the file; None after a fault."""
    place = SourceLocation(str(path))
    try:
        data = _read_bytes(path)
    except OSError as error:
        findings.add(place, f"the file cannot be read: {(error.strerror or 'no reason given').lower()}")
        return None
    if data is None:
        findings.add(place, "this is not a regular file")
        return None
    if len(data) > LARGEST:
        findings.add(place, f"the file is larger than {LARGEST // 1024} KB; split it")
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        findings.add(SourceLocation(str(path), line), "this is not UTF-8 text; save the file as UTF-8")
        return None


def _read_bytes(path: Path) -> bytes | None:
    """Read up to one byte more than the limit; None if it is not a regular file. Never blocks on a pipe."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        return file.read(LARGEST + 1)


def parse_yaml(text: str, file: str, findings: FaultCollector, pure: bool = False) -> Node | None:
    """Parse the text. `pure` uses the parser for machines without libyaml."""
    import yaml

    if unseen := UNSEEN.search(text):
        line = text.count("\n", 0, unseen.start()) + 1
        message = f"there is an invisible character (U+{ord(unseen.group()):04X}); remove it"
        findings.add(SourceLocation(file, line), message)
        return None
    loader = yaml.SafeLoader if pure else getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = cast("Iterator[Event]", yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]  # the stub leaves out what a stream is
    builder = _Builder(events, file, findings)
    try:
        return builder.build_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = SourceLocation(file, mark.line + 1 if mark else 1, mark.column + 1 if mark else 1)
        start = error.context_mark.line + 1 if error.context_mark else place.line
        findings.add(place, _describe_problem(error.problem or "", text, place.line, start))
    except (yaml.YAMLError, ValueError, OverflowError):
        # The pure parser raises the last two from `chr` and `int` on absurd escapes.
        findings.add(SourceLocation(file), "this is not YAML: it contains an invalid character")
    except _Hopeless:
        pass
    return None


def _describe_problem(problem: str, text: str, number: int, start: int) -> str:
    lines = text.splitlines()
    line = lines[number - 1] if number <= len(lines) else ""
    if line.lstrip(" ").startswith("\t"):
        return "the line is indented with a tab; YAML needs spaces"
    where = "here" if start == number else f"here and on line {start}, where it starts"
    return f"this is not YAML: {problem or 'it cannot be parsed'}; check the quotes, colons and indentation {where}"


class _Hopeless(Exception):
    """The rest of the file is not worth checking; the fault is already recorded."""


class _Builder:
    def __init__(self, events: Iterator["Event"], file: str, findings: FaultCollector) -> None:
        self._events = events
        self._file = file
        self._findings = findings

    def build_document(self) -> Node | None:
        import yaml

        node: Node | None = Fields(SourceLocation(self._file, 1, 1))
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                self._check_start(event, documents)
            elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                node = self._build_node(event, "", 1)
        return node

    def _check_start(self, event: "Event", number: int) -> None:
        if number > 1:
            self._stop(event, "a second document starts here (`---`); a file may contain only one")
        if getattr(event, "version", None) or getattr(event, "tags", None):
            self._findings.add(self._get_location(event), "directives are not supported; remove the line with `%`")

    def _build_node(self, event: "Event", key: str, depth: int) -> Node | None:
        import yaml

        place = self._get_location(event, key)
        if isinstance(event, yaml.AliasEvent):
            self._findings.add(place, f"aliases are not supported; write out what `*{event.anchor}` stands for")
            return None
        self._refuse_decoration(event, place)
        if depth > MAX_DEPTH:
            self._stop(event, f"this is nested more than {MAX_DEPTH} levels deep", key)
        if isinstance(event, yaml.ScalarEvent):
            return self._build_leaf(str(event.value), event.style in (None, ""), place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._build_items(place, depth)
        return self._build_fields(place, depth)

    def _build_leaf(self, text: str, plain: bool, place: SourceLocation) -> Leaf | None:
        if "\r" in text or UNSEEN.search(text):
            self._findings.add(place, "the value contains an invisible character, written as an escape; remove it")
            return None
        return Leaf(text, plain, place)

    def _build_items(self, place: SourceLocation, depth: int) -> Items:
        import yaml

        items: list[Node] = []
        for number, event in enumerate(self._read_until(yaml.SequenceEndEvent)):
            node = self._build_node(event, f"{place.key}[{number}]", depth + 1)
            if node is not None:
                items.append(node)
        return Items(tuple(items), place)

    def _build_fields(self, place: SourceLocation, depth: int) -> Fields:
        import yaml

        record = Fields(place)
        for event in self._read_until(yaml.MappingEndEvent):
            name = self._read_key(event, place.key, depth)
            key = f"{place.key}.{name}" if place.key and name else name or place.key
            node = self._build_node(next(self._events), key, depth + 1)
            if name is None:
                continue
            if name in record.fields or name in record.keys:
                first = record.keys[name].line
                self._findings.add(self._get_location(event, key), f"the key appears twice, first on line {first}")
                continue
            record.keys[name] = self._get_location(event, key)
            if node is not None:
                record.fields[name] = node
        return record

    def _read_key(self, event: "Event", parent: str, depth: int) -> str | None:
        node = self._build_node(event, parent, depth + 1)
        if isinstance(node, Leaf):
            if get_scalar_kind(node) is ScalarKind.TEXT:
                return node.text
            shown = quote_exactly(node.text) if node.text else "nothing"
            kind = get_scalar_kind(node).value
            self._findings.add(node.place, f"a key must be a string, but {shown} is {kind}; put it in quotes")
        elif node is not None:
            message = "a key must be a string, not a list or a mapping; a value with braces needs quotes"
            self._findings.add(node.place, message)
        return None

    def _read_until(self, end: "type[Event]") -> Iterator["Event"]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _refuse_decoration(self, event: "Event", place: SourceLocation) -> None:
        tag, anchor = getattr(event, "tag", None), getattr(event, "anchor", None)
        if tag is not None:
            self._findings.add(place, f"tags are not supported; remove {quote_exactly(str(tag))}")
        if anchor is not None:
            self._findings.add(place, f"anchors are not supported; remove {quote_exactly('&' + str(anchor))}")

    def _stop(self, event: "Event", message: str, key: str = "") -> None:
        self._findings.add(self._get_location(event, key), message)
        raise _Hopeless

    def _get_location(self, event: "Event", key: str = "") -> SourceLocation:
        mark = event.start_mark
        return SourceLocation(self._file, mark.line + 1, mark.column + 1, key)
