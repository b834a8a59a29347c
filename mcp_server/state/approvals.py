"""What did the user answer, and was the approval used? An approval lets one call through and is used up with it.

What is on record, and what became void, is in `approval_questions`.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.approvals import AnsweredBy, Approval, ApprovalAnswer, ApprovalMoment, ApprovalScope, ApprovedCall
from mcp_server.model.tools import READING
from mcp_server.state.approval_questions import find_approval, load_principal_approvals, make_room, write_approval
from mcp_server.state.engine.rows import ApprovalLapsed, Begun, IntentRow, PostureMoved, QuestionRow, RowKind, RunPaused
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.ledger import record_decision
from mcp_server.state.runs import take_unit

KEEP_NS = 24 * 3600 * 10**9
"""How long you can still look at a question after it has expired."""

AT_A_TIME = 200
MOST_LOOKED_AT = 20_000
"""Rows. A question is open for an hour, and no hour has room for more calls that only read."""
BY_HAND = "cli"
"""The transport of a call that the person makes at a terminal."""


class QuestionTerms(Struct, frozen=True):
    """What a call must have to begin: an approval to use up, and room in the run for one more unit."""

    approval: str = ""
    call: ApprovedCall | None = None
    carried: bool = False
    unit: str | None = None
    """The session whose unit this is, empty for all of the principal's; None if units are not counted."""


class QuestionReply(Struct, frozen=True):
    id: str
    answer: ApprovalAnswer
    way: AnsweredBy
    scope: ApprovalScope = ApprovalScope.ONCE
    reason: str = ""


def record_question(tx: Transaction, approval: Approval, row: QuestionRow) -> Approval | None:
    """Record the question; None if too many are open. If one about the same call is still open, repeat that one
    instead."""
    now = tx.clock.now_ns()
    tx.run("DELETE FROM approvals WHERE expires < :then", then=now - KEEP_NS)
    if approval.wanted.moment != ApprovalMoment():
        void_outdated_questions(tx, approval.wanted, now)
    standing = find_standing_approval(tx, approval.wanted, now)
    if standing is None or standing.answer is not ApprovalAnswer.OPEN:
        standing = replace(approval, process=tx.process, host=row.origin.client)
        if not make_room(tx, standing, now):
            return None
        write_approval(tx, standing)
    record_decision(tx, replace(row, question=standing.id))
    return standing


def record_answer(tx: Transaction, reply: QuestionReply) -> Approval | None:
    """Return the approval after this answer; None if the question is unknown or can no longer be answered.

    The first answer wins, and this returns it unchanged if another comes. Only at a terminal can you refuse what was
    approved elsewhere, or change an answer that you gave there. A session-wide approval can be withdrawn even after
    use: later calls then ask again. A question too long for a form cannot be approved before the terminal has shown all
    of it.
    """
    now = tx.clock.now_ns()
    approval = find_approval(tx, reply.id)
    if approval is None or approval.is_lapsed(now) or approval.is_spent:
        return None
    if approval.is_unread and reply.answer is ApprovalAnswer.YES:
        return None
    if approval.used and (reply.way is not AnsweredBy.PERSON or reply.answer is not ApprovalAnswer.NO):
        return None
    if approval.answer is not ApprovalAnswer.OPEN and not _may_change_answer(approval, reply):
        return approval
    scope = reply.scope if approval.wanted.lasting else ApprovalScope.ONCE
    updated = replace(approval, answer=reply.answer, way=reply.way, scope=scope, reason=reply.reason)
    write_approval(tx, updated)
    # So that a client that shows the question hears of the answer.
    tx.changed = True
    where = "at a terminal" if reply.way is AnsweredBy.PERSON else "in the client"
    covers = " for the session" if reply.answer is ApprovalAnswer.YES and scope is ApprovalScope.SESSION else ""
    reason = f"{reply.answer}{covers}, {where}" + (f": {reply.reason}" if reply.reason else "")
    tx.append(RowKind.ANSWER, _build_row_fields(updated) | {"answer": reply.answer, "way": reply.way, "reason": reason})
    return updated


def _may_change_answer(approval: Approval, reply: QuestionReply) -> bool:
    is_own = approval.way is AnsweredBy.PERSON
    return reply.way is AnsweredBy.PERSON and (is_own or reply.answer is ApprovalAnswer.NO)


def mark_shown(tx: Transaction, id: str) -> None:
    """Note that the user has seen the whole question and may now approve it."""
    approval = find_approval(tx, id)
    if approval is not None and approval.is_unread:
        write_approval(tx, replace(approval, shown=True))


def leave_open(tx: Transaction, id: str, tries: int, why: str) -> Approval | None:
    """Leave the question open, because the client returned no valid answer. After too many such tries only the terminal
    can answer it. An answer that the user gave in the meantime counts."""
    approval = find_approval(tx, id)
    if approval is None or approval.is_lapsed(tx.clock.now_ns()) or approval.used:
        return None
    if approval.answer is not ApprovalAnswer.OPEN:
        return approval
    updated = replace(approval, tries=approval.tries + tries)
    write_approval(tx, updated)
    reason = f"left open: the client {why}"
    tx.append(
        RowKind.ANSWER,
        _build_row_fields(updated) | {"answer": ApprovalAnswer.OPEN, "way": AnsweredBy.CLIENT, "reason": reason},
    )
    return updated


