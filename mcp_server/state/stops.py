"""Which servers must stop or pause their runs, and what did each of them do?

An order is a row that every server of the workspace sees after its next change; each answers with a row of its own.
The rows are stored among the documents but belong to no principal. They are deleted after a day.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.parts import asdict
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.verify import is_process_running

OWNER, ORDER, SERVER, ANSWER = "halts", "order", "server", "answer"
KEEP_NS = 24 * 3600 * 10**9


class StopOrder(Struct, frozen=True):
    """Tells servers to end running calls, or only to list them."""

    id: str
    principal: str
    """Empty for everybody; only the terminal may order that."""
    session: str | None
    """None for all of the principal's sessions."""
    ends: bool
    reason: str
    everybody: bool = False
    """True if the sender may see what others run, as the user at the terminal may."""

    def covers(self, principal: str, session: str) -> bool:
        return self.principal in ("", escape_for_model(principal)) and self.session in (
            None,
            escape_for_model(session),
        )


class StopAnswer(Struct, frozen=True):
    """What one server did, as text: what it ended, what still runs, and what others run."""

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    of_others: tuple[str, ...] = ()


class IssuedOrder(Struct, frozen=True):
    """An order, and the servers that must answer it."""

    order: StopOrder
    servers: tuple[str, ...] = ()


def enlist_server(tx: Transaction) -> frozenset[str]:
    """Register this process, which answers orders from here on; return the earlier ones, which do not concern it."""
    _write_record(tx, OWNER, SERVER, tx.process, {})
    return frozenset(order.id for order in load_orders(tx))


def discharge_server(tx: Transaction) -> None:
    _drop_record(tx, OWNER, SERVER, tx.process)


def give_order(tx: Transaction, order: StopOrder) -> IssuedOrder:
    """Write the order, in the same transaction as the hold, so that a server sees both or neither."""
    _forget_old_orders(tx)
    stored = replace(order, principal=escape_for_model(order.principal))
    _write_record(tx, OWNER, ORDER, order.id, asdict(stored))
    tx.changed = True
    return IssuedOrder(stored, tuple(row["id"] for row in _load_rows(tx, OWNER, SERVER)))


def load_orders(view: View) -> Sequence[StopOrder]:
    return [StopOrder(**json.loads(row["body"])) for row in _load_rows(view, OWNER, ORDER)]


def write_answer(tx: Transaction, id: str, answer: StopAnswer) -> None:
    _write_record(tx, f"{OWNER}:{id}", ANSWER, tx.process, asdict(answer))


def load_answers(view: View, id: str) -> dict[str, StopAnswer]:
    """Load the answers to an order, by process."""
    records = ((row["id"], json.loads(row["body"])) for row in _load_rows(view, f"{OWNER}:{id}", ANSWER))
    return {process: StopAnswer(**{name: tuple(words) for name, words in body.items()}) for process, body in records}


def forget_answers(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM records WHERE owner = :owner", owner=f"{OWNER}:{id}")


def _forget_old_orders(tx: Transaction) -> None:
    """Delete old orders, and servers that ended without removing themselves."""
    tx.run(
        "DELETE FROM records WHERE (owner = :owner AND kind = :kind OR owner LIKE :answers) AND changed < :then",
        owner=OWNER,
        kind=ORDER,
        answers=f"{OWNER}:%",
        then=tx.clock.now_ns() - KEEP_NS,
    )
    for row in _load_rows(tx, OWNER, SERVER):
        if not is_process_running(row["id"]):
            _drop_record(tx, OWNER, SERVER, row["id"])


def _load_rows(view: View, owner: str, kind: str) -> list[dict[str, Any]]:
    sql = "SELECT id, body FROM records WHERE owner = :owner AND kind = :kind ORDER BY number"
    return view.fetch_all(sql, owner=escape_for_model(owner), kind=kind)


def _write_record(tx: Transaction, owner: str, kind: str, id: str, body: Mapping[str, Any]) -> None:
    tx.run(
        "INSERT INTO records (owner, kind, id, mark, version, body, made, changed)"
        " VALUES (:owner, :kind, :id, '', 1, :body, :now, :now)"
        " ON CONFLICT (owner, kind, id) DO UPDATE SET body = excluded.body, changed = excluded.changed",
        owner=escape_for_model(owner),
        kind=kind,
        id=escape_for_model(id),
        body=json.dumps(dict(body)),
        now=tx.clock.now_ns(),
    )


def _drop_record(tx: Transaction, owner: str, kind: str, id: str) -> None:
    where = {"owner": owner, "kind": kind, "id": escape_for_model(id)}
    tx.run("DELETE FROM records WHERE owner = :owner AND kind = :kind AND id = :id", **where)
