"""What did the server answer? Parses results of every shape and revision of the protocol, and drops the rest.

A server may send anything, by mistake or by intent, so every value is checked here before use.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

KINDS = """
file module namespace package class method property field constructor enum interface function variable constant string
number boolean array object key null enum-member struct event operator type-parameter
"""
SEVERITIES = ("error", "warning", "information", "hint")
MAX_SYMBOL_DEPTH = 50


class LspRange(Struct, frozen=True):
    uri: str
    start: Mapping[str, Any]
    end: Mapping[str, Any]

    @property
    def order(self) -> tuple[int, int]:
        return to_number(self.start.get("line")), to_number(self.start.get("character"))


class LspSymbol(Struct, frozen=True):
    range: LspRange
    kind: str
    path: str
    """Its name below that of its container: `Order/total`."""


class LspDiagnostic(Struct, frozen=True):
    range: LspRange
    text: str


class LspEdit(Struct, frozen=True):
    """One edit of a rename; or, with an empty range, an operation on a file."""

    range: LspRange
    text: str


def to_number(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 31 else 0


def to_fields(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def to_list(value: object) -> list[object]:
    """Return a list as it is, a single value as a list, and None as an empty one."""
    if isinstance(value, list):
        return cast(list[object], value)
    return [] if value is None else [value]


def to_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parse_range(uri: object, value: object) -> LspRange | None:
    fields = to_fields(value)
    start, end = to_fields(fields.get("start")), to_fields(fields.get("end"))
    return LspRange(uri, start, end) if isinstance(uri, str) and start and end else None


def parse_locations(result: object) -> list[LspRange]:
    """Parse a Location, a LocationLink, or a list of them."""
    locations: list[LspRange] = []
    for fields in map(to_fields, to_list(result)):
        location = _parse_range(
            fields.get("targetUri"), fields.get("targetSelectionRange") or fields.get("targetRange")
        )
        location = location or _parse_range(fields.get("uri"), fields.get("range"))
        if location and location not in locations[-1:]:
            locations.append(location)
    return locations


def parse_hover(result: object) -> str:
    """Parse a Hover with MarkupContent, a MarkedString, or a list of these."""
    parts: list[str] = []
    for content in to_list(to_fields(result).get("contents")):
        text = content if isinstance(content, str) else to_text(to_fields(content).get("value"))
        language = to_text(to_fields(content).get("language"))
        parts.append(f"```{language}\n{text}\n```" if language and text else text)
    return "\n\n".join(part.strip() for part in parts if part.strip())


def parse_symbols(result: object, uri: str) -> list[LspSymbol]:
    """Parse a list of DocumentSymbol, which nests, or of SymbolInformation, which names its container."""
    return list(_walk_symbols(to_list(result), uri, "", 0))


def _walk_symbols(result: list[object], uri: str, parent: str, depth: int) -> Iterator[LspSymbol]:
    for fields in map(to_fields, result):
        name = to_text(fields.get("name"))
        location = to_fields(fields.get("location"))
        place = _parse_range(location.get("uri"), location.get("range")) or _parse_range(
            uri, fields.get("selectionRange") or fields.get("range")
        )
        container = parent or to_text(fields.get("containerName"))
        path = f"{container}/{name}" if container else name
        if name and place:
            yield LspSymbol(place, get_kind_name(fields.get("kind")), path)
        if depth < MAX_SYMBOL_DEPTH:
            yield from _walk_symbols(to_list(fields.get("children")), uri, path, depth + 1)


def get_kind_name(value: object) -> str:
    names = KINDS.split()
    return names[value - 1] if type(value) is int and 1 <= value <= len(names) else "symbol"


def parse_diagnostics(result: object, uri: str) -> list[LspDiagnostic]:
    """Parse a diagnostic report, or the parameters of publishDiagnostics."""
    report = to_fields(result)
    diagnostics: list[LspDiagnostic] = []
    for fields in map(to_fields, to_list(report.get("items", report.get("diagnostics")))):
        place = _parse_range(uri, fields.get("range"))
        if place is None:
            continue
        level = fields.get("severity")
        severity = SEVERITIES[level - 1] if type(level) is int and 1 <= level <= len(SEVERITIES) else "error"
        code = fields.get("code")
        code_text = f" {code}" if isinstance(code, str | int) and code != "" else ""
        message = fields.get("message")
        text = " ".join((message if isinstance(message, str) else to_text(to_fields(message).get("value"))).split())
        diagnostics.append(LspDiagnostic(place, f"{severity}{code_text}: {text}"))
    return diagnostics


def parse_workspace_edit(result: object) -> list[LspEdit]:
    """Parse a WorkspaceEdit in either of its two forms."""
    workspace_edit, edits = to_fields(result), list[LspEdit]()
    for uri, changes in to_fields(workspace_edit.get("changes")).items():
        edits += _parse_edits(uri, changes)
    for fields in map(to_fields, to_list(workspace_edit.get("documentChanges"))):
        if operation := to_text(fields.get("kind")):
            edits += _parse_file_operation(operation, fields)
        else:
            edits += _parse_edits(to_fields(fields.get("textDocument")).get("uri"), fields.get("edits"))
    return edits


def _parse_edits(uri: object, changes: object) -> Iterator[LspEdit]:
    for fields in map(to_fields, to_list(changes)):
        if (place := _parse_range(uri, fields.get("range"))) is not None:
            yield LspEdit(place, to_text(fields.get("newText")))


def _parse_file_operation(operation: str, fields: Mapping[str, Any]) -> Iterator[LspEdit]:
    uri = to_text(fields.get("uri") or fields.get("oldUri"))
    new_name = to_text(fields.get("newUri")).rpartition("/")[2]
    if uri:
        yield LspEdit(LspRange(uri, {}, {}), f"[the file: {operation}{f' to {new_name}' if new_name else ''}]")
