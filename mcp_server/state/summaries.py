"""What is worth knowing of a run once its beginning is forgotten? Goals, decisions, plan, open issues, outputs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from msgspec import Struct

from mcp_server.model.text import escape_for_model, shorten_to_line
from mcp_server.state.engine.rows import LET_GO, Row
from mcp_server.state.engine.transaction import View
from mcp_server.state.verify import read_body, row_from_record

# How is a summary written? Purely from rows and notes: the same ones give the same bytes on every machine, so times are
# in UTC and no sorting depends on the locale. Reasoning is not included, because it is never stored.

MAX_LINES = 20
MAX_LINE_CHARS = 400
HEADINGS = {
    "goals": "Goals",
    "decisions": "Decisions",
    "plan": "Current plan",
    "issues": "Open issues",
    "outputs": "Important outputs",
}
EMPTY_SECTIONS = {
    "goals": "None stated.",
    "decisions": "None recorded.",
    "plan": "None stated.",
    "issues": "None.",
    "outputs": "None yet.",
}
NOTES_DROPPED = "No longer known: notes of a run are deleted after 30 days."
"""Stands in for every empty section of a run that once had notes."""
KINDS = ("goal", "decision", "plan", "issue", "file", "message", "answer")


class Note(Struct, frozen=True):
    """What a tool notes about a call, such as a goal, or the file that the call changed."""

    seq: int
    kind: str
    text: str


class Summary(Struct, frozen=True):
    run: str
    principal: str
    facts: Mapping[str, Any]
    sections: Mapping[str, tuple[str, ...]]
    let_go: bool = False
    """True if some of the run's notes were deleted."""

    @property
    def text(self) -> str:
        """The summary as Markdown."""
        facts = "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in self.facts.items())
        parts = [f"# Summary of run {self.run}", facts]
        for key, heading in HEADINGS.items():
            lines = self.sections[key] or (NOTES_DROPPED if self.let_go else EMPTY_SECTIONS[key],)
            parts.append(f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines))
        return "\n\n".join(parts) + "\n"

    @property
    def data(self) -> dict[str, Any]:
        return {"run": self.run, "principal": self.principal, "facts": dict(self.facts), "let_go": self.let_go} | {
            key: list(lines) for key, lines in self.sections.items()
        }


@dataclass(slots=True)
class _RunRows:
    """The rows of a run, by what they record."""

    calls: dict[int, Row] = field(default_factory=dict[int, Row])
    outcomes: dict[int, Row] = field(default_factory=dict[int, Row])
    """By the call they belong to."""
    refusals: list[Row] = field(default_factory=list[Row])
    transitions: list[Row] = field(default_factory=list[Row])
    choices: list[Row] = field(default_factory=list[Row])

    def add_row(self, row: Row) -> None:
        match row.kind:
            case "intent":
                self.calls[row.seq] = row
            case "outcome":
                self.outcomes[int(row.fields.get("intent") or 0)] = row
            case "refusal" | "question":
                self.refusals.append(row)
            case "transition" if _is_posture_choice(row):
                self.choices.append(row)
            case "transition" | "delivery":
                self.transitions.append(row)
            case _:
                pass

    def get_ending(self, intent: int) -> str:
        return str(self.outcomes[intent].fields.get("ending")) if intent in self.outcomes else "unknown"


def build_summary(run: str, rows: Sequence[Row], notes: Sequence[Note], upto: int | None = None) -> Summary:
    """`rows`: those of the run, and the user's choices in the meantime. `upto`: the last call that counts."""
    events = _RunRows()
    for row in rows:
        call = int(row.fields.get("intent") or row.seq) if row.kind == "outcome" else row.seq
        if upto is None or call <= upto:
            events.add_row(row)
    noted: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for note in notes:
        if (upto is None or note.seq <= upto) and note.kind in noted:
            noted[note.kind].append(note.text)
    sections = {
        "goals": noted["goal"],
        "decisions": [*_describe_decisions(events), *noted["decision"]],
        "plan": noted["plan"][-1:] or list(_describe_standing(events)),
        "issues": [*_describe_issues(events), *noted["issue"]],
        "outputs": list(_describe_outputs(events, noted)),
    }
    let_go = any(note.kind == LET_GO for note in notes)
    return Summary(
        run,
        _find_principal(rows),
        _build_facts(events),
        {key: _limit_lines(lines) for key, lines in sections.items()},
        let_go,
    )


