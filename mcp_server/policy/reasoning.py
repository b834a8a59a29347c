"""Is this a thought, and what of it is kept? The opening one has six headings, those between steps a few points.

The text itself is dropped: what is kept is the outcome, four short lines that pollute nobody's context.
"""

import re
from dataclasses import dataclass

from mcp_server.policy.stages import StageDuty

HEADINGS = ("Analyze", "Research", "Plan", "Reflect", "Action", "Delivery")
FEWEST_POINTS, MOST_POINTS = 3, 8
FEWEST_CONCRETE = 2
SHORTEST = 6
"""Characters from which on something is said and not merely filled in."""
LONGEST_KEPT = 240
HOLLOW = re.compile(r"[\s.\u2026_-]*|n/?a\.?|none\.?|nil\.?|tbd\.?|todo\.?", re.IGNORECASE)
HEADING = re.compile(
    rf"^[\s#>*_\d.)-]*({'|'.join(HEADINGS)})\b[*_]*\s*(?::|-|\u2013|$)[*_]*", re.IGNORECASE | re.MULTILINE
)
POINT = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+(.*)$", re.MULTILINE)
LABEL = re.compile(r"^[*_]*(plan|next|action|risks?|delivery)\b[^:]{0,20}:[*_]*\s*", re.IGNORECASE)
NOT_DONE, DONE = "needs_work", "done"


@dataclass(frozen=True, slots=True)
class ReasoningOutcome:
    plan_delta: str = ""
    next_action: str = ""
    known_risks: str = ""
    delivery_state: str = NOT_DONE


def parse_thought(text: str, duty: StageDuty) -> ReasoningOutcome | str:
    """What is kept of it, or what it lacks, in words for whoever thought it."""
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
    if len(concrete) < FEWEST_CONCRETE:
        return f"only {len(concrete)} of the six parts say anything; at least {FEWEST_CONCRETE} have to"
    return ReasoningOutcome(
        plan_delta=_shorten_line(parts["Plan"]),
        next_action=_shorten_line(parts["Action"]),
        known_risks=_shorten_line(parts["Reflect"]),
        delivery_state=_parse_delivery_state(parts["Delivery"]),
    )


def _parse_step_thought(text: str) -> ReasoningOutcome | str:
    points = [found[1].strip() for found in POINT.finditer(text)]
    if not FEWEST_POINTS <= len(points) <= MOST_POINTS:
        wanted = f"{FEWEST_POINTS} to {MOST_POINTS} are asked for, each on a line beginning with `- `"
        return f"it has {len(points)} points, where {wanted}"
    concrete = sum(map(_is_concrete, points))
    if concrete < FEWEST_CONCRETE:
        return f"only {concrete} of its points say anything; at least {FEWEST_CONCRETE} have to"
    labelled = {found[1].lower().rstrip("s"): LABEL.sub("", point) for point in points if (found := LABEL.match(point))}
    return ReasoningOutcome(
        plan_delta=_shorten_line(labelled.get("plan", "")),
        next_action=_shorten_line(labelled.get("next", labelled.get("action", points[1]))),
        known_risks=_shorten_line(labelled.get("risk", "")),
        delivery_state=_parse_delivery_state(labelled.get("delivery", "")),
    )


def split_sections(text: str) -> dict[str, str]:
    """What stands under each heading; a heading that comes again adds to the first."""
    found: dict[str, str] = {}
    marks = list(HEADING.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        name = mark[1].capitalize()
        said = text[mark.end() : end].strip()
        found[name] = f"{found[name]} {said}".strip() if name in found else said
    return found


def _is_concrete(said: str) -> bool:
    return len(said) >= SHORTEST and not HOLLOW.fullmatch(said)


def _parse_delivery_state(said: str) -> str:
    """Needing work wins over being done, and so does saying neither."""
    words = said.upper().replace(" ", "_").replace("-", "_")
    return DONE if "DONE" in words and "NEEDS_WORK" not in words and "NOT_DONE" not in words else NOT_DONE


def _shorten_line(said: str) -> str:
    line = "" if HOLLOW.fullmatch(said) else " ".join(said.split())
    return line if len(line) <= LONGEST_KEPT else line[: LONGEST_KEPT - 1] + "\u2026"
