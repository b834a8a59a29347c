"""What was each call about, for a person who looks? One line beside its row, for a while.

The ledger holds no arguments. These lines do, so they are kept for a limited time, never exported and never given to a
model; known secrets are masked before they get here.
"""

from collections.abc import Iterable

from mcp_server.state.engine.transaction import Transaction, View

MAX_CHARS = 200
KEEP_NS = 14 * 24 * 3600 * 10**9
MAX_LINES = 50_000
PRUNE_EVERY = 500
"""So many rows of the ledger lie between two looks at what is too old or too many."""


def record_glance(tx: Transaction, seq: int, line: str) -> None:
    tx.run("INSERT INTO glances (seq, at, line) VALUES (:seq, :at, :line)", seq=seq, at=tx.clock.now_ns(), line=line)
    if seq % PRUNE_EVERY == 0:
        prune_glances(tx)


def prune_glances(tx: Transaction) -> None:
    tx.run("DELETE FROM glances WHERE at < :then", then=tx.clock.now_ns() - KEEP_NS)
    tx.run(
        "DELETE FROM glances WHERE seq <= (SELECT seq FROM glances ORDER BY seq DESC LIMIT 1 OFFSET :most)",
        most=MAX_LINES,
    )


def load_glances(view: View, seqs: Iterable[int], now: int) -> dict[int, str]:
    """Load the lines of these rows; a row without one, or with one that is too old, is left out."""
    wanted = sorted(set(seqs))
    if not wanted:
        return {}
    rows = view.fetch_all(
        "SELECT seq, line FROM glances WHERE seq BETWEEN :first AND :last AND at >= :then",
        first=wanted[0],
        last=wanted[-1],
        then=now - KEEP_NS,
    )
    known = {row["seq"]: row["line"] for row in rows}
    return {seq: known[seq] for seq in wanted if seq in known}
