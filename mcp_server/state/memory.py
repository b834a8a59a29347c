"""What is remembered of a project? Entries by tier, per principal, none of them for ever.

They are stored among the records, under an owner that no tool writes to: a tool can read the memory but not write it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_server.model.documents import MOST_DOCUMENTS, Document, DocumentCause
from mcp_server.model.memory import MOST, MemoryEntry, Tier
from mcp_server.model.text import escape_surrogates
from mcp_server.state.documents import DocumentWrite, load_documents, put_document
from mcp_server.state.engine.rows import RowKind
from mcp_server.state.engine.transaction import Transaction, View

KIND = "memory"


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What to remember, whose it is, and where it comes from."""

    principal: str
    said: Sequence[tuple[Tier, str]]
    by: str
    """`run` or `person`."""
    actor: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Session and run, as the ledger names them."""


def format_memory_owner(principal: str) -> str:
    return f"memory:{principal}"


def load_memory(view: View, principal: str) -> Sequence[MemoryEntry]:
    """Oldest first."""
    found = load_documents(view, format_memory_owner(principal), KIND, None, MOST_DOCUMENTS, 0)
    return sorted((_entry_from_document(principal, one) for one in found), key=lambda one: (one.at, one.id))


def load_all_memories(view: View) -> Sequence[MemoryEntry]:
    """Everyone's, for the person whose machine this is."""
    rows = view.fetch_all("SELECT DISTINCT owner FROM records WHERE owner LIKE 'memory:%' ORDER BY owner")
    return [one for row in rows for one in load_memory(view, row["owner"].removeprefix("memory:"))]


def remember_entries(tx: Transaction, learned: NewMemory, new_id: Callable[[], str]) -> Sequence[MemoryEntry]:
    """Store these; an entry that repeats a known one refreshes it. The oldest make room."""
    owner = format_memory_owner(learned.principal)
    known = {
        (one.mark, str(one.body.get("text"))): one for one in load_documents(tx, owner, KIND, None, MOST_DOCUMENTS, 0)
    }
    written: list[MemoryEntry] = []
    for tier, text in learned.said:
        before = known.get((tier, escape_surrogates(text)))
        body = {"text": escape_surrogates(text), "by": learned.by, **learned.actor}
        draft = Document(KIND, before.id if before else new_id(), body, tier, before.version if before else 0)
        why = DocumentCause("known already" if before else "learned")
        actor = {"principal": learned.principal, **learned.actor}
        found = put_document(tx, DocumentWrite(owner, draft, why, actor))
        if isinstance(found, Document):
            known[tier, escape_surrogates(text)] = found
            written.append(_entry_from_document(learned.principal, found))
    _make_room(tx, learned.principal)
    return written


def _make_room(tx: Transaction, principal: str) -> None:
    every = load_memory(tx, principal)
    for tier, most in MOST.items():
        held = [one for one in every if one.tier is tier]
        for one in held[: max(len(held) - most, 0)]:
            forget_entry(tx, one, "made room")


def forget_entry(tx: Transaction, one: MemoryEntry, event: str = "forgotten") -> None:
    tx.run(
        "DELETE FROM records WHERE owner = :owner AND kind = :kind AND id = :id",
        owner=escape_surrogates(format_memory_owner(one.principal)),
        kind=KIND,
        id=one.id,
    )
    tx.append(
        RowKind.RECORD,
        {"principal": one.principal, "record": KIND, "id": one.id, "event": event, "from": one.tier, "to": None},
    )


def _entry_from_document(principal: str, one: Document) -> MemoryEntry:
    body = one.body
    return MemoryEntry(
        one.id,
        one.changed,
        Tier(one.mark),
        str(body.get("text", "")),
        principal,
        str(body.get("session", "")),
        str(body.get("run", "")),
        str(body.get("by", "run")),
    )
