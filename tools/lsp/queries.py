"""What is the server asked, and what did it answer? One function per command, from a subject to what was found."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mcp_server.model.results import Code, Problem, Refusal
from tools.lsp import protocol
from tools.lsp.connection import ServerSilent
from tools.lsp.locations import inside
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


async def definition(subject: SymbolPosition, _: str) -> LspAnswer:
    result = await _asked(subject, "definition", {})
    return LspAnswer(tuple(map(LspItem, protocol.places(result))), "definition", "definitions")


async def references(subject: SymbolPosition, _: str) -> LspAnswer:
    result = await _asked(subject, "references", {"context": {"includeDeclaration": True}})
    return LspAnswer(tuple(map(LspItem, protocol.places(result))), "reference", "references")


async def hover(subject: SymbolPosition, _: str) -> LspAnswer:
    return LspAnswer(text=protocol.hover(await _asked(subject, "hover", {})))


async def rename(subject: SymbolPosition, new_name: str) -> LspAnswer:
    result = await _asked(subject, "rename", {"newName": new_name})
    lines: dict[tuple[str, int], list[LspEdit]] = {}
    for change in protocol.changes(result):
        lines.setdefault((change.range.uri, change.range.order[0] if change.range.start else -1), []).append(change)
    entries = tuple(
        LspItem(changes[0].range, edits=tuple(sorted(changes, key=lambda change: change.range.order)))
        for changes in lines.values()
    )
    return LspAnswer(entries, "line to change", "lines to change")


async def document_symbols(subject: SymbolPosition, _: str) -> LspAnswer:
    _able(subject, "documentSymbolProvider", "documentSymbol")
    result = await subject.running.request("textDocument/documentSymbol", subject.document)
    found = protocol.symbols(result, subject.document["textDocument"]["uri"])
    return LspAnswer(tuple(LspItem(one.range, f"{one.kind} {one.path}") for one in found), "symbol", "symbols")


async def workspace_symbols(subject: SymbolPosition, _: str) -> LspAnswer:
    _able(subject, "workspaceSymbolProvider", "workspace/symbol")
    result = await subject.running.request("workspace/symbol", {"query": subject.symbol})
    found = [one for one in protocol.symbols(result, "") if inside(subject.root, one.range.uri) is not None]
    return LspAnswer(tuple(LspItem(one.range, f"{one.kind} {one.path}") for one in found), "symbol", "symbols")


async def diagnostics(subject: SymbolPosition, _: str) -> LspAnswer:
    uri = subject.document["textDocument"]["uri"]
    running = subject.running
    if running.able("diagnosticProvider"):
        report = await running.request("textDocument/diagnostic", subject.document)
    else:
        report = await _announced(subject, uri)
    found = protocol.complaints(report, uri)
    return LspAnswer(tuple(LspItem(one.range, one.text) for one in found), "problem", "problems")


async def _announced(subject: SymbolPosition, uri: str) -> object:
    """What the server says unasked about the file as it is now, once it has said it and has nothing left to do."""
    running, opened = subject.running, subject.running.mirror.opened[subject.path]

    def current() -> bool:
        said = running.published.get(uri)
        if said is None or said.moment <= opened.moment or running.busy:
            return False
        return said.version is None or said.version >= opened.version

    if not await running.until(current, running.patience.diagnostics):
        raise ServerSilent("textDocument/publishDiagnostics")
    return running.published[uri].params


PROVIDERS: Mapping[str, str] = {
    "definition": "definitionProvider",
    "references": "referencesProvider",
    "hover": "hoverProvider",
    "rename": "renameProvider",
}


async def _asked(subject: SymbolPosition, what: str, more: Mapping[str, object]) -> object:
    _able(subject, PROVIDERS[what], what)
    return await subject.running.request(f"textDocument/{what}", {**await subject.place(), **more})


def _able(subject: SymbolPosition, capability: str, what: str) -> None:
    if not subject.running.able(capability):
        message = f"The language server for `{subject.path}` does not do that (`{what}`)."
        raise Refusal(Problem(Code.TOOL_FAILED, message, "Look with `grep` instead."))


COMMANDS: Mapping[str, Command] = {
    "goto_definition": definition,
    "goto_references": references,
    "hover_symbol": hover,
    "file_diagnostics": diagnostics,
    "document_symbols": document_symbols,
    "workspace_symbols": workspace_symbols,
    "rename_preview": rename,
}
