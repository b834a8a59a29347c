"""Does the server know the files as they are now? We keep its open documents current, and tell it what changed."""

from dataclasses import dataclass, field
from typing import Any

from anyio import to_thread
from msgspec import Struct

from mcp_server.model.files import Files, Search
from mcp_server.model.results import Code, Refusal
from mcp_server.model.text import escape_name
from tools.files.lines import BOM, MOST_BYTES, describe_non_text
from tools.lsp.connection import LspConnection
from tools.lsp.locations import uri_from_path
from tools.lsp.servers import Language, get_language_id
from tools.lsp.text import DocumentText

MAX_OPEN_DOCUMENTS = 8
MAX_SURVEYED_FILES = 20_000
SURVEY_SECONDS = 5.0
CREATED, CHANGED, DELETED = 1, 2, 3


@dataclass
class OpenDocument:
    digest: str
    version: int
    sent_at: int
    """The connection's `notification_count` when we sent this version. Later diagnostics may be about it."""


class FileSurvey(Struct, frozen=True):
    """The files of a language at one moment."""

    paths: frozenset[str] = frozenset()
    newest_ns: int = 0
    complete: bool = False


def survey_files(files: Files, language: Language, since: int = 0) -> tuple[FileSurvey, list[str]]:
    """List the files, and those changed after `since` (in nanoseconds), unless it is 0."""
    listing = files.glob(Search(language.glob, limit=MAX_SURVEYED_FILES, timeout=SURVEY_SECONDS))
    newest, changed = since, list[str]()
    for path in listing.lines:
        try:
            time = files.get_info(path).mtime_ns
        except Refusal:
            continue
        newest = max(newest, time)
        # The newest come first, so we can stop at the first file that has not changed.
        if not since or time <= since:
            break
        changed.append(path)
    complete = listing.complete and listing.total <= MAX_SURVEYED_FILES
    return FileSurvey(frozenset(listing.lines), newest, complete), changed


@dataclass
class OpenDocuments:
    root: str
    language: Language
    connection: LspConnection
    survey: FileSurvey
    by_path: dict[str, OpenDocument] = field(default_factory=dict[str, OpenDocument])
    """The one used last comes last."""

    async def announce_changes(self, files: Files) -> None:
        """Tell the server which files changed since the last call."""
        before = self.survey
        self.survey, changed = await to_thread.run_sync(survey_files, files, self.language, before.newest_ns)
        changes = dict.fromkeys(changed, CHANGED)
        if before.complete and self.survey.complete:
            changes |= dict.fromkeys(self.survey.paths - before.paths, CREATED)
            changes |= dict.fromkeys(before.paths - self.survey.paths, DELETED)
        if changes:
            events = [{"uri": uri_from_path(self.root, path), "type": kind} for path, kind in sorted(changes.items())]
            await self.connection.notify("workspace/didChangeWatchedFiles", {"changes": events})

    async def open(self, files: Files, path: str) -> DocumentText:
        """Open the file as it is now, and bring the other open documents up to date."""
        for other_path in [open_path for open_path in self.by_path if open_path != path]:
            try:
                await self._update_document(other_path, *await to_thread.run_sync(_read_document, files, other_path))
            except Refusal:
                await self._close_document(other_path)
        text, digest = await to_thread.run_sync(_read_document, files, path)
        await self._update_document(path, text, digest)
        self.by_path[path] = self.by_path.pop(path)
        if len(self.by_path) > MAX_OPEN_DOCUMENTS:
            await self._close_document(next(iter(self.by_path)))
        return DocumentText(text)

    async def _update_document(self, path: str, text: str, digest: str) -> None:
        old = self.by_path.get(path)
        if old is not None and old.digest == digest:
            return
        new = OpenDocument(digest, old.version + 1 if old else 1, self.connection.notification_count)
        document: dict[str, Any] = {"uri": uri_from_path(self.root, path), "version": new.version}
        if old is None:
            document |= {"languageId": get_language_id(self.language, path), "text": text}
            await self.connection.notify("textDocument/didOpen", {"textDocument": document})
        else:
            changes = [{"text": text}]
            await self.connection.notify(
                "textDocument/didChange", {"textDocument": document, "contentChanges": changes}
            )
        self.by_path[path] = new

    async def _close_document(self, path: str) -> None:
        del self.by_path[path]
        await self.connection.notify("textDocument/didClose", {"textDocument": {"uri": uri_from_path(self.root, path)}})


def _read_document(files: Files, path: str) -> tuple[str, str]:
    """Read the text of a whole file and its digest; raise a `Refusal` if it is too large or not text."""
    snapshot = files.read(path, MOST_BYTES)
    if not snapshot.whole:
        raise Refusal.because(
            Code.TOO_LARGE,
            f"`{escape_name(path)}` has {snapshot.stamp.size:,} bytes; the limit for a language server is "
            f"{MOST_BYTES:,}.",
            "Search it with `grep`.",
        )
    problem = describe_non_text(snapshot.data)
    try:
        text = snapshot.data.decode("utf-8")
    except UnicodeDecodeError:
        problem, text = problem or "not UTF-8", ""
    if problem:
        raise Refusal.because(Code.NOT_TEXT, f"`{escape_name(path)}` is {problem}.", "Search it with `grep`.")
    return text.removeprefix(BOM), snapshot.stamp.digest
