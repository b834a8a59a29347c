"""What is worth knowing of a run once its beginning is forgotten?"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from mcp_server.model.text import escape_surrogates, shorten_to_line
from mcp_server.state.engine.rows import LET_GO, Row
from mcp_server.state.engine.transaction import View
from mcp_server.state.verify import read_body

# What is worth knowing of a run when its beginning is forgotten? Goals, decisions, plan, open issues, outputs.
#
# Pure: the same rows and notes give the same bytes, wherever and whenever. Times are UTC, and no sorting depends on the
# locale. Reasoning is not included, because it is never stored.

MOST_LINES = 20
LONGEST_LINE = 400
HEADINGS = {
    "goals": "Goals",
    "decisions": "Decisions",
    "plan": "Current plan",
    "issues": "Open issues",
    "outputs": "Important outputs",
}
NOTHING = {
    "goals": "None was told.",
    "decisions": "None was taken.",
    "plan": "None was told.",
    "issues": "None.",
    "outputs": "None yet.",
}
KEPT_NO_LONGER = "Kept no longer: what was noted of a run is dropped after 30 days."
"""Stands for anything empty in a run that once had notes."""
KINDS = ("goal", "decision", "plan", "issue", "file", "message", "answer")


@dataclass(frozen=True, slots=True)
class Note:
    """What a tool considers worth remembering of a call, or the file that the call changed."""

    seq: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    run: str
    principal: str
    facts: Mapping[str, Any]
    sections: Mapping[str, tuple[str, ...]]
    let_go: bool = False
    """True if some of the run's notes were deleted."""

    @property
    def text(self) -> str:
        """As Markdown."""
        facts = "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in self.facts.items())
        parts = [f"# Summary of run {self.run}", facts]
        for key, heading in HEADINGS.items():
            lines = self.sections[key] or (KEPT_NO_LONGER if self.let_go else NOTHING[key],)
            parts.append(f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines))
        return "\n\n".join(parts) + "\n"

    @property
    def data(self) -> dict[str, Any]:
        return {"run": self.run, "principal": self.principal, "facts": dict(self.facts), "let_go": self.let_go} | {
            key: list(lines) for key, lines in self.sections.items()
        }


@dataclass(slots=True)
class _Told:
    """The rows of a run, sorted by what they say."""

    intents: dict[int, Row] = field(default_factory=dict[int, Row])
    outcomes: dict[int, Row] = field(default_factory=dict[int, Row])
    """By the intent they belong to."""
    refusals: list[Row] = field(default_factory=list[Row])
    moves: list[Row] = field(default_factory=list[Row])
    choices: list[Row] = field(default_factory=list[Row])

    def add_row(self, row: Row) -> None:
        match row.kind:
            case "intent":
                self.intents[row.seq] = row
            case "outcome":
                self.outcomes[int(row.fields.get("intent") or 0)] = row
            case "refusal" | "question":
                self.refusals.append(row)
            case "transition" if "profile" in get_transition_sides(row)[1]:
                self.choices.append(row)
            case "transition" | "delivery":
                self.moves.append(row)
            case _:
                pass

    def get_ending(self, intent: int) -> str:
        return str(self.outcomes[intent].fields.get("ending")) if intent in self.outcomes else "unknown"


def build_summary(run: str, rows: Sequence[Row], notes: Sequence[Note], upto: int | None = None) -> Summary:
    """`rows` are the run's and the person's choices made meanwhile; `upto` is the last call that counts."""
    told = _Told()
    for row in rows:
        of_call = int(row.fields.get("intent") or row.seq) if row.kind == "outcome" else row.seq
        if upto is None or of_call <= upto:
            told.add_row(row)
    said: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for note in notes:
        if (upto is None or note.seq <= upto) and note.kind in said:
            said[note.kind].append(note.text)
    sections = {
        "goals": said["goal"],
        "decisions": [*_describe_decisions(told), *said["decision"]],
        "plan": said["plan"][-1:] or list(_describe_standing(told)),
        "issues": [*_describe_issues(told), *said["issue"]],
        "outputs": list(_describe_outputs(told, said)),
    }
    # Equal notes count once; the newest are kept, and the text says how many were left out.
    let_go = any(note.kind == LET_GO for note in notes)
    return Summary(
        run,
        _find_principal(rows),
        _build_facts(told),
        {key: _limit_lines(lines) for key, lines in sections.items()},
        let_go,
    )


