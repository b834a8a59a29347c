"""What is the server asked, and what did it answer? One function per command."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from mcp_server.model.results import Code, Refusal
from tools.lsp import protocol
from tools.lsp.connection import ServerSilent
from tools.lsp.locations import workspace_path_from_uri
from tools.lsp.pool import RunningServer
from tools.lsp.position import SymbolPosition
from tools.lsp.protocol import LspEdit, LspRange, LspSymbol


class LspItem(Struct, frozen=True):
    """One place in an answer."""

    place: LspRange
    note: str | None = None
    """Shown instead of the line."""
    edits: tuple[LspEdit, ...] = ()
    """What a rename would write there, all on one line of the file."""


class LspAnswer(Struct, frozen=True):
    items: tuple[LspItem, ...] = ()
    noun: str = "place"
    plural: str = "places"
    text: str = ""
    """The answer, if it is not a list of places."""


LspCommand: TypeAlias = Callable[[SymbolPosition, str], Awaitable[LspAnswer]]


async def find_definition(position: SymbolPosition, _: str) -> LspAnswer:
    result = await _ask_at_symbol(position, "definition", {})
    return LspAnswer(tuple(map(LspItem, protocol.parse_locations(result))), "definition", "definitions")


async def find_references(position: SymbolPosition, _: str) -> LspAnswer:
    result = await _ask_at_symbol(position, "references", {"context": {"includeDeclaration": True}})
    return LspAnswer(tuple(map(LspItem, protocol.parse_locations(result))), "reference", "references")


async def read_hover(position: SymbolPosition, _: str) -> LspAnswer:
    return LspAnswer(text=protocol.parse_hover(await _ask_at_symbol(position, "hover", {})))


async def preview_rename(position: SymbolPosition, new_name: str) -> LspAnswer:
    result = await _ask_at_symbol(position, "rename", {"newName": new_name})
    lines: dict[tuple[str, int], list[LspEdit]] = {}
    for edit in protocol.parse_workspace_edit(result):
        lines.setdefault((edit.range.uri, edit.range.order[0] if edit.range.start else -1), []).append(edit)
    items = tuple(
        LspItem(edits[0].range, edits=tuple(sorted(edits, key=lambda edit: edit.range.order)))
        for edits in lines.values()
    )
    return LspAnswer(items, "line to change", "lines to change")


async def list_document_symbols(position: SymbolPosition, _: str) -> LspAnswer:
    _raise_if_unable(position, "documentSymbolProvider", "documentSymbol")
    result = await position.server.request("textDocument/documentSymbol", position.document)
    return _build_symbol_answer(protocol.parse_symbols(result, position.document["textDocument"]["uri"]))


async def find_workspace_symbols(position: SymbolPosition, _: str) -> LspAnswer:
    _raise_if_unable(position, "workspaceSymbolProvider", "workspace/symbol")
    result = await position.server.request("workspace/symbol", {"query": position.symbol})
    symbols = protocol.parse_symbols(result, "")
    return _build_symbol_answer(
        [symbol for symbol in symbols if workspace_path_from_uri(position.root, symbol.range.uri) is not None]
    )


def _build_symbol_answer(symbols: Sequence[LspSymbol]) -> LspAnswer:
    items = tuple(LspItem(symbol.range, f"{symbol.kind} {symbol.path}") for symbol in symbols)
    return LspAnswer(items, "symbol", "symbols")


async def read_diagnostics(position: SymbolPosition, _: str) -> LspAnswer:
    uri = position.document["textDocument"]["uri"]
    if position.server.has_capability("diagnosticProvider"):
        report = await position.server.request("textDocument/diagnostic", position.document)
    else:
        report = await _wait_for_diagnostics(position.server, position.path, uri)
    diagnostics = protocol.parse_diagnostics(report, uri)
    return LspAnswer(tuple(LspItem(each.range, each.text) for each in diagnostics), "problem", "problems")


async def _wait_for_diagnostics(server: RunningServer, path: str, uri: str) -> object:
    """Wait until the server has published diagnostics of the file as it is now, and has no work left."""
    document = server.documents.by_path[path]

    def is_current() -> bool:
        diagnostics = server.diagnostics.get(uri)
        if diagnostics is None or diagnostics.received_at <= document.sent_at or server.is_busy:
            return False
        return diagnostics.version is None or diagnostics.version >= document.version

    if not await server.wait_until(is_current, server.timeouts.diagnostics):
        raise ServerSilent("textDocument/publishDiagnostics")
    return server.diagnostics[uri].params


PROVIDERS: Mapping[str, str] = {
    "definition": "definitionProvider",
    "references": "referencesProvider",
    "hover": "hoverProvider",
    "rename": "renameProvider",
}


async def _ask_at_symbol(position: SymbolPosition, request: str, extra_params: Mapping[str, object]) -> object:
    _raise_if_unable(position, PROVIDERS[request], request)
    params = {**await position.build_position_params(), **extra_params}
    return await position.server.request(f"textDocument/{request}", params)


def _raise_if_unable(position: SymbolPosition, capability: str, request: str) -> None:
    if not position.server.has_capability(capability):
        message = f"The language server for `{position.path}` does not support `{request}`."
        raise Refusal.because(Code.TOOL_FAILED, message, "Use `grep` instead.")


COMMANDS: Mapping[str, LspCommand] = {
    "goto_definition": find_definition,
    "goto_references": find_references,
    "hover_symbol": read_hover,
    "file_diagnostics": read_diagnostics,
    "document_symbols": list_document_symbols,
    "workspace_symbols": find_workspace_symbols,
    "rename_preview": preview_rename,
}
