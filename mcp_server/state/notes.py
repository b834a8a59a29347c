"""What is kept of a run beside the ledger? Notes, until they are folded into a summary or too old."""

import hashlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.rows import LET_GO, RowKind
from mcp_server.state.engine.transaction import Transaction, View

MAX_NOTE_CHARS = 2_000


class FoldedNotes(Struct, frozen=True):
    """A summary that replaces the notes up to a call."""

    run: str
    upto: int
    text: str


def write_notes(tx: Transaction, run: str, seq: int, notes: Iterable[tuple[str, str]]) -> None:
    """Each note is a kind and a text without secrets."""
    for kind, text in notes:
        tx.run(
            "INSERT INTO notes (run, seq, at, kind, text) VALUES (:run, :seq, :at, :kind, :text)",
            run=escape_for_model(run),
            seq=seq,
            at=tx.clock.now_ns(),
            kind=kind,
            text=escape_for_model(text)[:MAX_NOTE_CHARS],
        )


def drop_old_notes(tx: Transaction, before_ns: int) -> None:
    """Delete old notes and thoughts. A mark stays for each run, so that no summary later claims that it never had a
    goal."""
    tx.run(
        "INSERT INTO notes (run, seq, at, kind, text)"
        " SELECT run, 0, max(at), :mark, '' FROM ("
        "SELECT run, at FROM notes WHERE at < :then AND kind <> :mark"
        " UNION ALL SELECT run, at FROM thoughts WHERE at < :then) AS gone"
        " WHERE run NOT IN (SELECT run FROM notes WHERE kind = :mark) GROUP BY run",
        then=before_ns,
        mark=LET_GO,
    )
    tx.run("DELETE FROM notes WHERE at < :then AND kind <> :mark", then=before_ns, mark=LET_GO)
    tx.run("DELETE FROM thoughts WHERE at < :then", then=before_ns)


def load_notes(view: View, run: str) -> list[tuple[str, str]]:
    """Load a run's notes in order, each as kind and text."""
    rows = view.fetch_all("SELECT kind, text FROM notes WHERE run = :run ORDER BY number", run=escape_for_model(run))
    return [(row["kind"], row["text"]) for row in rows if row["kind"] != LET_GO]


def fold_notes(tx: Transaction, run: str, upto: int, trigger: Mapping[str, int]) -> FoldedNotes | None:
    """Summarise a run up to a call and record that in the ledger, from which the text can be rebuilt."""
    from mcp_server.state.summaries import build_run_summary  # only long runs need it

    summary = build_run_summary(tx, run, upto)
    if summary is None:
        return None
    data = summary.text.encode()
    run_fields = {"principal": summary.principal, "session": summary.facts.get("session"), "run": run, "upto": upto}
    tx.append(
        RowKind.SUMMARY, {**run_fields, **trigger, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    )
    return FoldedNotes(run, upto, summary.text)