def begin_call(tx: Transaction, intent: IntentRow, terms: QuestionTerms) -> Begun:
    """Record the call that is about to run and use up its approval, or do neither."""
    epoch = tx.get_epoch(intent.session.principal)
    if epoch != intent.posture.epoch:
        return PostureMoved(epoch)
    approval = find_approval(tx, terms.approval) if terms.approval else None
    if terms.call is not None:
        fault = _describe_approval_fault(approval, terms, tx.clock.now_ns())
        if fault:
            return ApprovalLapsed(fault)
    if terms.unit is not None and (hold := take_unit(tx, intent.session, terms.unit)):
        return RunPaused(hold)
    references = {"approval": terms.approval or None, "unit": terms.unit is not None or None}
    seq = record_decision(tx, intent, references)
    if approval is not None:
        write_approval(tx, replace(approval, used=approval.used + 1))
        tx.append(
            RowKind.REDEEMED,
            _build_row_fields(approval) | {"intent": seq, "way": approval.way, "reason": f"by call {seq}"},
        )
    return seq


def _describe_approval_fault(approval: Approval | None, terms: QuestionTerms, now: int) -> str:
    assert terms.call is not None, "only calls that need an approval are checked"
    if approval is None:
        return "it is not known here"
    if approval.is_spent:
        return "it was already used"
    if approval.is_lapsed(now):
        return approval.void or "it has expired"
    if approval.answer is not ApprovalAnswer.YES:
        return "the user has not approved it"
    return (
        ""
        if approval.covers(terms.call, terms.carried)
        else approval.find_outdating_change(terms.call, terms.carried)
        or "it was given for another call or posture, or what the call depends on has changed"
    )


def find_last_change(view: View) -> tuple[int, str] | None:
    """Return the number and the tool of the newest call that may have changed something without being approved for
    itself; None if it is too far back."""
    head = view.fetch_one("SELECT max(seq) AS seq FROM ledger")
    last = (head["seq"] if head else None) or 0
    for top in range(last, max(last - MOST_LOOKED_AT, 0), -AT_A_TIME):
        rows = view.fetch_all(
            "SELECT seq, body FROM ledger WHERE seq <= :top AND seq > :top - :most AND kind = :intent"
            " ORDER BY seq DESC",
            intent=str(RowKind.INTENT),
            top=top,
            most=AT_A_TIME,
        )
        for row in rows:
            call = json.loads(row["body"])
            if call.get("effect") not in READING and not _is_known_to_person(view, call):
                return row["seq"], str(call["tool"])
    return None


def _is_known_to_person(view: View, call: Mapping[str, Any]) -> bool:
    """True for what they run at a terminal, and for what they were asked about: questions may be open side by side."""
    approval = find_approval(view, call["approval"]) if call.get("approval") else None
    return call.get("transport") == BY_HAND or (approval is not None and approval.scope is ApprovalScope.ONCE)


def find_standing_approval(view: View, call: ApprovedCall, now: int) -> Approval | None:
    """Return the question about this very call that still counts: preferably an approval, else a refusal, else an open
    one."""
    valid = [approval for approval in _find_usable(view, call, now) if approval.covers(call)]
    order = (ApprovalAnswer.YES, ApprovalAnswer.NO, ApprovalAnswer.OPEN)
    return next((approval for answer in order for approval in valid if approval.answer is answer), None)


def find_outdating_change(view: View, call: ApprovedCall, now: int) -> str:
    """Say what has made an approval of this call void; empty if there is none."""
    approved = (one for one in _find_usable(view, call, now) if one.answer is ApprovalAnswer.YES)
    return next((why for one in approved if (why := one.find_outdating_change(call))), "")


def void_outdated_questions(tx: Transaction, call: ApprovedCall, now: int) -> None:
    """Void the questions about this call that could only approve it as things were before."""
    for approval in _find_usable(tx, call, now):
        if why := approval.find_outdating_change(call):
            write_approval(tx, replace(approval, void=f"{why} since it was asked"))
            # So that a client that still shows the question takes it away.
            tx.changed = True


def _find_usable(view: View, call: ApprovedCall, now: int) -> list[Approval]:
    known = load_principal_approvals(view, call.principal)
    return [one for one in known if not one.is_lapsed(now) and not one.is_spent]


def _build_row_fields(approval: Approval) -> dict[str, Any]:
    call = approval.wanted
    return {
        "question": approval.id,
        "principal": call.principal,
        "session": call.session,
        "run": call.run,
        "step": call.step,
        "stage": call.stage,
        "tool": call.tool,
        "arguments_sha256": call.arguments_sha256,
        "scope": approval.scope,
        "epoch": call.epoch,
    }
