"""What was the person asked, what did they answer, and was it used? An approval lets one call through and is used up.

Each row is sealed with the key outside the workspace: write access to the file is not enough to approve a call.
"""

from dataclasses import dataclass, replace
from typing import Any

from mcp_server.model.approvals import AnsweredBy, Approval, ApprovalAnswer, ApprovalScope, ApprovedCall
from mcp_server.model.text import escape_surrogates
from mcp_server.state.approval_questions import approval_from_row, find_approval, write_approval
from mcp_server.state.engine.rows import ApprovalLapsed, Begun, IntentRow, PostureMoved, QuestionRow, RowKind, RunPaused
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.runs import take_unit

KEPT_NS = 24 * 3600 * 10**9
"""How long a question can still be looked at after it expired."""
MOST_KEPT = 500
"""Questions per principal. Those pushed out by a flood are asked again, even if approved."""
LONG, MOST_LONG = 20_000, 20
"""At most this many questions longer than this: each is read with every call that needs approval."""


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """What a call needs besides its record: an approval to use up with it, and room in the run for one more unit."""

    approval: str = ""
    call: ApprovedCall | None = None
    carried: bool = False
    unit: str | None = None
    """The session whose unit this is, empty for all of the person's; None if units are not counted."""


@dataclass(frozen=True, slots=True)
class QuestionReply:
    """An answer to a question."""

    id: str
    answer: ApprovalAnswer
    way: AnsweredBy
    scope: ApprovalScope = ApprovalScope.ONCE
    reason: str = ""


def record_question(tx: Transaction, approval: Approval, judged: QuestionRow) -> Approval:
    """Record the question. If one is open for the same call, it is asked again instead of a second one."""
    now = tx.clock.now_ns()
    tx.run("DELETE FROM approvals WHERE expires < :then", then=now - KEPT_NS)
    known = find_standing_approval(tx, approval.wanted, now)
    if known is None or known.answer is not ApprovalAnswer.OPEN:
        known = approval
        write_approval(tx, approval)
        tx.run(
            "DELETE FROM approvals WHERE principal = :principal AND id NOT IN"
            " (SELECT id FROM approvals WHERE principal = :principal ORDER BY asked DESC, id LIMIT :most)",
            principal=escape_surrogates(approval.wanted.principal),
            most=MOST_KEPT,
        )
        tx.run(
            "DELETE FROM approvals WHERE principal = :principal AND length(body) > :long AND id NOT IN"
            " (SELECT id FROM approvals WHERE principal = :principal AND length(body) > :long"
            " ORDER BY asked DESC, id LIMIT :most)",
            principal=escape_surrogates(approval.wanted.principal),
            long=LONG,
            most=MOST_LONG,
        )
    tx.append(RowKind.QUESTION, replace(judged, question=known.id).to_fields())
    return known


def record_answer(tx: Transaction, reply: QuestionReply) -> Approval | None:
    """Return the approval as it stands then; None if there is none, or none that can still be answered.

    A question too long for a form cannot be approved before the terminal has shown all of it. A refusal revokes an
    approval that has let nothing through yet, through whichever channel it comes; otherwise only the person can revoke
    an answer. A session-wide approval can be revoked as long as it lets calls through: later calls then ask again.
    """
    now = tx.clock.now_ns()
    found = find_approval(tx, reply.id)
    if found is None or found.is_lapsed(now) or found.is_spent:
        return None
    if found.is_unread and reply.answer is ApprovalAnswer.YES:
        return None
    if found.used and (reply.way is not AnsweredBy.PERSON or reply.answer is not ApprovalAnswer.NO):
        return None
    withdrawn = found.answer is ApprovalAnswer.YES and reply.answer is ApprovalAnswer.NO
    if found.answer is not ApprovalAnswer.OPEN and reply.way is not AnsweredBy.PERSON and not withdrawn:
        return found
    scope = reply.scope if found.wanted.lasting else ApprovalScope.ONCE
    settled = replace(found, answer=reply.answer, way=reply.way, scope=scope, reason=reply.reason)
    write_approval(tx, settled)
    # A client that shows the question can continue.
    tx.changed = True
    said = f"{reply.answer}, through the {reply.way}" + (f": {reply.reason}" if reply.reason else "")
    tx.append(RowKind.ANSWER, _build_row_fields(settled) | {"answer": reply.answer, "way": reply.way, "reason": said})
    return settled


