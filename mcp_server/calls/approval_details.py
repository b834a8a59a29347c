"""What does a question tell a program? The same as its text tells a person, field by field."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_server.calls.approval_arguments import mark_secrets, to_field
from mcp_server.calls.approval_parts import PARTS, build_part_fields
from mcp_server.calls.approval_text import MOMENT, SEEN, STANDS, TARGETS, UNTOLD, get_facts, sort_names
from mcp_server.calls.request import ResolvedCall
from mcp_server.guards.git_index import Tracking
from mcp_server.guards.path_targets import SeenPath, Target, digest_targets
from mcp_server.guards.redaction import Redactor
from mcp_server.model.approvals import ApprovalMoment
from mcp_server.model.policy import Decision
from mcp_server.model.tools import Arguments, Demand, Effect

IN_GIT = {Tracking.TRACKED: True, Tracking.UNTRACKED: True, Tracking.OUTSIDE: False, Tracking.UNKNOWN: None}
IS_TRACKED = {Tracking.TRACKED: True, Tracking.UNTRACKED: False, Tracking.OUTSIDE: False, Tracking.UNKNOWN: None}


def build_details(call: ResolvedCall, decision: Decision, redactor: Redactor, leads: Arguments) -> dict[str, Any]:
    names = sort_names(call.tool, call.arguments)
    seen: Sequence[SeenPath] = leads.get(SEEN, ())
    facts = get_facts(leads)
    moment: ApprovalMoment = leads.get(MOMENT, ApprovalMoment())
    arguments = [to_field(name, call.arguments[name], redactor) for name in names]
    return {
        "reason": mark_secrets(decision.reason, redactor),
        "arguments": arguments,
        "parts": build_part_fields(leads.get(PARTS, ()), redactor),
        "targets": [_build_target(one, leads, redactor) for one in seen],
        "at_the_moment": [to_field(name, fact, redactor) for name, fact in facts.items()],
        "runs_meanwhile": [to_field("", one, redactor)["value"] for one in moment.beside],
        "rule": _build_rule(decision),
        "once_because": _find_once_reason(call, decision, leads, any("masked" in one for one in arguments)) or None,
    }


def _find_once_reason(call: ResolvedCall, decision: Decision, leads: Arguments, has_secret: bool) -> str:
    """Say why the call cannot be approved for a session, the strongest reason first; empty if it can."""
    demand = decision.demand or Demand(call.tool.effect, call.tool.profile)
    runs = Effect.EXEC in (call.tool.effect, demand.effect)
    reasons = (
        (demand.effect is Effect.DESTROY_LOCAL, "it destroys files"),
        (demand.effect is Effect.PRODUCTION_MUTATION, "it changes something in production"),
        (demand.once, "it deletes files or throws changes away"),
        (demand.always_asks, "what it touches is protected"),
        (has_secret, "it contains a secret"),
        (UNTOLD in leads, "menugate cannot tell which files it runs"),
        (STANDS in leads and not runs, "what it does depends on more than its arguments"),
    )
    return next((why for holds, why in reasons if holds), "")


def _build_target(seen: SeenPath, leads: Arguments, redactor: Redactor) -> dict[str, Any]:
    targets: Mapping[str, Sequence[Target]] = leads[TARGETS]
    digests = {one.path: one.sha256 for several in targets.values() for one in several}
    found, named = targets[seen.named], to_field("", seen.named, redactor)
    return {
        "argument": seen.argument,
        "named": named["value"],
        "path": to_field("", seen.path, redactor)["value"],
        "kind": seen.kind,
        "size": seen.size if seen.kind == "file" else None,
        "sha256": digests.get(seen.path) or None,
        "in_git": IN_GIT[seen.tracking],
        "tracked": IS_TRACKED[seen.tracking],
        # A path with its secret masked leads nowhere, so nobody can look there again.
        "bound_to": digest_targets(found) if found and "masked" not in named else None,
    }


def _build_rule(decision: Decision) -> dict[str, Any] | None:
    if decision.rule is None:
        return None
    file, _, line = decision.rule_source.rpartition(":")
    known = line.isdecimal()
    return {
        "rule": decision.rule,
        "file": file if known else decision.rule_source,
        "line": int(line) if known else None,
        "owner": decision.rule_owner,
    }
