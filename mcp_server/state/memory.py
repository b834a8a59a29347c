"""What is remembered of a project? Entries by tier, per principal, none of them for ever.

They are stored among the documents, under an owner that no tool can write to, so tools can only read them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mcp_server.model.documents import MOST_DOCUMENTS, Document, DocumentCause
from mcp_server.model.memory import MOST, MemoryEntry, Tier
from mcp_server.model.text import escape_for_model
from mcp_server.state.documents import DocumentWrite, load_documents, put_document
from mcp_server.state.engine.rows import RowKind
from mcp_server.state.engine.transaction import Transaction, View

KIND = "memory"


class NewMemory(Struct, frozen=True):
    """Entries to remember, whose they are, and where they come from."""

    principal: str
    entries: Sequence[tuple[Tier, str]]
    source: str
    """`run` or `person`."""
    actor: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Session and run, as the ledger names them."""


def format_memory_owner(principal: str) -> str:
    return f"memory:{principal}"


def load_memory(view: View, principal: str) -> Sequence[MemoryEntry]:
    """Load a principal's entries, oldest first."""
    documents = load_documents(view, format_memory_owner(principal), KIND, None, MOST_DOCUMENTS, 0)
    entries = [_entry_from_document(principal, document) for document in documents]
    return sorted(entries, key=lambda entry: (entry.at, entry.id))


def load_all_memories(view: View) -> Sequence[MemoryEntry]:
    """Load everybody's entries, for the terminal."""
    rows = view.fetch_all("SELECT DISTINCT owner FROM records WHERE owner LIKE 'memory:%' ORDER BY owner")
    return [entry for row in rows for entry in load_memory(view, row["owner"].removeprefix("memory:"))]


def remember_entries(tx: Transaction, memory: NewMemory, new_id: Callable[[], str]) -> Sequence[MemoryEntry]:
    """Store these entries. One that repeats a known entry refreshes it; the oldest ones make room."""
    owner = format_memory_owner(memory.principal)
    documents_by_text = {
        (document.mark, str(document.body.get("text"))): document
        for document in load_documents(tx, owner, KIND, None, MOST_DOCUMENTS, 0)
    }
    stored_entries: list[MemoryEntry] = []
    for tier, text in memory.entries:
        known = documents_by_text.get((tier, escape_for_model(text)))
        body = {"text": escape_for_model(text), "by": memory.source, **memory.actor}
        draft = Document(KIND, known.id if known else new_id(), body, tier, known.version if known else 0)
        cause = DocumentCause("known already" if known else "learned")
        actor = {"principal": memory.principal, **memory.actor}
        stored = put_document(tx, DocumentWrite(owner, draft, cause, actor))
        if isinstance(stored, Document):
            documents_by_text[tier, escape_for_model(text)] = stored
            stored_entries.append(_entry_from_document(memory.principal, stored))
    _make_room(tx, memory.principal)
    return stored_entries


def _make_room(tx: Transaction, principal: str) -> None:
    entries = load_memory(tx, principal)
    for tier, limit in MOST.items():
        tier_entries = [entry for entry in entries if entry.tier is tier]
        for entry in tier_entries[: max(len(tier_entries) - limit, 0)]:
            forget_entry(tx, entry, "made room")


def forget_entry(tx: Transaction, entry: MemoryEntry, event: str = "forgotten") -> None:
    tx.run(
        "DELETE FROM records WHERE owner = :owner AND kind = :kind AND id = :id",
        owner=escape_for_model(format_memory_owner(entry.principal)),
        kind=KIND,
        id=entry.id,
    )
    tx.append(
        RowKind.RECORD,
        {"principal": entry.principal, "record": KIND, "id": entry.id, "event": event, "from": entry.tier, "to": None},
    )


def _entry_from_document(principal: str, document: Document) -> MemoryEntry:
    body = document.body
    return MemoryEntry(
        document.id,
        document.changed,
        Tier(document.mark),
        str(body.get("text", "")),
        principal,
        str(body.get("session", "")),
        str(body.get("run", "")),
        str(body.get("by", "run")),
    )
