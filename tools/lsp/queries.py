"""What is the server asked, and what did it answer? One function per command, from a subject to what was found."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mcp_server.model.results import Code, Problem, Refusal
from tools.lsp import protocol
from tools.lsp.connection import ServerSilent
from tools.lsp.locations import workspace_path_from_uri
from tools.lsp.position import SymbolPosition
from tools.lsp.protocol import LspEdit, LspRange


@dataclass(frozen=True, slots=True)
class LspItem:
    """One thing found: a place, and what is said of it where that is not its line."""

    place: LspRange
    says: str | None = None
    edits: tuple[LspEdit, ...] = ()
    """What would be written there, all on one line of the file."""


@dataclass(frozen=True, slots=True)
class LspAnswer:
    entries: tuple[LspItem, ...] = ()
    one: str = "place"
    many: str = "places"
    text: str = ""
    """What is said in words, where the answer is no list of places."""


Command: TypeAlias = Callable[[SymbolPosition, str], Awaitable[LspAnswer]]


async def find_definition(subject: SymbolPosition, _: str) -> LspAnswer:
    result = await _ask_at_symbol(subject, "definition", {})
    return LspAnswer(tuple(map(LspItem, protocol.parse_locations(result))), "definition", "definitions")


async def find_references(subject: SymbolPosition, _: str) -> LspAnswer:
    result = await _ask_at_symbol(subject, "references", {"context": {"includeDeclaration": True}})
    return LspAnswer(tuple(map(LspItem, protocol.parse_locations(result))), "reference", "references")


async def read_hover(subject: SymbolPosition, _: str) -> LspAnswer:
    return LspAnswer(text=protocol.parse_hover(await _ask_at_symbol(subject, "hover", {})))


async def preview_rename(subject: SymbolPosition, new_name: str) -> LspAnswer:
    result = await _ask_at_symbol(subject, "rename", {"newName": new_name})
    lines: dict[tuple[str, int], list[LspEdit]] = {}
    for change in protocol.parse_workspace_edit(result):
        lines.setdefault((change.range.uri, change.range.order[0] if change.range.start else -1), []).append(change)
    entries = tuple(
        LspItem(changes[0].range, edits=tuple(sorted(changes, key=lambda change: change.range.order)))
        for changes in lines.values()
    )
    return LspAnswer(entries, "line to change", "lines to change")


async def list_document_symbols(subject: SymbolPosition, _: str) -> LspAnswer:
    _raise_if_unable(subject, "documentSymbolProvider", "documentSymbol")
    result = await subject.running.request("textDocument/documentSymbol", subject.document)
    found = protocol.parse_symbols(result, subject.document["textDocument"]["uri"])
    return LspAnswer(tuple(LspItem(one.range, f"{one.kind} {one.path}") for one in found), "symbol", "symbols")


async def find_workspace_symbols(subject: SymbolPosition, _: str) -> LspAnswer:
    _raise_if_unable(subject, "workspaceSymbolProvider", "workspace/symbol")
    result = await subject.running.request("workspace/symbol", {"query": subject.symbol})
    found = [
        one
        for one in protocol.parse_symbols(result, "")
        if workspace_path_from_uri(subject.root, one.range.uri) is not None
    ]
    return LspAnswer(tuple(LspItem(one.range, f"{one.kind} {one.path}") for one in found), "symbol", "symbols")


async def read_diagnostics(subject: SymbolPosition, _: str) -> LspAnswer:
    uri = subject.document["textDocument"]["uri"]
    running = subject.running
    if running.has_capability("diagnosticProvider"):
        report = await running.request("textDocument/diagnostic", subject.document)
    else:
        report = await _wait_for_diagnostics(subject, uri)
    found = protocol.parse_diagnostics(report, uri)
    return LspAnswer(tuple(LspItem(one.range, one.text) for one in found), "problem", "problems")


async def _wait_for_diagnostics(subject: SymbolPosition, uri: str) -> object:
    """What the server says unasked about the file as it is now, once it has said it and has nothing left to do."""
    running, opened = subject.running, subject.running.mirror.opened[subject.path]

    def is_current() -> bool:
        said = running.published.get(uri)
        if said is None or said.moment <= opened.moment or running.is_busy:
            return False
        return said.version is None or said.version >= opened.version

    if not await running.wait_until(is_current, running.patience.diagnostics):
        raise ServerSilent("textDocument/publishDiagnostics")
    return running.published[uri].params


PROVIDERS: Mapping[str, str] = {
    "definition": "definitionProvider",
    "references": "referencesProvider",
    "hover": "hoverProvider",
    "rename": "renameProvider",
}


async def _ask_at_symbol(subject: SymbolPosition, what: str, more: Mapping[str, object]) -> object:
    _raise_if_unable(subject, PROVIDERS[what], what)
    return await subject.running.request(f"textDocument/{what}", {**await subject.build_position_params(), **more})


def _raise_if_unable(subject: SymbolPosition, capability: str, what: str) -> None:
    if not subject.running.has_capability(capability):
        message = f"The language server for `{subject.path}` does not do that (`{what}`)."
        raise Refusal(Problem(Code.TOOL_FAILED, message, "Look with `grep` instead."))


COMMANDS: Mapping[str, Command] = {
    "goto_definition": find_definition,
    "goto_references": find_references,
    "hover_symbol": read_hover,
    "file_diagnostics": read_diagnostics,
    "document_symbols": list_document_symbols,
    "workspace_symbols": find_workspace_symbols,
    "rename_preview": preview_rename,
}
