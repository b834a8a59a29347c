"""Why was this call refused, or who allowed it? The answer comes from the record alone: rules may have changed
since."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_server.cli.badge import describe_transition
from mcp_server.cli.ledger import find_partner_row
from mcp_server.cli.output import print_table, say
from mcp_server.views.glances import restore_words
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader

VERDICTS = {"intent": "ran", "refusal": "was refused", "question": "needed your approval"}
AXES = ("work_mode", "run_control", "profile", "model_mode", "ai_mode", "surface", "reasoning")
WAYS = {"person": "at a terminal", "client": "in the client"}
COVERS = {
    "once": "this call, once",
    "session": "such calls in its session",
    "always": "this call and, by a rule, every later one exactly like it",
}
LISTS = {"block": "the block rule", "rules": "the deny rule", "confirmation": "the ask rule"}


class CallHistory(Struct, frozen=True):
    """A call, and every ledger row that helps explain its result."""

    call: "Row"
    outcome: "Row | None"
    posture_choice: "Row | None"
    """The last change of posture before the call."""
    questions: tuple["Row", ...]
    """The question whose approval the call used, or earlier ones about the same call in the same session. Each only
    once, although every repetition of the call recorded it again."""
    answers: tuple["Row", ...]
    """What was answered to them: before the call, or at any time if the call is itself a question."""
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
            yield "asked", f"{_describe_place(row)}: {row.fields.get('reason') or 'no reason recorded'}"
        for row in self.answers:
            yield "answered", f"{_describe_place(row)}: {self._describe_answer(row)}"
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
        if fields.get("approval"):
            return self._describe_approval()
        if self.questions:
            return "you were asked about exactly this call earlier, and this time no layer objected"
        return "no layer objected: mode, stage and profile allow it, and no rule forbids it"

    def _describe_approval(self) -> str:
        """Say who allowed the call. The last answer counts, because only an approval lets a call begin."""
        granted = [row for row in self.answers if row.fields.get("answer") == "yes"]
        if not granted:
            return (
                f"you approved it, in an answer to the question {self.call.fields['approval']} that is not in this file"
            )
        row = granted[-1]
        scope = COVERS.get(str(row.fields.get("scope")), "this call")
        return f"you were asked, and approved {scope}: {self._describe_way(row)}, {_describe_place(row)}"

    def _describe_answer(self, row: "Row") -> str:
        answer, text = row.fields.get("answer"), str(row.fields.get("reason") or "")
        if answer not in ("yes", "no"):
            return text or str(answer)
        scope = COVERS.get(str(row.fields.get("scope")), "") if answer == "yes" else ""
        said = f"{answer}, {self._describe_way(row)}" + (f", for {scope}" if scope else "")
        why = text.partition(": ")[2]
        return f"{said}: {why}" if why else said

    def _describe_way(self, row: "Row") -> str:
        """Say where an answer was given, and for whom: a client answers for its principal."""
        way = str(row.fields.get("way"))
        asked = [one for one in self.questions if one.fields.get("question") == row.fields.get("question")]
        client = asked[-1].fields.get("client") if asked else None
        where = f"in the client {client}" if way == "client" and client else WAYS.get(way, way)
        return f"{where}, for {row.fields.get('principal')}"

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
    row = _find_call_of_answer(state, row) or row
    partner = find_partner_row(state, row)
    call, outcome = (partner, row) if row.kind == "outcome" else (row, partner)
    if call is None or call.kind not in VERDICTS:
        return None
    questions = tuple(_find_questions(state, call))
    choice, answers = _find_posture_choice(state, call), tuple(_find_answers(state, call, questions))
    return CallHistory(call, outcome, choice, questions, answers, state.find_glance(call.seq))


def _find_call_of_answer(state: "Reader", row: "Row") -> "Row | None":
    """Find the call that used an approval, or the one that an answer is about; None for other rows."""
    from mcp_server.state.engine.rows import LedgerFilter

    if row.kind == "redeemed":
        return state.find_row(int(row.fields.get("intent") or 0))
    if row.kind != "answer":
        return None
    asked = state.read_rows(LedgerFilter(tool=row.fields.get("tool"), kinds=("question",), before=row.seq))
    return next((one for one in asked if one.fields.get("question") == row.fields.get("question")), None)


def _find_posture_choice(state: "Reader", call: "Row") -> "Row | None":
    from mcp_server.state.engine.rows import LedgerFilter

    row_filter = LedgerFilter(principal=call.fields.get("principal"), kinds=("transition",), before=call.seq)
    # Sessions have transitions, too; only those of a posture have a profile.
    choices = [row for row in state.read_rows(row_filter) if "profile" in (row.fields.get("to") or {})]
    return choices[-1] if choices else None


def _find_questions(state: "Reader", call: "Row") -> Iterator["Row"]:
    """Find the question whose approval the call used, which may come from another session or an earlier process.
    Without one, find those that were asked about the same call in its session."""
    from mcp_server.state.engine.rows import LedgerFilter

    fields = call.fields
    approval, session = fields.get("approval"), fields.get("session")
    row_filter = LedgerFilter(
        session=None if approval else session,
        tool=fields.get("tool"),
        principal=fields.get("principal"),
        kinds=("question",),
        before=call.seq,
    )
    seen: set[str] = set()
    for row in state.read_rows(row_filter):
        question = str(row.fields.get("question"))
        # The call that used the approval may be worded differently from the one in the question.
        same = question == approval if approval else _is_same_call(row, call)
        if same and question not in seen:
            seen.add(question)
            yield row


def _is_same_call(row: "Row", call: "Row") -> bool:
    return row.fields.get("arguments_sha256") == call.fields.get("arguments_sha256")


def _find_answers(state: "Reader", call: "Row", questions: Sequence["Row"]) -> Iterator["Row"]:
    from mcp_server.state.engine.rows import LedgerFilter

    asked = {row.fields.get("question") for row in (*questions, call)} | {call.fields.get("approval")}
    if not (ids := asked - {None}):
        return
    before = None if call.kind == "question" else call.seq
    row_filter = LedgerFilter(
        tool=call.fields.get("tool"), principal=call.fields.get("principal"), kinds=("answer",), before=before
    )
    yield from (row for row in state.read_rows(row_filter) if row.fields.get("question") in ids)


def _describe_place(row: "Row") -> str:
    return f"in row {row.seq}, {format_time(row.at)}"


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
    print_table([(f"  {name}", restore_words(text, history.glance)) for name, text in history.describe_parts()])


def to_json(history: CallHistory) -> dict[str, Any]:
    from mcp_server.cli.ledger import row_to_json

    return {
        "call": row_to_json(history.call, history.glance),
        "outcome": row_to_json(history.outcome) if history.outcome else None,
        "posture_chosen": row_to_json(history.posture_choice) if history.posture_choice else None,
        "questions": [row_to_json(row) for row in history.questions],
        "answers": [row_to_json(row) for row in history.answers],
        "says": [{"about": name, "text": text} for name, text in history.describe_parts()],
    }
