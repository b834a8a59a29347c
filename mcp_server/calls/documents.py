"""Where does a tool pack keep its documents? Stores for the session, its place and the workspace, opened per call."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.model.documents import (
    LARGEST_DOCUMENT,
    MOST_DOCUMENTS,
    Document,
    DocumentCause,
    Documents,
    Overtaken,
    Tally,
)
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.sessions import Session
from mcp_server.state import documents
from mcp_server.state.store import Store

NOBODY_COMES_BACK = Problem(
    Code.UNKNOWN_HANDLE,
    "this call has no menu handle and its connection has no session, so nothing it stores could be found again.",
    "Call `menu_enter`, and pass the handle it returns as `menu` in `menu_call`, in this and all later calls.",
)


def new_id() -> str:
    return secrets.token_hex(4)


class DocumentStore(Struct, frozen=True):
    """One document store, for one call of one tool."""

    store: Store
    owner: str
    actor: Mapping[str, Any]
    lost: Problem | None = None
    """Why nothing can be stored here; None if it can."""
    new_id: Callable[[], str] = new_id

    async def get(self, kind: str, id: str) -> Document | None:
        return await self.store.read(partial(documents.find_document, owner=self.owner, kind=kind, id=id))

    async def put(self, document: Document, why: DocumentCause) -> Document | Overtaken:
        if self.lost is not None:
            raise Refusal(self.lost)
        size = len(documents.format_body(document.body))
        if size > LARGEST_DOCUMENT:
            raise Refusal(_build_too_large_problem(document.kind, size))
        writing = documents.DocumentWrite(self.owner, document, why, self.actor)
        result = await self.store.write(partial(documents.put_document, write=writing))
        if isinstance(result, documents.TooManyDocuments):
            raise Refusal(_build_full_problem(document.kind))
        return result

    async def list_documents(
        self, kind: str, mark: str | None = None, limit: int = MOST_DOCUMENTS, offset: int = 0
    ) -> Sequence[Document]:
        query = partial(documents.load_documents, owner=self.owner, kind=kind, mark=mark, limit=limit, offset=offset)
        return await self.store.read(query)

    async def count_by_mark(self, kind: str) -> Mapping[str, Tally]:
        return await self.store.read(partial(documents.tally_documents, owner=self.owner, kind=kind))


class DocumentStores(Struct, frozen=True):
    """The document stores of the session, of the place in it, and of the person's workspace."""

    session: Documents
    place: Documents
    workspace: Documents


def build_document_stores(store: Store, live: LiveSession, session: Session, tool: str) -> DocumentStores:
    actor = {"principal": session.principal, "session": session.id, "run": session.run, "tool": tool}
    lost = NOBODY_COMES_BACK if live.passing else None
    return DocumentStores(
        DocumentStore(store, documents.format_session_owner(session.id), actor, lost),
        DocumentStore(store, documents.format_session_owner(session.key), actor, lost),
        DocumentStore(store, documents.format_principal_owner(session.principal), actor),
    )


def _build_too_large_problem(kind: str, size: int) -> Problem:
    return Problem(
        Code.TOO_LARGE,
        f"this {kind} would take {size:,} bytes; the limit is {LARGEST_DOCUMENT:,}.",
        "Write the long part to a file in the workspace, and name the file here.",
    )


def _build_full_problem(kind: str) -> Problem:
    return Problem(
        Code.TOO_LARGE,
        f"there are already {MOST_DOCUMENTS:,} of kind `{kind}` here, which is the limit.",
        "Continue with the existing ones.",
    )
