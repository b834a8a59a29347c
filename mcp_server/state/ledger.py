"""What is recorded, and what makes the record hard to deny?"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from mcp_server.state.engine.chain import Checkpoint
from mcp_server.state.engine.rows import IntentRow, Judged, Message, OutcomeRow, PostureMoved, QuestionRow, RowKind
from mcp_server.state.engine.transaction import Transaction, View
from mcp_server.state.glances import record_glance
from mcp_server.state.notes import write_notes


def record_intent(tx: Transaction, intent: IntentRow) -> int | PostureMoved:
    """Record what is about to run, if the posture it was decided under still holds."""
    epoch = tx.get_epoch(intent.session.principal)
    return PostureMoved(epoch) if epoch != intent.posture.epoch else record_decision(tx, intent)


def record_outcome(tx: Transaction, outcome: OutcomeRow, release: Callable[[Transaction, OutcomeRow], None]) -> int:
    """Record how a call ended. `release` is called unless it is known that no posture change waits for anything."""
    if outcome.notes:
        write_notes(tx, outcome.run, outcome.intent, outcome.notes)
    seq = tx.append(
        RowKind.OUTCOME,
        {
            "tested": outcome.tested or None,
            "intent": outcome.intent,
            "ending": outcome.ending,
            "code": outcome.code,
            "latency_us": outcome.latency_us,
            "result_bytes": outcome.result_bytes,
            "shown_bytes": outcome.shown_bytes,
            "session": outcome.session,
            "tool": outcome.tool,
            "run": outcome.run,
            **({"hosts": list(outcome.hosts)} if outcome.hosts else {}),
        },
    )
    if tx.unsettled is None or tx.unsettled:
        release(tx, outcome)
    return seq


def record_decision(tx: Transaction, judged: Judged, references: Mapping[str, Any] = {}) -> int:
    """Record a call and what was decided about it, and beside the row what the call is about."""
    fields = build_call_fields(judged)
    seq = tx.append(judged.kind, {**fields, **references} if references else fields)
    if judged.glance:
        record_glance(tx, seq, judged.glance)
    return seq


def build_call_fields(judged: Judged) -> dict[str, Any]:
    """Build the row of a call and what was decided about it."""
    session, posture, decision, origin = judged.session, judged.posture, judged.decision, judged.origin
    return {
        "principal": session.principal,
        "conversation": origin.conversation,
        "session": session.id,
        "run": session.run,
        "step": session.steps,
        "client": origin.client,
        "transport": origin.transport,
        "passing": origin.passing or None,
        "mode": session.mode,
        "stage": session.stage,
        "work_mode": posture.work_mode,
        "run_control": posture.run_control,
        "profile": posture.profile,
        "model_mode": posture.model_mode,
        "surface": origin.surface,
        "ai_mode": posture.ai_mode,
        "reasoning": posture.reasoning,
        "tool_count": judged.tool_count,
        "tool": judged.tool,
        "carrier": judged.carrier,
        "effect": decision.demand.effect if decision.demand else None,
        "needs": decision.demand.profile if decision.demand else None,
        "verdict": decision.verdict,
        "layer": decision.layer,
        "code": decision.code,
        "rule": decision.rule,
        "reason": decision.reason,
        "arguments_sha256": judged.arguments_sha256,
        "arguments_bytes": judged.arguments_bytes,
        "epoch": posture.epoch,
        **({"phase": session.phase} if session.phase else {}),
        **({"within": origin.within} if origin.within else {}),
        **({"question": judged.question} if isinstance(judged, QuestionRow) else {}),
    }


def sign_checkpoint(tx: Transaction) -> bool:
    """Sign the head, if there is anything new to sign."""
    before = tx.checkpoint
    if tx.seq <= (before.seq if before else 0):
        return False
    draft = Checkpoint((before.number if before else 0) + 1, tx.seq, tx.hash, tx.clock.now_ns())
    made = replace(draft, key=tx.seal.public_key, signature=tx.seal.sign(draft.format_statement(before)))
    tx.run(
        "INSERT INTO checkpoints (number, seq, hash, at, key, signature)"
        " VALUES (:number, :seq, :hash, :at, :key, :signature)",
        **{name: getattr(made, name) for name in ("number", "seq", "hash", "at", "key", "signature")},
    )
    tx.checkpoint = made
    return True


def record_trust(
    tx: Transaction, folder: str, principal: str, trusted: bool, digest: str, upstream: str | None = None
) -> int:
    """Record that the person trusts a folder's own files, or what a server offers there, or no longer does."""
    said = {
        "principal": principal,
        "folder": folder,
        "upstream": upstream,
        "trusted": trusted,
        "sha256": digest or None,
    }
    return tx.append(RowKind.TRUST, said)


def record_attempt(tx: Transaction, principal: str, server: int, command: str) -> int:
    """Record that a program started by a server tried to speak for the person, and tell the person."""
    from mcp_server.state.messages import leave_message  # hardly ever

    reason = f"a program started by the server with process id {server} tried `{command}` and was refused"
    seq = tx.append(RowKind.ATTEMPT, {"principal": principal, "server": server, "command": command, "reason": reason})
    text = f"{reason[0].upper()}{reason[1:]}: only you can do that. See `menugate audit show {seq}`."
    leave_message(tx, Message(f"{tx.process}-{seq}-attempt", 0, "", text))
    return seq


def record_rules(tx: Transaction, config: str | None, rules: int, fault: str) -> int:
    """Record that a server now judges by other rules, or keeps its old ones although the files changed."""
    reason = f"the last valid rules stay in force: {fault}" if fault else f"rules in force from now on: {rules}"
    return tx.append(RowKind.RULES, {"config": config, "rules": rules, "fault": fault or None, "reason": reason})


def record_health(tx: Transaction, reason: str, policy: str) -> int:
    return tx.append(RowKind.HEALTH, {"reason": reason, "policy": policy})


def read_change_count(view: View) -> int:
    """Return a number that changes whenever posture or sessions do."""
    row = view.fetch_one("SELECT changes FROM workspace")
    return row["changes"] if row else 0


def record_transition(
    tx: Transaction, before: Mapping[str, Any], after: Mapping[str, Any], why: Mapping[str, Any]
) -> None:
    """Record a transition and its reason, and notify every process that has the file open."""
    tx.append(RowKind.TRANSITION, {"from": before, "to": after, **why})
    tx.changed = True