def _find_principal(rows: Iterable[Row]) -> str:
    return next((str(row.fields["principal"]) for row in rows if row.fields.get("principal")), "")


def _limit_lines(lines: Iterable[str]) -> tuple[str, ...]:
    # Drop repeated lines and keep the newest; the text says how many are left out.
    distinct = list(dict.fromkeys(shorten_to_line(escape_for_model(line), MAX_LINE_CHARS) for line in lines))
    left_out = len(distinct) - MAX_LINES
    return tuple(distinct) if left_out <= 0 else (f"({left_out} earlier ones left out)", *distinct[left_out:])


def _build_facts(events: _RunRows) -> dict[str, Any]:
    rows = [*events.calls.values(), *events.outcomes.values(), *events.refusals, *events.transitions]
    if not rows:
        return {"calls": 0}
    endings = Counter(events.get_ending(seq) for seq in events.calls)
    first = min(rows, key=lambda row: row.seq)
    return {
        "session": str(first.fields.get("session") or ""),
        "from": _format_time(first.at),
        "to": _format_time(max(row.at for row in rows)),
        "calls": len(events.calls),
        "done": endings["done"],
        "failed": endings["problem"],
        "refused": len(events.refusals),
        "rows": f"{first.seq} to {max(row.seq for row in rows)}",
    }


