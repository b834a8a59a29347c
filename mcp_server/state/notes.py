"""What is kept of a run beside the ledger, and when is it summarised?"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcp_server.model.text import escape_surrogates
from mcp_server.state.engine.rows import LET_GO, RowKind
from mcp_server.state.engine.transaction import Transaction, View

LONGEST_NOTE = 2_000


@dataclass(frozen=True, slots=True)
class FoldedNotes:
    """Notes were folded into a summary, and the ledger says which."""

    run: str
    upto: int
    text: str


def write_notes(tx: Transaction, run: str, seq: int, said: Iterable[tuple[str, str]]) -> None:
    """`said`: kind and text, already without secrets."""
    for kind, text in said:
        tx.run(
            "INSERT INTO notes (run, seq, at, kind, text) VALUES (:run, :seq, :at, :kind, :text)",
            run=escape_surrogates(run),
            seq=seq,
            at=tx.clock.now_ns(),
            kind=kind,
            text=escape_surrogates(text)[:LONGEST_NOTE],
        )


def drop_old_notes(tx: Transaction, before_ns: int) -> None:
    """Delete notes and thoughts of runs before then. That they existed stays known, so that no summary later claims
    that there never was a goal."""
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
    """Load what was kept of a run so far, in order: kind and text."""
    rows = view.fetch_all("SELECT kind, text FROM notes WHERE run = :run ORDER BY number", run=escape_surrogates(run))
    return [(row["kind"], row["text"]) for row in rows if row["kind"] != LET_GO]


def fold_notes(tx: Transaction, run: str, upto: int, why: Mapping[str, int]) -> FoldedNotes | None:
    """Summarise a run up to a call and record that in the ledger; the text can be rebuilt from there."""
    from mcp_server.state.summaries import build_run_summary  # only needed with much to remember

    summary = build_run_summary(tx, run, upto)
    if summary is None:
        return None
    data = summary.text.encode()
    about = {"principal": summary.principal, "session": summary.facts.get("session"), "run": run, "upto": upto}
    tx.append(RowKind.SUMMARY, {**about, **why, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    return FoldedNotes(run, upto, summary.text)
