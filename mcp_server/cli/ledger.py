"""How are rows of the ledger selected, and shown as text or JSON?"""

import argparse
import json
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcp_server.cli.badge import describe_transition
from mcp_server.cli.output import KINDS, print_table, say
from mcp_server.model.policy import Layer, Verdict
from mcp_server.model.posture import Stage
from mcp_server.model.text import format_count
from mcp_server.views.glances import restore_words
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.state.engine.rows import LedgerFilter, Row
    from mcp_server.state.reader import Reader


# The filters that `tail` and `export` share.

FOREVER = 2**63 - 1
"""The latest time that fits in the ledger."""
AGE = re.compile(r"(\d{1,6})\s*(s|m|h|d|w)")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
WORDS = {
    "tool": ("TOOL", "only calls of this tool"),
    "mode": ("MODE", "only calls in this mode"),
    "code": ("CODE", "only calls that ended with this code, such as WRONG_MODE"),
    "rule": ("RULE", "only calls that this rule decided; write it as in the file"),
    "principal": ("WHO", "only calls of this principal"),
    "session": ("ID", "only this session"),
    "run": ("ID", "only this run"),
}
CHOICES = {
    "verdict": (tuple(map(str, Verdict)), "only calls with this answer"),
    "layer": (tuple(map(str, Layer)), "only calls that this layer decided"),
    "stage": (tuple(map(str, Stage)), "only calls in this stage of a run"),
}
WHEN = "10m, 2h, 3d, or 2026-11-18 12:00"


def add_filters(command: argparse.ArgumentParser) -> None:
    """Add the filters. A row must pass all of them; an outcome is matched by the fields of its call."""
    for name, (metavar, purpose) in WORDS.items():
        command.add_argument(f"--{name}", dest=f"of_{name}", metavar=metavar, help=purpose)
    for name, (choices, purpose) in CHOICES.items():
        command.add_argument(f"--{name}", dest=f"of_{name}", choices=choices, help=purpose)
    command.add_argument("--since", type=parse_moment, metavar="WHEN", help=f"only rows since this time: {WHEN}")
    command.add_argument(
        "--until", type=parse_moment, metavar="WHEN", help="only rows before this time, in the same format"
    )
    command.add_argument("--kind", action="append", choices=KINDS, help="only rows of this kind; can be repeated")


def parse_whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not a whole number")
    return int(text)


def parse_moment(text: str) -> int:
    """Parse a time to nanoseconds: an age such as `2h`, or a date with or without a time."""
    if age := AGE.fullmatch(text.strip()):
        return time.time_ns() - int(age[1]) * SECONDS[age[2]] * 10**9
    try:
        return min(int(datetime.fromisoformat(text).astimezone().timestamp() * 10**9), FOREVER)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not a time; write {WHEN}") from None


def build_ledger_filter(arguments: argparse.Namespace, tail: int | None = None) -> "LedgerFilter":
    from mcp_server.state.engine.rows import LedgerFilter

    fields = {name: getattr(arguments, f"of_{name}") for name in (*WORDS, *CHOICES)}
    return LedgerFilter(
        **fields,
        since_ns=arguments.since,
        until_ns=arguments.until,
        kinds=tuple(arguments.kind or ()),
        tail=tail,
    )


# How a row is shown to a person, and to a program.

BY_COLOUR = {
    "red": ("refusal", "attempt", "alarm", "health"),
    "yellow": ("question", "problem", "segment"),
    "dim": ("start", "stop"),
}
COLOURS = {kind: colour for colour, kinds in BY_COLOUR.items() for kind in kinds}


def format_short_row(row: "Row", glance: str = "") -> list[str | tuple[str, str]]:
    """Format a row on one line: number, time, kind, the call or at least its tool, and what happened."""
    fields = row.fields
    parts = [str(text) for text in (glance or fields.get("tool"), fields.get("code")) if text]
    name = COLOURS.get("problem" if fields.get("ending") == "problem" else row.kind, "")
    kind = f"{row.kind:<10}"
    said = restore_words(_describe_row(row), glance)
    return [
        (f"{row.seq:>6}  {format_time(row.at)}  ", "dim"),
        (kind, name) if name else kind,
        " ",
        f"{' '.join(parts)}{'  ' if parts else ''}{said}".replace("\n", " "),
    ]


def _describe_row(row: "Row") -> str:
    fields = row.fields
    match row.kind:
        case "outcome":
            return f"of {fields.get('intent')}: {fields.get('ending')}, {fields.get('latency_us', 0) / 1000:.1f} ms"
        case "transition":
            return f"{fields.get('reason', '')}: {describe_transition(fields)}"
        case "intent":
            return f"in {fields.get('mode') or 'ROOT'}" + (
                f", allowed by {fields['rule']}" if fields.get("rule") else ""
            )
        case "record":
            steps = " -> ".join(str(fields[key]) for key in ("from", "to") if fields.get(key))
            return f"{fields.get('record')} {fields.get('id')} {fields.get('event')}: {steps}"
        case "summary":
            count = format_count(int(fields.get("messages") or 0), "message")
            return f"of run {fields.get('run')}: {count} in {fields.get('bytes')} bytes"
        case "trust":
            what = f"the server {fields['upstream']} in " if fields.get("upstream") else ""
            return f"{what}{fields.get('folder')} {'is trusted' if fields.get('trusted') else 'is no longer trusted'}"
        case "start" | "stop":
            return f"process {str(fields.get('process')).partition('-')[0]} {fields.get('reason') or ''}".rstrip()
        case "question" | "answer" | "redeemed":
            return ": ".join(str(fields[key]) for key in ("question", "reason") if fields.get(key))
        case _:
            return str(fields.get("reason") or "")


def find_partner_row(state: "Reader", row: "Row") -> "Row | None":
    """Find the outcome of an intent, or the intent of an outcome."""
    from mcp_server.state.engine.rows import LedgerFilter

    if row.kind == "outcome":
        intent = row.fields.get("intent")
        return state.find_row(intent) if isinstance(intent, int) else None
    if row.kind != "intent":
        return None
    outcomes = state.read_rows(LedgerFilter(session=row.fields.get("session"), kinds=("outcome",)), after=row.seq)
    return next((outcome for outcome in outcomes if outcome.fields.get("intent") == row.seq), None)


def show_row(row: "Row", glance: str = "") -> None:
    say((f"{row.kind} {row.seq}", "bold"), f"  {format_time(row.at)}")
    rows = [("  glance", glance)] * bool(glance)
    rows += [
        (f"  {key}", value if isinstance(value, str) else json.dumps(value))
        for key, value in row.fields.items()
        if key not in ("kind", "at")
    ]
    print_table([*rows, ("  hash", row.hash)])


def row_to_json(row: "Row", glance: str = "") -> dict[str, Any]:
    """Return the row, with the line about its call if one is known. An export is made without."""
    return {"seq": row.seq, "hash": row.hash, **row.fields, **({"glance": glance} if glance else {})}


def format_json_line(row: "Row", glance: str = "") -> str:
    return json.dumps(row_to_json(row, glance))