def mark_shown(tx: Transaction, id: str) -> None:
    """The person has seen the whole question and may now approve it."""
    found = find_approval(tx, id)
    if found is not None and found.is_unread:
        write_approval(tx, replace(found, shown=True))


def leave_open(tx: Transaction, id: str, tries: int, why: str) -> Approval | None:
    """The client returned something that is no valid answer. The question stays open; after too many such tries only
    the person can answer it. An answer they gave meanwhile stands."""
    found = find_approval(tx, id)
    if found is None or found.is_lapsed(tx.clock.now_ns()) or found.used:
        return None
    if found.answer is not ApprovalAnswer.OPEN:
        return found
    left = replace(found, tries=found.tries + tries)
    write_approval(tx, left)
    said = f"left open: the client {why}"
    tx.append(
        RowKind.ANSWER,
        _build_row_fields(left) | {"answer": ApprovalAnswer.OPEN, "way": AnsweredBy.CLIENT, "reason": said},
    )
    return left


def begin_call(tx: Transaction, intent: IntentRow, terms: QuestionTerms) -> Begun:
    """Record what is about to run and use up the approval it relies on, or do neither."""
    epoch = tx.get_epoch(intent.session.principal)
    if epoch != intent.posture.epoch:
        return PostureMoved(epoch)
    found = find_approval(tx, terms.approval) if terms.approval else None
    if terms.call is not None:
        why = _describe_approval_fault(found, terms, tx.clock.now_ns())
        if why:
            return ApprovalLapsed(why)
    if terms.unit is not None and (held := take_unit(tx, intent.session, terms.unit)):
        return RunPaused(held)
    about = {"approval": terms.approval or None, "unit": terms.unit is not None or None}
    seq = tx.append(intent.kind, intent.to_fields() | about)
    if found is not None:
        write_approval(tx, replace(found, used=found.used + 1))
        tx.append(
            RowKind.REDEEMED, _build_row_fields(found) | {"intent": seq, "way": found.way, "reason": f"by call {seq}"}
        )
    return seq


def _describe_approval_fault(found: Approval | None, terms: QuestionTerms, now: int) -> str:
    assert terms.call is not None, "asked only about calls that need a yes"
    if found is None:
        return "it is not known here"
    if found.is_spent:
        return "it was used already"
    if found.is_lapsed(now):
        return found.void or "it has expired"
    if found.answer is not ApprovalAnswer.YES:
        return "the person did not say yes"
    return (
        ""
        if found.covers(terms.call, terms.carried)
        else "it was given for another call, or under another posture, or what the call stands on has changed"
    )


def find_standing_approval(view: View, call: ApprovedCall, now: int) -> Approval | None:
    """Return what was asked about this very call and still counts: an approval before a refusal, and either before an
    open one."""
    rows = view.fetch_all(
        "SELECT * FROM approvals WHERE principal = :principal", principal=escape_surrogates(call.principal)
    )
    every = [found for row in rows if (found := approval_from_row(view, row)) is not None]
    fitting = [one for one in every if not one.is_lapsed(now) and not one.is_spent and one.covers(call)]
    order = (ApprovalAnswer.YES, ApprovalAnswer.NO, ApprovalAnswer.OPEN)
    return next((one for wanted in order for one in fitting if one.answer is wanted), None)


def _build_row_fields(one: Approval) -> dict[str, Any]:
    wanted = one.wanted
    return {
        "question": one.id,
        "principal": wanted.principal,
        "session": wanted.session,
        "run": wanted.run,
        "step": wanted.step,
        "stage": wanted.stage,
        "tool": wanted.tool,
        "arguments_sha256": wanted.arguments_sha256,
        "scope": one.scope,
        "epoch": wanted.epoch,
    }
