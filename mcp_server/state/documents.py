"""What do packs remember? Documents by owner and kind; a write based on an old version is refused."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.model.documents import MOST_DOCUMENTS, Document, DocumentCause, Overtaken, Tally
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.rows import RowKind
from mcp_server.state.engine.transaction import Transaction, View


class DocumentWrite(Struct, frozen=True):
    """One change to one document, with its author and cause."""

    owner: str
    document: Document
    cause: DocumentCause
    actor: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Session, run, principal and tool, as the ledger names them."""


class TooManyDocuments(Struct, frozen=True):
    """Nothing was written, because the owner has reached the limit for this kind."""


def format_session_owner(id: str) -> str:
    return f"session:{id}"


def format_principal_owner(name: str) -> str:
    return f"principal:{name}"


def find_document(view: View, owner: str, kind: str, id: str) -> Document | None:
    row = view.fetch_one(
        "SELECT * FROM records WHERE owner = :owner AND kind = :kind AND id = :id",
        owner=escape_for_model(owner),
        kind=kind,
        id=escape_for_model(id),
    )
    return _document_from_row(row) if row else None


def load_documents(view: View, owner: str, kind: str, mark: str | None, limit: int, offset: int) -> Sequence[Document]:
    rows = view.fetch_all(
        "SELECT * FROM records WHERE owner = :owner AND kind = :kind AND (:mark IS NULL OR mark = :mark)"
        " ORDER BY number LIMIT :limit OFFSET :offset",
        owner=escape_for_model(owner),
        kind=kind,
        mark=mark,
        limit=limit,
        offset=offset,
    )
    return [_document_from_row(row) for row in rows]


def tally_documents(view: View, owner: str, kind: str) -> dict[str, Tally]:
    rows = view.fetch_all(
        "SELECT mark, count(*) AS documents, sum(version) AS changes FROM records"
        " WHERE owner = :owner AND kind = :kind GROUP BY mark ORDER BY mark",
        owner=escape_for_model(owner),
        kind=kind,
    )
    return {row["mark"]: Tally(row["documents"], row["changes"]) for row in rows}


def load_all_documents(view: View, kind: str) -> Sequence[tuple[str, Document]]:
    """Load everybody's documents with their owners, for the terminal."""
    rows = view.fetch_all("SELECT * FROM records WHERE kind = :kind ORDER BY number", kind=kind)
    return [(row["owner"], _document_from_row(row)) for row in rows]


def put_document(tx: Transaction, write: DocumentWrite) -> Document | Overtaken | TooManyDocuments:
    owner, new = escape_for_model(write.owner), write.document
    current = find_document(tx, owner, new.kind, new.id)
    if (current.version if current else 0) != new.version:
        return Overtaken(current)
    text = format_body(new.body)
    if current is None and _count_documents(tx, owner, new.kind) >= MOST_DOCUMENTS:
        return TooManyDocuments()
    now = tx.clock.now_ns()
    created_ns = current.made if current else now
    stored = replace(new, version=new.version + 1, made=created_ns, changed=now)
    tx.run(
        "INSERT INTO records (owner, kind, id, mark, version, body, made, changed)"
        " VALUES (:owner, :kind, :id, :mark, :version, :body, :made, :changed)"
        " ON CONFLICT (owner, kind, id) DO UPDATE SET"
        " mark = excluded.mark, version = excluded.version, body = excluded.body, changed = excluded.changed",
        owner=owner,
        kind=new.kind,
        id=escape_for_model(new.id),
        mark=new.mark,
        version=stored.version,
        body=text,
        made=created_ns,
        changed=now,
    )
    tx.append(RowKind.RECORD, _build_row_fields(write, current, stored, text))
    return stored


def _count_documents(tx: Transaction, owner: str, kind: str) -> int:
    row = tx.fetch_one(
        "SELECT count(*) AS held FROM records WHERE owner = :owner AND kind = :kind", owner=owner, kind=kind
    )
    return row["held"] if row else 0


def _build_row_fields(write: DocumentWrite, before: Document | None, after: Document, text: str) -> dict[str, Any]:
    data = text.encode()
    return {
        **write.actor,
        "record": after.kind,
        "id": after.id,
        "version": after.version,
        "event": write.cause.event,
        "from": before.mark if before else None,
        "to": after.mark,
        **({"facts": write.cause.facts} if write.cause.facts else {}),
        "body_sha256": hashlib.sha256(data).hexdigest(),
        "body_bytes": len(data),
    }


def format_body(body: Mapping[str, Any]) -> str:
    """Serialise for storage, escaped so that every engine accepts even a lone surrogate."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _document_from_row(row: Mapping[str, Any]) -> Document:
    return Document(
        row["kind"], row["id"], json.loads(row["body"]), row["mark"], row["version"], row["made"], row["changed"]
    )


def forget_records(tx: Transaction, before_ns: int) -> None:
    """Delete the old documents of deleted sessions. Those that belong to a principal stay."""
    tx.run(
        "DELETE FROM records WHERE owner LIKE 'session:%' AND changed < :then"
        " AND substr(owner, 9) NOT IN (SELECT id FROM sessions)",
        then=before_ns,
    )
