"""How is a row of the ledger said on one line?"""

from typing import TYPE_CHECKING

from mcp_server.cli.paper import when
from mcp_server.cli.posture.shown import transition

if TYPE_CHECKING:
    from mcp_server.state import Row

BY_COLOUR = {"red": ("refusal", "alarm", "health"), "yellow": ("question", "problem"), "dim": ("start", "stop")}
COLOURS = {kind: colour for colour, kinds in BY_COLOUR.items() for kind in kinds}


def in_short(row: "Row") -> list[str | tuple[str, str]]:
    """One row on one line: its number, when, what kind, which tool, and what came of it."""
    fields = row.fields
    parts = [str(fields[key]) for key in ("tool", "code") if fields.get(key)]
    match row.kind:
        case "outcome":
            said = f"of {fields.get('intent')}: {fields.get('ending')}, {fields.get('latency_us', 0) / 1000:.1f} ms"
        case "transition":
            said = f"{fields.get('reason', '')}: {transition(fields)}"
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
