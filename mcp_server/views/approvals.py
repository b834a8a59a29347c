"""What does a question show, whoever looks at it, and which answers can you give?"""

from collections.abc import Mapping
from typing import Any

from mcp_server.model.approvals import Approval, ApprovalAnswer, ApprovalScope
from mcp_server.views.text import format_time


def get_standing(approval: Approval, now: int) -> str:
    """Return one word: `waits`, `used`, `void`, `expired`, or the answer."""
    if approval.is_spent and approval.answer is ApprovalAnswer.YES:
        return "used"
    if approval.void:
        return "no" if approval.answer is ApprovalAnswer.NO else "void"
    if approval.is_lapsed(now):
        return "expired"
    return "waits" if approval.is_waiting(now) else str(approval.answer)


def build_approval_fields(approval: Approval, now: int) -> dict[str, Any]:
    return {
        "id": approval.id,
        "standing": get_standing(approval, now),
        "tool": approval.wanted.tool,
        "effect": approval.wanted.effect,
        "principal": approval.wanted.principal,
        "session": approval.wanted.session or None,
        "run": approval.wanted.run or None,
        "step": approval.wanted.step,
        "message": approval.message,
        "too_long": bool(approval.whole) and not approval.brief,
        "shown": not approval.is_unread,
        "asked": format_time(approval.asked),
        "expires": format_time(approval.expires),
        "scope": approval.scope,
        "may_be_for_session": approval.wanted.lasting,
        "reason": approval.reason or None,
        "void": approval.void or None,
    }


def build_question_fields(approval: Approval) -> dict[str, Any]:
    """Return the whole question, field by field. Questions of an older menugate have only the text."""
    return {
        "message": approval.whole or approval.message,
        "host": approval.host or None,
        "scopes": list(list_scopes(approval)),
        "arguments": None,
        "parts": None,
        "targets": None,
        "rule": None,
        "once_because": None,
        **approval.details,
    }


def list_scopes(approval: Approval) -> Mapping[ApprovalScope, str]:
    """List the approvals that you can give, and what each one covers."""
    lasting = approval.wanted.lasting
    settled = "arguments" in approval.details and not approval.details.get("at_the_moment")
    offered = {ApprovalScope.ONCE: True, ApprovalScope.SESSION: lasting, ApprovalScope.ALWAYS: lasting and settled}
    return {scope: describe_scope(approval, scope) for scope, is_offered in offered.items() if is_offered}


def describe_scope(approval: Approval, scope: ApprovalScope) -> str:
    match scope:
        case ApprovalScope.ONCE:
            return "this call, once"
        case ApprovalScope.SESSION:
            return approval.describe_session_scope()
        case ApprovalScope.ALWAYS:
            return "this call and, by a rule, every later one exactly like it in this workspace"
