"""How is a row of the ledger said on one line?"""

from typing import TYPE_CHECKING, Any, cast

from mcp_server.cli.paper import when

if TYPE_CHECKING:
    from mcp_server.state import Row

COLOURS = {"refusal": "red", "alarm": "red", "question": "yellow", "problem": "yellow", "start": "dim", "stop": "dim"}


def in_short(row: "Row") -> list[str | tuple[str, str]]:
    """One row on one line: its number, when, what kind, which tool, and what came of it."""
    fields = row.fields
    parts = [str(fields[key]) for key in ("tool", "code") if fields.get(key)]
    match row.kind:
        case "outcome":
            said = f"of {fields.get('intent')}: {fields.get('ending')}, {fields.get('latency_us', 0) / 1000:.1f} ms"
        case "transition":
            said = f"{fields.get('reason', '')}: {changed(row)}"
        case "intent":
            said = f"in {fields.get('mode') or 'ROOT'}" + (
                f", allowed by {fields['rule']}" if fields.get("rule") else ""
            )
        case "record":
            steps = " -> ".join(str(fields[key]) for key in ("from", "to") if fields.get(key))
            said = f"{fields.get('record')} {fields.get('id')} {fields.get('event')}: {steps}"
        case "start" | "stop":
            said = f"process {str(fields.get('process')).partition('-')[0]} {fields.get('reason') or ''}".rstrip()
        case _:
            said = str(fields.get("reason") or "")
    name = COLOURS.get("problem" if fields.get("ending") == "problem" else row.kind, "")
    kind = f"{row.kind:<10}"
    return [
        (f"{row.seq:>6}  {when(row.at)}  ", "dim"),
        (kind, name) if name else kind,
        " ",
        f"{' '.join(parts)}{'  ' if parts else ''}{said}".replace("\n", " "),
    ]


def changed(row: "Row") -> str:
    """What is other than it was, of a session's place or of the posture."""
    before, after = (cast(dict[str, Any], row.fields.get(key) or {}) for key in ("from", "to"))
    keys = [key for key in after if before.get(key) != after[key] and key not in ("epoch", "run")]
    nothing = {"mode": "ROOT"}
    steps = [(key, *(one.get(key) or nothing.get(key, "none") for one in (before, after))) for key in keys]
    return ", ".join(f"{key} {old} -> {new}" for key, old, new in steps) or "a new run"
