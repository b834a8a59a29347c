"""How is a row of the ledger said to a person, and to a program?"""

import json
from typing import TYPE_CHECKING, Any

from mcp_server.cli.badge import transition
from mcp_server.cli.output import say, table, when

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import Row
    from mcp_server.state.reader import Reader

BY_COLOUR = {
    "red": ("refusal", "attempt", "alarm", "health"),
    "yellow": ("question", "problem", "segment"),
    "dim": ("start", "stop"),
}
COLOURS = {kind: colour for colour, kinds in BY_COLOUR.items() for kind in kinds}


def in_short(row: "Row") -> list[str | tuple[str, str]]:
    """One row on one line: its number, when, what kind, which tool, and what came of it."""
    fields = row.fields
    parts = [str(fields[key]) for key in ("tool", "code") if fields.get(key)]
    name = COLOURS.get("problem" if fields.get("ending") == "problem" else row.kind, "")
    kind = f"{row.kind:<10}"
    return [
        (f"{row.seq:>6}  {when(row.at)}  ", "dim"),
        (kind, name) if name else kind,
        " ",
        f"{' '.join(parts)}{'  ' if parts else ''}{_said(row)}".replace("\n", " "),
    ]


def _said(row: "Row") -> str:
    fields = row.fields
    match row.kind:
        case "outcome":
            return f"of {fields.get('intent')}: {fields.get('ending')}, {fields.get('latency_us', 0) / 1000:.1f} ms"
        case "transition":
            return f"{fields.get('reason', '')}: {transition(fields)}"
        case "intent":
            return f"in {fields.get('mode') or 'ROOT'}" + (
                f", allowed by {fields['rule']}" if fields.get("rule") else ""
            )
        case "record":
            steps = " -> ".join(str(fields[key]) for key in ("from", "to") if fields.get(key))
            return f"{fields.get('record')} {fields.get('id')} {fields.get('event')}: {steps}"
        case "summary":
            return f"of run {fields.get('run')}: {fields.get('messages')} messages in {fields.get('bytes')} bytes"
        case "trust":
            return f"{fields.get('folder')} {'is trusted' if fields.get('trusted') else 'is not trusted any more'}"
        case "start" | "stop":
            return f"process {str(fields.get('process')).partition('-')[0]} {fields.get('reason') or ''}".rstrip()
        case _:
            return str(fields.get("reason") or "")


def partner(state: "Reader", row: "Row") -> "Row | None":
    """The outcome of an intent, the intent of an outcome."""
    from mcp_server.state.engine.rows import LedgerFilter

    if row.kind == "outcome":
        intent = row.fields.get("intent")
        return state.row(intent) if isinstance(intent, int) else None
    if row.kind != "intent":
        return None
    outcomes = state.rows(LedgerFilter(session=row.fields.get("session"), kinds=("outcome",)), after=row.seq)
    return next((one for one in outcomes if one.fields.get("intent") == row.seq), None)


def tell(row: "Row") -> None:
    say((f"{row.kind} {row.seq}", "bold"), f"  {when(row.at)}")
    rows = [
        (f"  {key}", value if isinstance(value, str) else json.dumps(value))
        for key, value in row.fields.items()
        if key not in ("kind", "at")
    ]
    table([*rows, ("  hash", row.hash)])


def flat(row: "Row") -> dict[str, Any]:
    return {"seq": row.seq, "hash": row.hash, **row.fields}


def line_of(row: "Row") -> str:
    return json.dumps(flat(row))
