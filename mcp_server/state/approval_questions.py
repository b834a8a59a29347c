"""Which questions are on record, and which of them can no longer approve anything?

Each row is sealed with the key outside the workspace: write access to the file is not enough to approve a call.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_server.model.approvals import Approval, parse_approval
from mcp_server.model.sessions import Session
from mcp_server.model.text import escape_surrogates
from mcp_server.state.engine.transaction import EPOCH, Transaction, View, to_whole_number

MOVED = "the posture was changed since it was asked"
COMPLETED = "the run it was asked in was completed"
STOPPED = "the run it was asked in was stopped"


def find_approval(view: View, id: str) -> Approval | None:
    row = view.fetch_one("SELECT * FROM approvals WHERE id = :id", id=escape_surrogates(id))
    found = approval_from_row(view, row) if row else None
    return _void_after_posture_change(view, found) if found else None


def load_approvals(view: View) -> Sequence[Approval]:
    """The most recent question comes first."""
    rows = view.fetch_all("SELECT * FROM approvals ORDER BY asked DESC")
    return [
        _void_after_posture_change(view, found) for row in rows if (found := approval_from_row(view, row)) is not None
    ]


def _void_after_posture_change(view: View, one: Approval) -> Approval:
    """A question asked under another posture approves nothing, whatever the answer."""
    row = view.link.cursor.execute(EPOCH, (escape_surrogates(one.wanted.principal),)).fetchone()
    moved = row is not None and to_whole_number(row[0]) != one.wanted.epoch
    return replace(one, void=MOVED) if moved and not one.void else one


def settle_run_questions(tx: Transaction, before: Session, run: str) -> None:
    """The run is over in this place of its session. Questions asked in it approve nothing any more; those asked through
    the handle of another place go with that place into the next run."""
    for one in _load_principal_approvals(tx, before.principal):
        if (one.wanted.session, one.wanted.run) != (before.id, before.run) or one.void:
            continue
        ends = one.wanted.loose or one.wanted.place == before.place
        write_approval(tx, replace(one, void=COMPLETED) if ends else replace(one, wanted=replace(one.wanted, run=run)))
        # A client that still shows the question waits in vain, so tell it.
        tx.changed = True


def void_approvals(tx: Transaction, principal: str, session: str | None) -> None:
    """Void all open questions: nothing asked before this approves anything after it."""
    for one in _load_principal_approvals(tx, principal):
        if not one.void and session in (None, one.wanted.session):
            write_approval(tx, replace(one, void=STOPPED))


def _load_principal_approvals(view: View, principal: str) -> list[Approval]:
    rows = view.fetch_all(
        "SELECT * FROM approvals WHERE principal = :principal", principal=escape_surrogates(principal)
    )
    return [found for row in rows if (found := approval_from_row(view, row)) is not None]


def approval_from_row(view: View, row: Mapping[str, Any]) -> Approval | None:
    """A row not sealed with the key is no approval."""
    try:
        if view.key is None or not view.key.has_sealed(_format_seal_text(row["body"]), row["mac"]):
            return None
        found = parse_approval(json.loads(row["body"]))
    except (ValueError, TypeError, KeyError):
        return None
    return found if found.id == row["id"] else None


def _format_seal_text(body: str) -> str:
    return json.dumps({"approval": body})


def write_approval(tx: Transaction, one: Approval) -> None:
    # Not `canonical`, which truncates: the person must see again exactly what was shown before.
    body = json.dumps(one.to_fields(), sort_keys=True, separators=(",", ":"))
    tx.run(
        "INSERT INTO approvals (id, principal, asked, expires, body, mac)"
        " VALUES (:id, :principal, :asked, :expires, :body, :mac)"
        " ON CONFLICT (id) DO UPDATE SET body = excluded.body, mac = excluded.mac",
        id=escape_surrogates(one.id),
        principal=escape_surrogates(one.wanted.principal),
        asked=one.asked,
        expires=one.expires,
        body=body,
        mac=tx.seal.compute_mac(_format_seal_text(body)),
    )
