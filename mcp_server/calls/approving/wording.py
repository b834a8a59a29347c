"""What is the person shown? Who asks, which tool, what it would do, and with which arguments."""

import json
from collections.abc import Mapping
from typing import Any

from mcp_server.guards.redaction import Redactor
from mcp_server.guards.sanitizer import sanitize
from mcp_server.model.ending import Code, Problem
from mcp_server.model.policy import Decision
from mcp_server.model.runs.approval import Approval, Scope
from mcp_server.model.tool import Arguments, Tool

MOST_ARGUMENTS = 1_200
MOST_REASON = 600
SERVER = "menugate"


def question(tool: Tool, arguments: Arguments, decision: Decision, redactor: Redactor) -> str:
    """No secret, nothing that hides or moves the text around it, and never so long that the end is out of sight."""
    effect = decision.demand.effect if decision.demand else tool.effect
    shown = redactor.redact(json.dumps(redactor.redact_value(dict(arguments)), ensure_ascii=False, sort_keys=True))
    shown = sanitize(shown)
    more = len(shown) - MOST_ARGUMENTS
    cut = shown if more <= 0 else f"{shown[:MOST_ARGUMENTS]}\u2026 ({more:,} more characters are not shown)"
    why = sanitize(redactor.cut(decision.reason, MOST_REASON))
    return f"{SERVER} asks before it runs the tool `{tool.name}`.\n{why}\nEffect: {effect}\nArguments: {cut}"


def scopes(approval: Approval) -> Mapping[str, Any]:
    """The further field of the form where the person may choose for how long."""
    if not approval.wanted.lasting:
        return {}
    says = f"`{Scope.ONCE}`: this call alone. `{Scope.SESSION}`: this tool, in this session."
    chosen = {"type": "string", "title": "For how long", "description": says, "enum": [str(one) for one in Scope]}
    return {"scope": chosen}


def missing(decision: Decision, approval: Approval, seconds: float, why: str = "") -> Problem:
    """Nobody can be asked through the client, or `why` it gave no answer: so how the person is reached is said."""
    unanswered = f"The client was asked and {why}, so the question is still open. " if why else ""
    way_out = (
        f"{unanswered}Nothing ran. The user says yes with `menugate approve {approval.id}` or no with `menugate deny "
        f"{approval.id}`, within {minutes(seconds)}; tell them with `message_user`. Then make the same call again."
    )
    data = {"layer": str(decision.layer), "rule": decision.rule, "approval": approval.id}
    return Problem(Code.APPROVAL_REQUIRED, decision.reason, way_out, data)


def lapsed(tool: Tool, why: str) -> Problem:
    message = f"the yes to this call of `{tool.name}` does not count: {why}. Nothing ran."
    return Problem(Code.APPROVAL_REQUIRED, message, "Make the call again, and the person is asked anew.")


def denied(tool: Tool, reason: str = "") -> Problem:
    message = f"the user was asked about this call of `{tool.name}` and said no. Nothing ran."
    said = f" They say: {reason}" if reason else ""
    return Problem(Code.APPROVAL_DENIED, message, f"Find another way, or ask what they would rather have.{said}")


def minutes(seconds: float) -> str:
    whole = max(1, round(seconds / 60))
    return f"{whole} minutes" if whole != 1 else "a minute"
