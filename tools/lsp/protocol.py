"""What did the server say? Its results as values, of whatever shape and revision; what is none of them is dropped.

Whatever a server sends may be wrong or hostile, so nothing of it is used before it was looked at here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

KINDS = """
file module namespace package class method property field constructor enum interface function variable constant string
number boolean array object key null enum-member struct event operator type-parameter
"""
SEVERITIES = ("error", "warning", "information", "hint")
DEEPEST = 50


@dataclass(frozen=True, slots=True)
class LspRange:
    uri: str
    start: Mapping[str, Any]
    end: Mapping[str, Any]

    @property
    def order(self) -> tuple[int, int]:
        return to_number(self.start.get("line")), to_number(self.start.get("character"))


@dataclass(frozen=True, slots=True)
class LspSymbol:
    range: LspRange
    kind: str
    path: str
    """Its name with what holds it: `Order/total`."""


@dataclass(frozen=True, slots=True)
class LspDiagnostic:
    range: LspRange
    severity: str
    text: str


@dataclass(frozen=True, slots=True)
class LspEdit:
    """One edit of a rename; or, without a range, what would happen to a file."""

    range: LspRange
    text: str


def to_number(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 31 else 0


def to_fields(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def to_list(value: object) -> list[object]:
    """One is a list of one, and none is a list of none."""
    if isinstance(value, list):
        return cast(list[object], value)
    return [] if value is None else [value]


def to_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def parse_range(uri: object, value: object) -> LspRange | None:
    found = to_fields(value)
    start, end = to_fields(found.get("start")), to_fields(found.get("end"))
    return LspRange(uri, start, end) if isinstance(uri, str) and start and end else None


def parse_locations(result: object) -> list[LspRange]:
    """Of Location, LocationLink, and lists of them."""
    found: list[LspRange] = []
    for one in map(to_fields, to_list(result)):
        place = parse_range(one.get("targetUri"), one.get("targetSelectionRange") or one.get("targetRange"))
        place = place or parse_range(one.get("uri"), one.get("range"))
        if place and place not in found[-1:]:
            found.append(place)
    return found


def parse_hover(result: object) -> str:
    """Of MarkupContent, MarkedString, and lists of them."""
    parts: list[str] = []
    for one in to_list(to_fields(result).get("contents")):
        text = one if isinstance(one, str) else to_text(to_fields(one).get("value"))
        language = to_text(to_fields(one).get("language"))
        parts.append(f"```{language}\n{text}\n```" if language and text else text)
    return "\n\n".join(part.strip() for part in parts if part.strip())


def parse_symbols(result: object, uri: str) -> list[LspSymbol]:
    """Of DocumentSymbol, which holds others, and of SymbolInformation, which names what holds it."""
    return list(_walk_symbols(to_list(result), uri, "", 0))


def _walk_symbols(result: list[object], uri: str, above: str, depth: int) -> Iterator[LspSymbol]:
    for one in map(to_fields, result):
        name = to_text(one.get("name"))
        location = to_fields(one.get("location"))
        place = parse_range(location.get("uri"), location.get("range")) or parse_range(
            uri, one.get("selectionRange") or one.get("range")
        )
        holder = above or to_text(one.get("containerName"))
        path = f"{holder}/{name}" if holder else name
        if name and place:
            yield LspSymbol(place, to_kind_name(one.get("kind")), path)
        if depth < DEEPEST:
            yield from _walk_symbols(to_list(one.get("children")), uri, path, depth + 1)


def to_kind_name(value: object) -> str:
    names = KINDS.split()
    return names[value - 1] if type(value) is int and 1 <= value <= len(names) else "symbol"


def parse_diagnostics(result: object, uri: str) -> list[LspDiagnostic]:
    """Of a diagnostic report, and of the parameters of publishDiagnostics."""
    report = to_fields(result)
    found: list[LspDiagnostic] = []
    for one in map(to_fields, to_list(report.get("items", report.get("diagnostics")))):
        place = parse_range(uri, one.get("range"))
        if place is None:
            continue
        level = one.get("severity")
        severity = SEVERITIES[level - 1] if type(level) is int and 1 <= level <= len(SEVERITIES) else "error"
        code = one.get("code")
        named = f" {code}" if isinstance(code, str | int) and code != "" else ""
        message = one.get("message")
        text = " ".join((message if isinstance(message, str) else to_text(to_fields(message).get("value"))).split())
        found.append(LspDiagnostic(place, severity, f"{severity}{named}: {text}"))
    return found


def parse_workspace_edit(result: object) -> list[LspEdit]:
    """Of a WorkspaceEdit in either of its two forms."""
    edit, found = to_fields(result), list[LspEdit]()
    for uri, edits in to_fields(edit.get("changes")).items():
        found += _parse_edits(uri, edits)
    for one in map(to_fields, to_list(edit.get("documentChanges"))):
        if what := to_text(one.get("kind")):
            found += _parse_file_operation(what, one)
        else:
            found += _parse_edits(to_fields(one.get("textDocument")).get("uri"), one.get("edits"))
    return found


def _parse_edits(uri: object, edits: object) -> Iterator[LspEdit]:
    for one in map(to_fields, to_list(edits)):
        if (place := parse_range(uri, one.get("range"))) is not None:
            yield LspEdit(place, to_text(one.get("newText")))


def _parse_file_operation(what: str, one: Mapping[str, Any]) -> Iterator[LspEdit]:
    uri, new = to_text(one.get("uri") or one.get("oldUri")), to_text(one.get("newUri")).rpartition("/")[2]
    if uri:
        yield LspEdit(LspRange(uri, {}, {}), f"[the file: {what}{f' to {new}' if new else ''}]")