def _format_time(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _describe_decisions(events: _RunRows) -> Iterator[str]:
    for row in sorted([*events.transitions, *events.choices], key=lambda row: row.seq):
        before, after = get_transition_sides(row)
        if row.kind == "delivery":
            yield f"Delivered as {row.fields.get('status')}."
        elif "profile" in after:
            changed = [f"{axis} {after[axis]}" for axis in after if axis != "epoch" and before.get(axis) != after[axis]]
            yield f"The user chose {', '.join(changed) or 'nothing new'}."
        elif before.get("mode") != after.get("mode"):
            yield f"Went from {_format_place(before)} to {_format_place(after)}."
        elif before.get("run") != after.get("run"):
            yield f"Ended the run: {row.fields.get('reason')}."


def get_transition_sides(row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state before a transition, and after."""
    before, after = row.fields.get("from"), row.fields.get("to")
    return (
        cast(dict[str, Any], before) if isinstance(before, dict) else {},
        cast(dict[str, Any], after) if isinstance(after, dict) else {},
    )


def _format_place(side: Mapping[str, Any]) -> str:
    return f"`{side['mode']}`" if side.get("mode") else "ROOT"


def _describe_standing(events: _RunRows) -> Iterator[str]:
    """Say where the run is and what it did last, for a run without a stated plan."""
    if not events.calls:
        return
    last = events.calls[max(events.calls)]
    place = f"mode `{last.fields['mode']}`" if last.fields.get("mode") else "ROOT"
    ending = {"unknown": "has not ended yet"}.get(
        events.get_ending(last.seq), f"ended as {events.get_ending(last.seq)}"
    )
    yield f"In {place}, stage {last.fields.get('stage')}; the last call, `{last.fields.get('tool')}`, {ending}."


def _describe_issues(events: _RunRows) -> Iterator[str]:
    """Describe calls that failed and did not succeed later."""
    last_success = {
        _get_call_key(row): row.seq for seq, row in events.calls.items() if events.get_ending(seq) == "done"
    }  # the last time this very call succeeded
    issues: Counter[str] = Counter()
    for row in events.refusals:
        if last_success.get(_get_call_key(row), 0) < row.seq:
            verb = "needs the user's approval" if row.kind == "question" else "was refused"
            why = row.fields.get("reason") or "no reason recorded"
            issues[f"`{row.fields.get('tool')}` {verb} ({row.fields.get('code')}): {why}"] += 1
    for seq, row in events.calls.items():
        if last_success.get(_get_call_key(row), 0) >= seq:
            continue
        ending = events.get_ending(seq)
        if ending == "unknown":
            issues[f"`{row.fields.get('tool')}` has no recorded outcome"] += 1
        elif ending != "done":
            issues[f"`{row.fields.get('tool')}` failed ({events.outcomes[seq].fields.get('code') or ending})"] += 1
    for line, times in issues.items():
        yield line if times == 1 else f"{line} ({times} times)"


def _get_call_key(row: Row) -> tuple[object, object]:
    return row.fields.get("tool"), row.fields.get("arguments_sha256")


def _describe_outputs(events: _RunRows, noted: Mapping[str, Sequence[str]]) -> Iterator[str]:
    # A file changed twice is listed where it was last changed.
    for path in reversed(dict.fromkeys(reversed(noted["file"]))):
        yield f"Changed `{path}`."
    sizes: dict[str, list[int]] = {}
    for seq, row in events.calls.items():
        if events.get_ending(seq) == "done":
            size = int(events.outcomes[seq].fields.get("shown_bytes") or 0)
            sizes.setdefault(str(row.fields.get("tool")), []).append(size)
    for tool in sorted(sizes):
        times = len(sizes[tool])
        yield f"`{tool}` ran {'once' if times == 1 else f'{times} times'} and showed {sum(sizes[tool]):,} characters."
    for message in noted["message"]:
        yield f"Messaged the user: {message}"
    for answer in noted["answer"]:
        yield f"Final answer: {answer}"


# Which rows and notes belong to a run?

MAX_RUNS = 100
SEARCHED_ROWS = 200_000
NOTE_KINDS = {"plan_delta": "decision", "next_action": "plan", "known_risks": "issue"}
MAX_ROWS = 20_000
"""Of a longer run, only the newest rows are read."""


def build_run_summary(view: View, run: str, upto: int | None = None) -> Summary | None:
    """Summarise a run; None if it has no rows."""
    records = view.fetch_all(
        "SELECT seq, body, hash FROM ledger WHERE run = :run ORDER BY seq DESC LIMIT :most",
        run=escape_for_model(run),
        most=MAX_ROWS,
    )
    if not records:
        return None
    rows = [row_from_record(record) for record in reversed(records)]
    meanwhile = view.fetch_all(
        "SELECT seq, body, hash FROM ledger WHERE seq BETWEEN :first AND :last AND kind = 'transition'",
        first=rows[0].seq,
        last=rows[-1].seq,
    )
    principals = {row.fields.get("principal") for row in rows}
    choices = [
        row
        for row in map(row_from_record, meanwhile)
        if _is_posture_choice(row) and row.fields.get("principal") in principals
    ]
    notes = view.fetch_all(
        "SELECT seq, kind, text FROM notes WHERE run = :run ORDER BY number", run=escape_for_model(run)
    )
    timeline = sorted([*rows, *choices], key=lambda row: row.seq)
    run_notes = [Note(record["seq"], record["kind"], record["text"]) for record in notes]
    return build_summary(
        run, timeline, sorted([*run_notes, *_notes_from_thoughts(view, run, rows)], key=lambda note: note.seq), upto
    )


def _notes_from_thoughts(view: View, run: str, rows: Sequence[Row]) -> Iterator[Note]:
    """Yield the conclusions of thoughts, all that is kept of them, each with the call in progress at the time."""
    for thought in view.fetch_all(
        "SELECT at, body FROM thoughts WHERE run = :run ORDER BY number", run=escape_for_model(run)
    ):
        seq = max((row.seq for row in rows if row.at <= thought["at"]), default=rows[0].seq)
        outcome = read_body(thought["body"])
        for name, kind in NOTE_KINDS.items():
            if outcome.get(name):
                yield Note(seq, kind, str(outcome[name]))


def find_known_runs(view: View, principal: str | None = None) -> list[str]:
    """Find the most recently used runs of one principal, or of all; newest first."""
    rows = view.fetch_all(
        "SELECT run, max(seq) AS last FROM ledger"
        " WHERE run IS NOT NULL AND seq > (SELECT max(seq) FROM ledger) - :among"
        " GROUP BY run ORDER BY last DESC LIMIT :most",
        among=SEARCHED_ROWS,
        most=MAX_RUNS * (1 if principal is None else 10),
    )
    runs = [str(row["run"]) for row in rows]
    if principal is not None:
        runs = [run for run in runs if find_run_owner(view, run) == principal]
    return runs[:MAX_RUNS]


def find_run_owner(view: View, run: str) -> str | None:
    """Return the principal of the run's first row; None if there is no such run."""
    row = view.fetch_one("SELECT body FROM ledger WHERE run = :run ORDER BY seq LIMIT 1", run=escape_for_model(run))
    return None if row is None else str(read_body(row["body"]).get("principal") or "")


def _is_posture_choice(row: Row) -> bool:
    return "profile" in get_transition_sides(row)[1]
