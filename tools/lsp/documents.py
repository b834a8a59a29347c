"""Does the server know the files as they are now? What it has open is kept the same, and it hears what changed."""

from dataclasses import dataclass, field
from typing import Any

from anyio import to_thread

from mcp_server.model.files import Files, Search
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import make_visible
from tools.files.lines import BOM, MOST_BYTES, describe_non_text
from tools.lsp.connection import LspConnection
from tools.lsp.locations import uri_from_path
from tools.lsp.servers import Language, get_language_id
from tools.lsp.text import DocumentText

MOST_OPEN = 8
MOST_WATCHED = 20_000
SECONDS = 5.0
CREATED, CHANGED, DELETED = 1, 2, 3


@dataclass
class OpenDocument:
    digest: str
    version: int
    moment: int
    """What the server had said by then, counted: whatever it says of the file later is about this version."""


@dataclass(frozen=True, slots=True)
class DocumentSight:
    """The language's files at one moment: every name, and the newest time among them."""

    names: frozenset[str] = frozenset()
    newest: int = 0
    complete: bool = False


def survey_files(files: Files, language: Language, since: int = 0) -> tuple[DocumentSight, list[str]]:
    """What is there, and which of it is newer than that time."""
    found = files.glob(Search(language.glob, limit=MOST_WATCHED, timeout=SECONDS))
    newest, newer = since, list[str]()
    for path in found.lines:
        try:
            time = files.get_info(path).mtime_ns
        except Refusal:
            continue
        newest = max(newest, time)
        # The newest come first, so this ends at the first file that is as old as what was seen before.
        if not since or time <= since:
            break
        newer.append(path)
    complete = found.complete and found.total <= MOST_WATCHED
    return DocumentSight(frozenset(found.lines), newest, complete), newer


@dataclass
class OpenDocuments:
    root: str
    language: Language
    conversation: LspConnection
    seen: DocumentSight
    opened: dict[str, OpenDocument] = field(default_factory=dict[str, OpenDocument])
    """By path, the one used last at the end."""

    async def announce_changes(self, files: Files) -> bool:
        """Tell the server what changed since. Did anything?"""
        before = self.seen
        self.seen, newer = await to_thread.run_sync(survey_files, files, self.language, before.newest)
        changes = dict.fromkeys(newer, CHANGED)
        if before.complete and self.seen.complete:
            changes |= dict.fromkeys(self.seen.names - before.names, CREATED)
            changes |= dict.fromkeys(before.names - self.seen.names, DELETED)
        if changes:
            told = [{"uri": uri_from_path(self.root, path), "type": how} for path, how in sorted(changes.items())]
            await self.conversation.notify("workspace/didChangeWatchedFiles", {"changes": told})
        return bool(changes)

    async def open(self, files: Files, path: str) -> DocumentText:
        """The file as it is now, with the server knowing it so; and the others it has open, too."""
        for other in [one for one in self.opened if one != path]:
            try:
                await self._update_document(other, *await to_thread.run_sync(read_document, files, other))
            except Refusal:
                await self._close_document(other)
        text, digest = await to_thread.run_sync(read_document, files, path)
        await self._update_document(path, text, digest)
        self.opened[path] = self.opened.pop(path)
        if len(self.opened) > MOST_OPEN:
            await self._close_document(next(iter(self.opened)))
        return DocumentText(text)

    async def _update_document(self, path: str, text: str, digest: str) -> None:
        known = self.opened.get(path)
        if known is not None and known.digest == digest:
            return
        fresh = OpenDocument(digest, known.version + 1 if known else 1, self.conversation.said)
        document: dict[str, Any] = {"uri": uri_from_path(self.root, path), "version": fresh.version}
        if known is None:
            document |= {"languageId": get_language_id(self.language, path), "text": text}
            await self.conversation.notify("textDocument/didOpen", {"textDocument": document})
        else:
            changes = [{"text": text}]
            await self.conversation.notify(
                "textDocument/didChange", {"textDocument": document, "contentChanges": changes}
            )
        self.opened[path] = fresh

    async def _close_document(self, path: str) -> None:
        del self.opened[path]
        await self.conversation.notify(
            "textDocument/didClose", {"textDocument": {"uri": uri_from_path(self.root, path)}}
        )


def read_document(files: Files, path: str) -> tuple[str, str]:
    """The text of a whole file with its digest; or the refusal that says why there is none."""
    snapshot = files.read(path, MOST_BYTES)
    if not snapshot.whole:
        raise Refusal(
            Problem(
                Code.TOO_LARGE,
                f"`{make_visible(path)}` has {snapshot.stamp.size:,} bytes; a language server is given files of up to "
                f"{MOST_BYTES:,}.",
                "Look into it with `grep`.",
            )
        )
    what = describe_non_text(snapshot.data)
    try:
        text = snapshot.data.decode("utf-8")
    except UnicodeDecodeError:
        what, text = what or "not UTF-8", ""
    if what:
        raise Refusal(Problem(Code.NOT_TEXT, f"`{make_visible(path)}` is {what}.", "Look into it with `grep`."))
    return text.removeprefix(BOM), snapshot.stamp.digest
