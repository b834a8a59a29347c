"""Which servers must stop or pause their runs, and what did each of them do?

An order is one row that every server of the workspace finds with its next change; each answers with a row of its own.
These rows lie among the records but are nobody's documents: the results of a stop are deleted a day later.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mcp_server.model.text import escape_surrogates
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.verify import is_process_running

OWNER, ORDER, SERVER, ANSWER = "halts", "order", "server", "answer"
KEPT_NS = 24 * 3600 * 10**9


@dataclass(frozen=True, slots=True)
class StopOrder:
    """What should happen to running calls: end them, or only list them."""

    id: str
    principal: str
    """Empty for everyone; only the terminal may order that."""
    session: str | None
    """None for all of the principal's sessions."""
    ends: bool
    reason: str
    everybody: bool = False
    """True if the asker may see what others run, as the person at the terminal may."""

    def covers(self, principal: str, session: str) -> bool:
        return self.principal in ("", escape_surrogates(principal)) and self.session in (
            None,
            escape_surrogates(session),
        )


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """What one server did, in words: what it ended, what continues anyway, and what others run."""

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    of_others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OrderGiven:
    """An order that was given, and the servers that must answer."""

    order: StopOrder
    servers: tuple[str, ...] = ()


def enlist_server(tx: Transaction) -> frozenset[str]:
    """From here on this process may run something, and answers orders; earlier orders do not concern it."""
    _write_record(tx, OWNER, SERVER, tx.process, {})
    return frozenset(one.id for one in load_orders(tx))


def discharge_server(tx: Transaction) -> None:
    _drop_record(tx, OWNER, SERVER, tx.process)


def give_order(tx: Transaction, order: StopOrder) -> OrderGiven:
    """Written in the same transaction as the hold, so that a server that sees one finds the other."""
    _forget_old_orders(tx)
    settled = replace(order, principal=escape_surrogates(order.principal))
    _write_record(tx, OWNER, ORDER, order.id, asdict(settled))
    tx.changed = True
    return OrderGiven(settled, tuple(row["id"] for row in _load_rows(tx, OWNER, SERVER)))


def load_orders(view: View) -> Sequence[StopOrder]:
    return [StopOrder(**json.loads(row["body"])) for row in _load_rows(view, OWNER, ORDER)]


def write_answer(tx: Transaction, id: str, said: StopAnswer) -> None:
    _write_record(tx, f"{OWNER}:{id}", ANSWER, tx.process, asdict(said))


def load_answers(view: View, id: str) -> dict[str, StopAnswer]:
    """By the process that answered."""
    found = ((row["id"], json.loads(row["body"])) for row in _load_rows(view, f"{OWNER}:{id}", ANSWER))
    return {process: StopAnswer(**{name: tuple(words) for name, words in body.items()}) for process, body in found}


def forget_answers(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM records WHERE owner = :owner", owner=f"{OWNER}:{id}")


def _forget_old_orders(tx: Transaction) -> None:
    """Delete orders too old to wait for, and servers that ended without saying so."""
    tx.run(
        "DELETE FROM records WHERE (owner = :owner AND kind = :kind OR owner LIKE :answers) AND changed < :then",
        owner=OWNER,
        kind=ORDER,
        answers=f"{OWNER}:%",
        then=tx.clock.now_ns() - KEPT_NS,
    )
    for row in _load_rows(tx, OWNER, SERVER):
        if not is_process_running(row["id"]):
            _drop_record(tx, OWNER, SERVER, row["id"])


def _load_rows(view: View, owner: str, kind: str) -> list[dict[str, Any]]:
    sql = "SELECT id, body FROM records WHERE owner = :owner AND kind = :kind ORDER BY number"
    return view.fetch_all(sql, owner=escape_surrogates(owner), kind=kind)


def _write_record(tx: Transaction, owner: str, kind: str, id: str, body: Mapping[str, Any]) -> None:
    tx.run(
        "INSERT INTO records (owner, kind, id, mark, version, body, made, changed)"
        " VALUES (:owner, :kind, :id, '', 1, :body, :now, :now)"
        " ON CONFLICT (owner, kind, id) DO UPDATE SET body = excluded.body, changed = excluded.changed",
        owner=escape_surrogates(owner),
        kind=kind,
        id=escape_surrogates(id),
        body=json.dumps(dict(body)),
        now=tx.clock.now_ns(),
    )


def _drop_record(tx: Transaction, owner: str, kind: str, id: str) -> None:
    where = {"owner": owner, "kind": kind, "id": escape_surrogates(id)}
    tx.run("DELETE FROM records WHERE owner = :owner AND kind = :kind AND id = :id", **where)