def _find_principal(rows: Iterable[Row]) -> str:
    return next((str(row.fields["principal"]) for row in rows if row.fields.get("principal")), "")


def _limit_lines(lines: Iterable[str]) -> tuple[str, ...]:
    once = list(dict.fromkeys(shorten_to_line(escape_surrogates(line), LONGEST_LINE) for line in lines))
    left_out = len(once) - MOST_LINES
    return tuple(once) if left_out <= 0 else (f"({left_out} earlier ones left out)", *once[left_out:])


def _build_facts(told: _Told) -> dict[str, Any]:
    rows = [*told.intents.values(), *told.outcomes.values(), *told.refusals, *told.moves]
    if not rows:
        return {"calls": 0}
    endings = Counter(told.get_ending(seq) for seq in told.intents)
    first = min(rows, key=lambda row: row.seq)
    return {
        "session": str(first.fields.get("session") or ""),
        "from": _format_time(first.at),
        "to": _format_time(max(row.at for row in rows)),
        "calls": len(told.intents),
        "done": endings["done"],
        "failed": endings["problem"],
        "refused": len(told.refusals),
        "rows": f"{first.seq} to {max(row.seq for row in rows)}",
    }


def _format_time(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _describe_decisions(told: _Told) -> Iterator[str]:
    for row in sorted([*told.moves, *told.choices], key=lambda row: row.seq):
        before, after = get_transition_sides(row)
        if row.kind == "delivery":
            yield f"Delivered as {row.fields.get('status')}."
        elif "profile" in after:
            changed = [f"{axis} {after[axis]}" for axis in after if axis != "epoch" and before.get(axis) != after[axis]]
            yield f"The person chose {', '.join(changed) or 'nothing new'}."
        elif before.get("mode") != after.get("mode"):
            yield f"Went from {_format_place(before)} to {_format_place(after)}."
        elif before.get("run") != after.get("run"):
            yield f"Ended the run: {row.fields.get('reason')}."


def get_transition_sides(row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
    """What it was before a transition, and after."""
    before, after = row.fields.get("from"), row.fields.get("to")
    return (
        cast(dict[str, Any], before) if isinstance(before, dict) else {},
        cast(dict[str, Any], after) if isinstance(after, dict) else {},
    )


def _format_place(of: Mapping[str, Any]) -> str:
    return f"`{of['mode']}`" if of.get("mode") else "ROOT"


def _describe_standing(told: _Told) -> Iterator[str]:
    """Describe progress if nobody stated a plan: where the run is, and what it did last."""
    if not told.intents:
        return
    last = told.intents[max(told.intents)]
    where = f"mode `{last.fields['mode']}`" if last.fields.get("mode") else "ROOT"
    ended = {"unknown": "has not ended yet"}.get(told.get_ending(last.seq), f"ended as {told.get_ending(last.seq)}")
    yield f"Stands in {where}, stage {last.fields.get('stage')}; the last call, `{last.fields.get('tool')}`, {ended}."


def _describe_issues(told: _Told) -> Iterator[str]:
    """Calls that failed and never succeeded later."""
    went = {
        _get_call_key(row): row.seq for seq, row in told.intents.items() if told.get_ending(seq) == "done"
    }  # the last time this very call succeeded
    counted: Counter[str] = Counter()
    for row in told.refusals:
        if went.get(_get_call_key(row), 0) < row.seq:
            word = "waits for the person's yes" if row.kind == "question" else "was refused"
            why = row.fields.get("reason") or "no reason recorded"
            counted[f"`{row.fields.get('tool')}` {word} ({row.fields.get('code')}): {why}"] += 1
    for seq, row in told.intents.items():
        if went.get(_get_call_key(row), 0) >= seq:
            continue
        ending = told.get_ending(seq)
        if ending == "unknown":
            counted[f"`{row.fields.get('tool')}` has no recorded end"] += 1
        elif ending != "done":
            counted[f"`{row.fields.get('tool')}` failed ({told.outcomes[seq].fields.get('code') or ending})"] += 1
    for line, times in counted.items():
        yield line if times == 1 else f"{line} ({times} times)"


def _get_call_key(row: Row) -> tuple[object, object]:
    return row.fields.get("tool"), row.fields.get("arguments_sha256")


def _describe_outputs(told: _Told, said: Mapping[str, Sequence[str]]) -> Iterator[str]:
    # A file changed twice is listed where it was last changed.
    for path in reversed(dict.fromkeys(reversed(said["file"]))):
        yield f"Changed `{path}`."
    shown: dict[str, list[int]] = {}
    for seq, row in told.intents.items():
        if told.get_ending(seq) == "done":
            size = int(told.outcomes[seq].fields.get("shown_bytes") or 0)
            shown.setdefault(str(row.fields.get("tool")), []).append(size)
    for tool in sorted(shown):
        times = len(shown[tool])
        yield f"`{tool}` was done {'once' if times == 1 else f'{times} times'}, {sum(shown[tool]):,} characters shown."
    for message in said["message"]:
        yield f"Told the person: {message}"
    for answer in said["answer"]:
        yield f"Final answer: {answer}"


# Which rows and notes belong to a run? Found by the ledger's index of runs, in whatever process asks.

HOW_MANY_RUNS = 100
AMONG_ROWS = 200_000
OUTCOMES = {"plan_delta": "decision", "next_action": "plan", "known_risks": "issue"}
MOST_ROWS = 20_000
"""Of a longer run, only the newest rows are read."""


def build_run_summary(view: View, run: str, upto: int | None = None) -> Summary | None:
    """Summarise a run; None if it has no rows."""
    found = view.fetch_all(
        "SELECT seq, body, hash FROM ledger WHERE run = :run ORDER BY seq DESC LIMIT :most",
        run=escape_surrogates(run),
        most=MOST_ROWS,
    )
    if not found:
        return None
    rows = [_row_from_record(one) for one in reversed(found)]
    meanwhile = view.fetch_all(
        "SELECT seq, body, hash FROM ledger WHERE seq BETWEEN :first AND :last AND kind = 'transition'",
        first=rows[0].seq,
        last=rows[-1].seq,
    )
    whose = {row.fields.get("principal") for row in rows}
    choices = [
        row for row in map(_row_from_record, meanwhile) if _is_choice(row) and row.fields.get("principal") in whose
    ]
    notes = view.fetch_all(
        "SELECT seq, kind, text FROM notes WHERE run = :run ORDER BY number", run=escape_surrogates(run)
    )
    together = sorted([*rows, *choices], key=lambda row: row.seq)
    said = [Note(one["seq"], one["kind"], one["text"]) for one in notes]
    return build_summary(
        run, together, sorted([*said, *_notes_from_thoughts(view, run, rows)], key=lambda note: note.seq), upto
    )


def _notes_from_thoughts(view: View, run: str, rows: Sequence[Row]) -> Iterator[Note]:
    """The conclusions of thoughts (nothing else of them is kept), each attached to the call in progress at the time."""
    for one in view.fetch_all(
        "SELECT at, body FROM thoughts WHERE run = :run ORDER BY number", run=escape_surrogates(run)
    ):
        seq = max((row.seq for row in rows if row.at <= one["at"]), default=rows[0].seq)
        outcome = read_body(one["body"])
        for name, kind in OUTCOMES.items():
            if outcome.get(name):
                yield Note(seq, kind, str(outcome[name]))


def find_known_runs(view: View, principal: str | None = None) -> list[str]:
    """The most recently used runs, newest first; of one principal, or of all."""
    rows = view.fetch_all(
        "SELECT run, max(seq) AS last FROM ledger"
        " WHERE run IS NOT NULL AND seq > (SELECT max(seq) FROM ledger) - :among"
        " GROUP BY run ORDER BY last DESC LIMIT :most",
        among=AMONG_ROWS,
        most=HOW_MANY_RUNS * (1 if principal is None else 10),
    )
    found = [str(row["run"]) for row in rows]
    if principal is not None:
        found = [run for run in found if find_run_owner(view, run) == principal]
    return found[:HOW_MANY_RUNS]


def find_run_owner(view: View, run: str) -> str | None:
    """Return whose run it is, from the first row that says so."""
    row = view.fetch_one(
        "SELECT seq, body, hash FROM ledger WHERE run = :run ORDER BY seq LIMIT 1", run=escape_surrogates(run)
    )
    return None if row is None else str(_row_from_record(row).fields.get("principal") or "")


def _row_from_record(one: dict[str, Any]) -> Row:
    return Row(one["seq"], one["hash"], one["body"], read_body(one["body"]))


def _is_choice(row: Row) -> bool:
    return "profile" in get_transition_sides(row)[1]
