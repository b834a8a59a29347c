"""Is this text a valid thought, and what is kept of it? The opening thought has six headings, later ones a few points.

The text itself is dropped; only its outcome is kept, four short lines that take little room in a context.
"""

import re

from msgspec import Struct

from mcp_server.model.text import format_count
from mcp_server.policy.stages import StageDuty

HEADINGS = ("Analyze", "Research", "Plan", "Reflect", "Action", "Delivery")
MIN_POINTS, MAX_POINTS = 3, 8
MIN_CONCRETE = 2
MIN_CHARS = 6
"""A shorter part is filler."""
MAX_LINE = 240
HOLLOW = re.compile(r"[\s.\u2026_-]*|n/?a\.?|none\.?|nil\.?|tbd\.?|todo\.?", re.IGNORECASE)
HEADING = re.compile(
    rf"^[\s#>*_\d.)-]*({'|'.join(HEADINGS)})\b[*_]*\s*(?::|-|\u2013|$)[*_]*", re.IGNORECASE | re.MULTILINE
)
POINT = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+(.*)$", re.MULTILINE)
LABEL = re.compile(r"^[*_]*(plan|next|action|risks?|delivery)\b[^:]{0,20}:[*_]*\s*", re.IGNORECASE)
NOT_DONE, DONE = "needs_work", "done"


class ReasoningOutcome(Struct, frozen=True):
    plan_delta: str = ""
    next_action: str = ""
    known_risks: str = ""
    delivery_state: str = NOT_DONE


def parse_thought(text: str, duty: StageDuty) -> ReasoningOutcome | str:
    """Return what is kept of it, or say what it lacks."""
    match duty:
        case StageDuty.MACRO:
            return _parse_opening_thought(text)
        case StageDuty.MICRO:
            return _parse_step_thought(text)
        case StageDuty.NONE:
            return ReasoningOutcome()


def _parse_opening_thought(text: str) -> ReasoningOutcome | str:
    parts = split_sections(text)
    if missing := [name for name in HEADINGS if name not in parts]:
        return f"the headings {', '.join(missing)} are missing"
    concrete = [name for name in HEADINGS if _is_concrete(parts[name])]
    if len(concrete) < MIN_CONCRETE:
        return f"only {len(concrete)} of the six parts say anything; at least {MIN_CONCRETE} must"
    return ReasoningOutcome(
        plan_delta=_shorten_line(parts["Plan"]),
        next_action=_shorten_line(parts["Action"]),
        known_risks=_shorten_line(parts["Reflect"]),
        delivery_state=_parse_delivery_state(parts["Delivery"]),
    )


def _parse_step_thought(text: str) -> ReasoningOutcome | str:
    points = [match[1].strip() for match in POINT.finditer(text)]
    if not MIN_POINTS <= len(points) <= MAX_POINTS:
        needed = f"{MIN_POINTS} to {MAX_POINTS}, each on a line starting with `- `"
        return f"it has {format_count(len(points), 'point')} and needs {needed}"
    concrete = sum(map(_is_concrete, points))
    if concrete < MIN_CONCRETE:
        return f"only {concrete} of its points say anything; at least {MIN_CONCRETE} must"
    labelled = {label[1].lower().rstrip("s"): LABEL.sub("", point) for point in points if (label := LABEL.match(point))}
    return ReasoningOutcome(
        plan_delta=_shorten_line(labelled.get("plan", "")),
        next_action=_shorten_line(labelled.get("next", labelled.get("action", points[1]))),
        known_risks=_shorten_line(labelled.get("risk", "")),
        delivery_state=_parse_delivery_state(labelled.get("delivery", "")),
    )


def split_sections(text: str) -> dict[str, str]:
    """Return the text under each heading; a repeated heading adds to the first."""
    sections: dict[str, str] = {}
    marks = list(HEADING.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        name = mark[1].capitalize()
        body = text[mark.end() : end].strip()
        sections[name] = f"{sections[name]} {body}".strip() if name in sections else body
    return sections


def _is_concrete(text: str) -> bool:
    return len(text) >= MIN_CHARS and not HOLLOW.fullmatch(text)


def _parse_delivery_state(text: str) -> str:
    """Return DONE only if the text says so and nothing to the contrary."""
    words = text.upper().replace(" ", "_").replace("-", "_")
    return DONE if "DONE" in words and "NEEDS_WORK" not in words and "NOT_DONE" not in words else NOT_DONE


def _shorten_line(text: str) -> str:
    line = "" if HOLLOW.fullmatch(text) else " ".join(text.split())
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "\u2026"
