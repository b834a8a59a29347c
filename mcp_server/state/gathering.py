"""Which rows and notes belong to a run? Found by the ledger's index of runs, in whatever process asks."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_server.state.engine.rows import Row
from mcp_server.state.engine.transaction import View, plain
from mcp_server.state.summaries import Note, Summary, sides, summarised
from mcp_server.state.verify import read_body

HOW_MANY_RUNS = 100
AMONG_ROWS = 200_000
OUTCOMES = {"plan_delta": "decision", "next_action": "plan", "known_risks": "issue"}
MOST_ROWS = 20_000
"""Of a run that is longer the newest rows are read."""


def of_run(view: View, run: str, upto: int | None = None) -> Summary | None:
    """The summary of a run; None where there is no row of it."""
    found = view.all(
        "SELECT seq, body, hash FROM ledger WHERE run = :run ORDER BY seq DESC LIMIT :most",
        run=plain(run),
        most=MOST_ROWS,
    )
    if not found:
        return None
    rows = [_row(one) for one in reversed(found)]
    meanwhile = view.all(
        "SELECT seq, body, hash FROM ledger WHERE seq BETWEEN :first AND :last AND kind = 'transition'",
        first=rows[0].seq,
        last=rows[-1].seq,
    )
    whose = {row.fields.get("principal") for row in rows}
    choices = [row for row in map(_row, meanwhile) if _is_choice(row) and row.fields.get("principal") in whose]
    notes = view.all("SELECT seq, kind, text FROM notes WHERE run = :run ORDER BY number", run=plain(run))
    together = sorted([*rows, *choices], key=lambda row: row.seq)
    said = [Note(one["seq"], one["kind"], one["text"]) for one in notes]
    return summarised(run, together, sorted([*said, *_thoughts(view, run, rows)], key=lambda note: note.seq), upto)


def _thoughts(view: View, run: str, rows: Sequence[Row]) -> Iterator[Note]:
    """What a thought came to, which is all that was kept of it, as of the call that was going on then."""
    for one in view.all("SELECT at, body FROM thoughts WHERE run = :run ORDER BY number", run=plain(run)):
        seq = max((row.seq for row in rows if row.at <= one["at"]), default=rows[0].seq)
        outcome = read_body(one["body"])
        for name, kind in OUTCOMES.items():
            if outcome.get(name):
                yield Note(seq, kind, str(outcome[name]))


def known_runs(view: View, principal: str | None = None) -> list[str]:
    """The runs used last, the newest first; of one principal, or of everybody."""
    rows = view.all(
        "SELECT run, max(seq) AS last FROM ledger"
        " WHERE run IS NOT NULL AND seq > (SELECT max(seq) FROM ledger) - :among"
        " GROUP BY run ORDER BY last DESC LIMIT :most",
        among=AMONG_ROWS,
        most=HOW_MANY_RUNS * (1 if principal is None else 10),
    )
    found = [str(row["run"]) for row in rows]
    if principal is not None:
        found = [run for run in found if owner(view, run) == principal]
    return found[:HOW_MANY_RUNS]


def owner(view: View, run: str) -> str | None:
    """Whose run it is, by its first row that says so."""
    row = view.one("SELECT seq, body, hash FROM ledger WHERE run = :run ORDER BY seq LIMIT 1", run=plain(run))
    return None if row is None else str(_row(row).fields.get("principal") or "")


def _row(one: dict[str, Any]) -> Row:
    return Row(one["seq"], one["hash"], one["body"], read_body(one["body"]))


def _is_choice(row: Row) -> bool:
    return "profile" in sides(row)[1]
