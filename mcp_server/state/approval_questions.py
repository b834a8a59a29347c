"""Which questions are on record, and which of them can no longer approve anything?

Each row is sealed with the key outside the workspace, because write access to the file must not suffice to approve a
call.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mcp_server.model.approvals import AnsweredBy, Approval, ApprovalAnswer, parse_approval
from mcp_server.model.sessions import Session
from mcp_server.model.text import escape_for_model
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.verify import is_process_running

POSTURE_CHANGED = "the posture was changed since it was asked"
RUN_COMPLETED = "the run it was asked in was completed"
STOPPED = "the run it was asked in was stopped"
MAX_OPEN, MAX_KEPT = 100, 500
"""Questions per principal: how many can be open, and how many to keep in all."""
LONG_CHARS, MAX_LONG = 20_000, 20
"""How many long ones: every call that needs approval reads them all."""


def find_approval(view: View, id: str) -> Approval | None:
    row = view.fetch_one("SELECT * FROM approvals WHERE id = :id", id=escape_for_model(id))
    approval = approval_from_row(view, row) if row else None
    return _void_after_posture_change(approval, view.get_epoch(approval.wanted.principal)) if approval else None


def load_approvals(view: View) -> Sequence[Approval]:
    """Load all questions, the most recent first."""
    rows = view.fetch_all("SELECT * FROM approvals ORDER BY asked DESC")
    found = [approval for row in rows if (approval := approval_from_row(view, row)) is not None]
    epochs = {principal: view.get_epoch(principal) for principal in {one.wanted.principal for one in found}}
    return [_void_after_posture_change(approval, epochs[approval.wanted.principal]) for approval in found]


def _void_after_posture_change(approval: Approval, epoch: int) -> Approval:
    """Void a question asked under another posture: it approves nothing, whatever the answer."""
    has_changed = epoch != approval.wanted.epoch
    return replace(approval, void=POSTURE_CHANGED) if has_changed and not approval.void else approval


def settle_run_questions(tx: Transaction, before: Session, run: str) -> None:
    """Void the questions of a run that is over in this place of its session. Those asked in another place, through that
    place's handle, move with it into the next run."""
    for approval in load_principal_approvals(tx, before.principal):
        if (approval.wanted.session, approval.wanted.run) != (before.id, before.run) or approval.void:
            continue
        is_over = approval.wanted.loose or approval.wanted.place == before.place
        if is_over:
            write_approval(tx, replace(approval, void=RUN_COMPLETED))
        else:
            write_approval(tx, replace(approval, wanted=replace(approval.wanted, run=run)))
        # So that a client that still shows the question takes it away.
        tx.changed = True


def settle_abandoned_questions(tx: Transaction, principal: str, connected: Collection[str]) -> None:
    """Void the questions that this completed run ends too: asked without a handle, by connections that are gone.

    They belong to the principal, and a client that opens a connection for each call completes over another one.
    `connected`: the sessions that still have a connection to this process.
    """
    for approval in load_principal_approvals(tx, principal):
        if approval.wanted.loose and not approval.void and not _is_connected(tx, approval, connected):
            write_approval(tx, replace(approval, void=RUN_COMPLETED))
            tx.changed = True


def _is_connected(tx: Transaction, approval: Approval, connected: Collection[str]) -> bool:
    if approval.process == tx.process:
        return approval.wanted.session in connected
    return bool(approval.wanted.session) and is_process_running(approval.process)


def void_approvals(tx: Transaction, principal: str, session: str | None) -> None:
    """Void all questions, so that nothing asked before this approves anything after it."""
    for approval in load_principal_approvals(tx, principal):
        if not approval.void and session in (None, approval.wanted.session):
            write_approval(tx, replace(approval, void=STOPPED))


def load_principal_approvals(view: View, principal: str) -> list[Approval]:
    rows = view.fetch_all("SELECT * FROM approvals WHERE principal = :principal", principal=escape_for_model(principal))
    return [approval for row in rows if (approval := approval_from_row(view, row)) is not None]


def approval_from_row(view: View, row: Mapping[str, Any]) -> Approval | None:
    """Parse an approval; None if the row was not sealed with the key."""
    try:
        if view.key is None or not view.key.has_sealed(_format_seal_text(row["body"]), row["mac"]):
            return None
        approval = parse_approval(json.loads(row["body"]))
    except (ValueError, TypeError, KeyError):
        return None
    return approval if approval.id == row["id"] else None


def _format_body(approval: Approval) -> str:
    # Not `format_canonical_json`, which truncates: the user must see exactly what was shown before.
    return json.dumps(approval.to_fields(), sort_keys=True, separators=(",", ":"))


def _format_seal_text(body: str) -> str:
    return json.dumps({"approval": body})


def make_room(tx: Transaction, approval: Approval, now: int) -> bool:
    """Make room for one more question; return False if too many are open. What the user can still answer, or has
    answered and no call has used, stays."""
    principal, is_long = approval.wanted.principal, len(_format_body(approval)) > LONG_CHARS
    rows = tx.fetch_all(
        "SELECT id, length(body) AS size FROM approvals WHERE principal = :principal ORDER BY asked DESC, id",
        principal=escape_for_model(principal),
    )
    long = {row["id"] for row in rows if row["size"] > LONG_CHARS}
    epoch, known = tx.get_epoch(principal), load_principal_approvals(tx, principal)
    current = [one for one in known if one.wanted.epoch == epoch and not one.is_lapsed(now) and not one.is_spent]
    waiting = {one.id for one in current if one.is_waiting(now)}
    if len(waiting) >= MAX_OPEN or (is_long and len(waiting & long) >= MAX_LONG):
        return False
    # A client's refusal counts only that one time.
    kept = {one.id for one in current if (one.answer, one.way) != (ApprovalAnswer.NO, AnsweredBy.CLIENT)}
    spare = [row["id"] for row in rows if row["id"] not in kept]
    surplus = {*spare[max(MAX_KEPT - len(kept) - 1, 0) :]}
    surplus.update([one for one in spare if one in long][max(MAX_LONG - len(kept & long) - is_long, 0) :])
    for id in surplus:
        tx.run("DELETE FROM approvals WHERE id = :id", id=id)
    return True


def write_approval(tx: Transaction, approval: Approval) -> None:
    body = _format_body(approval)
    tx.run(
        "INSERT INTO approvals (id, principal, asked, expires, body, mac)"
        " VALUES (:id, :principal, :asked, :expires, :body, :mac)"
        " ON CONFLICT (id) DO UPDATE SET body = excluded.body, mac = excluded.mac",
        id=escape_for_model(approval.id),
        principal=escape_for_model(approval.wanted.principal),
        asked=approval.asked,
        expires=approval.expires,
        body=body,
        mac=tx.seal.compute_mac(_format_seal_text(body)),
    )
