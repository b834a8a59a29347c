"""What was found when everything was looked through, and is it in order?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    GOOD = "good"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class HealthFinding:
    what: str
    says: str
    grade: Grade = Grade.GOOD
    cure: str = ""
    """What mends it, in words; empty where nothing is certain to."""
    mend: Callable[[], object] | None = None
    commands: tuple[str, ...] = ()
    """What the person types, line by line, for what only they can mend."""


def list_faults(findings: Sequence[HealthFinding]) -> list[HealthFinding]:
    return [one for one in findings if one.grade is Grade.FAULT]


def format_verdict(findings: Sequence[HealthFinding]) -> str:
    ill, lines = len(list_faults(findings)), [line for one in findings for line in one.commands]
    says = f"Not in order: {ill} fault{'s' * (ill > 1)}." if ill else "In order."
    if not lines:
        return says
    says = says if ill else "In order, but the posture is narrowed."
    return "\n".join((f"{says} For what is usual here, type at a terminal, one after another:", *lines))
