"""Why was this call refused, or who allowed it? The answer comes from the record alone: rules may have changed
since."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_server.cli.badge import describe_transition
from mcp_server.cli.ledger import find_partner_row
from mcp_server.cli.output import print_table, say
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader

VERDICTS = {"intent": "ran", "refusal": "was refused", "question": "needed your approval"}
AXES = ("work_mode", "run_control", "profile", "model_mode", "ai_mode", "surface", "reasoning")
LISTS = {"block": "the block rule", "rules": "the deny rule", "confirmation": "the ask rule"}


@dataclass(frozen=True, slots=True)
class CallHistory:
    """A call, and every ledger row that helps explain its result."""

    call: "Row"
    outcome: "Row | None"
    posture_choice: "Row | None"
    """The last change of posture before the call."""
    questions: tuple["Row", ...]
    """The earlier question about the same call in the same session."""
    glance: str = ""
    """What the call was about, if that is still kept."""

    def describe_parts(self) -> Iterator[tuple[str, str]]:
        fields = self.call.fields
        if self.glance:
            yield "call", self.glance
        yield "decided", self._describe_decision()
        yield "because", self._describe_cause()
        if fields.get("rule"):
            kind = LISTS.get(str(fields.get("layer")), "the allow rule")
            yield "rule", f"{kind} {fields['rule']}"
        if fields.get("effect"):
            yield "would do" if self.call.kind != "intent" else "did", _describe_effect(fields)
        yield "called by", _describe_caller(fields)
        yield "called in", f"mode {fields.get('mode') or 'ROOT'}, stage {fields.get('stage') or 'unknown'}"
        yield "posture", " | ".join(_describe_axis(fields, axis) for axis in AXES)
        yield "chosen by", self._describe_choice()
        for row in self.questions:
            yield (
                "asked",
                f"in row {row.seq}, {format_time(row.at)}: {row.fields.get('reason') or 'no reason recorded'}",
            )
        if self.call.kind == "intent":
            yield "ended", self._describe_ending()

    def _describe_decision(self) -> str:
        fields = self.call.fields
        where = f" at the layer {fields['layer']}" if fields.get("layer") else ""
        code = f" with {fields['code']}" if fields.get("code") else ""
        return f"`{fields.get('tool')}` {VERDICTS.get(self.call.kind, self.call.kind)}{where}{code}"

    def _describe_cause(self) -> str:
        fields = self.call.fields
        if self.call.kind != "intent":
            return str(fields.get("reason") or "no reason was recorded")
        if fields.get("rule"):
            return "an allow rule let it run without asking you"
        if self.questions:
            return "you were asked about exactly this call earlier, and this time no layer objected"
        return "no layer objected: mode, stage and profile allow it, and no rule forbids it"

    def _describe_choice(self) -> str:
        if self.posture_choice is None:
            return "the operator's settings or the defaults"
        fields = self.posture_choice.fields
        return (
            f"{fields.get('principal')}, in row {self.posture_choice.seq}, {format_time(self.posture_choice.at)}:"
            f" {describe_transition(fields)} ({fields.get('reason') or 'no reason given'})"
        )

    def _describe_ending(self) -> str:
        if self.outcome is None:
            return "none yet: the call is still running, or its process ended first"
        fields = self.outcome.fields
        code = f" with {fields['code']}" if fields.get("code") else ""
        return f"{fields.get('ending')}{code} after {fields.get('latency_us', 0) / 1000:.1f} ms, row {self.outcome.seq}"


def load_call_history(state: "Reader", row: "Row") -> CallHistory | None:
    """Collect what the ledger knows about the call of this row; None if the row is not about a call."""
    partner = find_partner_row(state, row)
    call, outcome = (partner, row) if row.kind == "outcome" else (row, partner)
    if call is None or call.kind not in VERDICTS:
        return None
    choice, questions = _find_posture_choice(state, call), tuple(_find_questions(state, call))
    return CallHistory(call, outcome, choice, questions, state.find_glance(call.seq))


def _find_posture_choice(state: "Reader", call: "Row") -> "Row | None":
    from mcp_server.state.engine.rows import LedgerFilter

    row_filter = LedgerFilter(principal=call.fields.get("principal"), kinds=("transition",), before=call.seq)
    # Sessions have transitions, too; only those of a posture have a profile.
    choices = [row for row in state.read_rows(row_filter) if "profile" in (row.fields.get("to") or {})]
    return choices[-1] if choices else None


def _find_questions(state: "Reader", call: "Row") -> Iterator["Row"]:
    from mcp_server.state.engine.rows import LedgerFilter

    fields = call.fields
    row_filter = LedgerFilter(
        session=fields.get("session"), tool=fields.get("tool"), kinds=("question",), before=call.seq
    )
    for row in state.read_rows(row_filter):
        # The call that used the approval may be worded differently from the one in the question.
        is_redeemed = fields.get("approval") is not None and row.fields.get("question") == fields["approval"]
        if is_redeemed or row.fields.get("arguments_sha256") == fields.get("arguments_sha256"):
            yield row


def _describe_caller(fields: Any) -> str:
    client = fields.get("client") or "an unnamed client"
    carried = f", through {fields['carrier']}" if fields.get("carrier") else ""
    return (
        f"{client} over {fields.get('transport') or 'an unknown transport'}{carried}, for {fields.get('principal')};"
        f" session {fields.get('session')}, run {fields.get('run')}, step {fields.get('step')}"
    )


def _describe_effect(fields: Any) -> str:
    return f"{fields['effect']}, which needs profile {fields.get('needs')}"


def _describe_axis(fields: Any, axis: str) -> str:
    value = fields.get(axis)
    return f"reasoning {'on' if value else 'off'}" if axis == "reasoning" else str(value)


def show_call_history(history: CallHistory) -> None:
    say((f"{history.call.kind} {history.call.seq}", "bold"), f"  {format_time(history.call.at)}")
    print_table([(f"  {name}", text) for name, text in history.describe_parts()])


def to_json(history: CallHistory) -> dict[str, Any]:
    from mcp_server.cli.ledger import row_to_json

    return {
        "call": row_to_json(history.call, history.glance),
        "outcome": row_to_json(history.outcome) if history.outcome else None,
        "posture_chosen": row_to_json(history.posture_choice) if history.posture_choice else None,
        "questions": [row_to_json(row) for row in history.questions],
        "says": [{"about": name, "text": text} for name, text in history.describe_parts()],
    }
