"""Which questions are on record, and which of them can no longer open anything?

Each row is sealed with the key outside the workspace: whoever merely can write the file cannot say yes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_server.model.approvals import Approval, read
from mcp_server.model.sessions import Session
from mcp_server.state.engine.transaction import EPOCH, Transaction, View, plain, whole

MOVED = "the posture was changed since it was asked"
COMPLETED = "the run it was asked in was completed"
STOPPED = "the run it was asked in was stopped"


def approval(view: View, id: str) -> Approval | None:
    row = view.one("SELECT * FROM approvals WHERE id = :id", id=plain(id))
    found = genuine(view, row) if row else None
    return _now(view, found) if found else None


def approvals(view: View) -> Sequence[Approval]:
    """The one asked last comes first."""
    rows = view.all("SELECT * FROM approvals ORDER BY asked DESC")
    return [_now(view, found) for row in rows if (found := genuine(view, row)) is not None]


def _now(view: View, one: Approval) -> Approval:
    """Under another posture than it was asked under it opens nothing, whatever comes."""
    row = view.link.cursor.execute(EPOCH, (plain(one.wanted.principal),)).fetchone()
    moved = row is not None and whole(row[0]) != one.wanted.epoch
    return replace(one, void=MOVED) if moved and not one.void else one


def end_run(tx: Transaction, before: Session, run: str) -> None:
    """The run is over, in this place of its session. What was asked in it opens nothing any more; what was asked
    through the handle of another place goes on into the next run with that place."""
    for one in _asked(tx, before.principal):
        if (one.wanted.session, one.wanted.run) != (before.id, before.run) or one.void:
            continue
        ends = one.wanted.loose or one.wanted.place == before.place
        put(tx, replace(one, void=COMPLETED) if ends else replace(one, wanted=replace(one.wanted, run=run)))
        # Who waits for its answer on a client's screen waits in vain.
        tx.changed = True


def stop_all(tx: Transaction, principal: str, session: str | None) -> None:
    """Nothing that was asked before opens anything after it."""
    for one in _asked(tx, principal):
        if not one.void and session in (None, one.wanted.session):
            put(tx, replace(one, void=STOPPED))


def _asked(view: View, principal: str) -> list[Approval]:
    rows = view.all("SELECT * FROM approvals WHERE principal = :principal", principal=plain(principal))
    return [found for row in rows if (found := genuine(view, row)) is not None]


def genuine(view: View, row: Mapping[str, Any]) -> Approval | None:
    """A row that nobody with the key wrote is no approval."""
    try:
        if view.key is None or not view.key.sealed(_sealing(row["body"]), row["mac"]):
            return None
        found = read(json.loads(row["body"]))
    except (ValueError, TypeError, KeyError):
        return None
    return found if found.id == row["id"] else None


def _sealing(body: str) -> str:
    return json.dumps({"approval": body})


def put(tx: Transaction, one: Approval) -> None:
    # Not `canonical`, which clips: what the person was shown is shown again.
    body = json.dumps(one.as_fields(), sort_keys=True, separators=(",", ":"))
    tx.run(
        "INSERT INTO approvals (id, principal, asked, expires, body, mac)"
        " VALUES (:id, :principal, :asked, :expires, :body, :mac)"
        " ON CONFLICT (id) DO UPDATE SET body = excluded.body, mac = excluded.mac",
        id=plain(one.id),
        principal=plain(one.wanted.principal),
        asked=one.asked,
        expires=one.expires,
        body=body,
        mac=tx.seal.mac(_sealing(body)),
    )
