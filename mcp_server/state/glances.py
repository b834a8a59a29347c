"""What was each call about, for a person who looks? One line beside its row, for a while.

The ledger holds no arguments. These lines do, so they are kept for a limited time, never exported and never given to a
model; known secrets are masked before they get here. Nothing seals them.
"""

from collections.abc import Iterable

from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.transaction import Transaction, View

KEEP_NS = 14 * 24 * 3600 * 10**9
MAX_LINES = 50_000
INSERT_LINE = "INSERT INTO glances (seq, at, line) VALUES (?, ?, ?)"
"""One text without names, like the insertion of the row before: every call waits for it."""


def record_glance(tx: Transaction, seq: int, line: str) -> None:
    tx.link.cursor.execute(INSERT_LINE, (seq, tx.clock.now_ns(), line))


def has_surplus_glances(view: View, now: int) -> bool:
    """True if there are lines that are too old, or too many."""
    if view.fetch_one("SELECT 1 FROM glances WHERE at < :then LIMIT 1", then=now - KEEP_NS):
        return True
    return view.fetch_one("SELECT 1 FROM glances LIMIT 1 OFFSET :most", most=MAX_LINES) is not None


def prune_glances(tx: Transaction) -> None:
    tx.run("DELETE FROM glances WHERE at < :then", then=tx.clock.now_ns() - KEEP_NS)
    tx.run(
        "DELETE FROM glances WHERE seq <= (SELECT seq FROM glances ORDER BY seq DESC LIMIT 1 OFFSET :most)",
        most=MAX_LINES,
    )


def delete_glances(tx: Transaction) -> None:
    """Delete all of them, because the operator wants none kept."""
    tx.run("DELETE FROM glances")


def load_glances(view: View, seqs: Iterable[int], now: int) -> dict[int, str]:
    """Load the lines of these rows. One that is too old is left out, and so is text that menugate did not write."""
    from mcp_server.model.glances import is_glance  # its patterns: most commands show no call

    wanted = set(seqs)
    if not wanted:
        return {}
    rows = view.fetch_all(
        "SELECT seq, line FROM glances WHERE seq BETWEEN :first AND :last AND at >= :then ORDER BY seq",
        first=min(wanted),
        last=max(wanted),
        then=now - KEEP_NS,
    )
    known = ((row["seq"], row["line"]) for row in rows if row["seq"] in wanted)
    return {seq: line for seq, line in known if isinstance(line, str) and is_glance(line)}


def find_question_glance(view: View, run: str, question: str, asked: int, now: int) -> str:
    """Find the line of the call that a question is about; empty if none is kept. `run`: empty if the call came without
    a session, so that its row can only be found by when it was asked."""
    field = view.link.format_field_expression("question")
    where = "run = :run" if run else "at >= :asked"
    rows = view.fetch_all(
        f"SELECT seq FROM ledger WHERE {where} AND kind = 'question' AND {field} = :question"  # noqa: S608  # our own words
        " ORDER BY seq DESC LIMIT 1",
        question=escape_for_model(question),
        **({"run": escape_for_model(run)} if run else {"asked": asked}),
    )
    return next(iter(load_glances(view, [row["seq"] for row in rows], now).values()), "")
