"""What did the health check find, and is everything in order?"""

from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from mcp_server.model.text import format_count


class Grade(StrEnum):
    GOOD = "good"
    NOTE = "note"
    FAULT = "fault"


class HealthFinding(Struct, frozen=True):
    what: str
    says: str
    grade: Grade = Grade.GOOD
    cure: str = ""
    """How to fix it, in words; empty if there is no sure way."""
    mend: Callable[[], object] | None = None
    commands: tuple[str, ...] = ()
    """Commands that fix it and that only the person may type."""
    isolated: bool = False
    """The fault is no reason to change how menugate works: what has it is left out, and the rest is in order."""


def list_faults(findings: Sequence[HealthFinding]) -> list[HealthFinding]:
    return [one for one in findings if one.grade is Grade.FAULT]


def list_general_faults(findings: Sequence[HealthFinding]) -> list[HealthFinding]:
    """List the faults that menugate responds to, as the operator set it."""
    return [one for one in list_faults(findings) if not one.isolated]


def format_verdict(findings: Sequence[HealthFinding]) -> str:
    faults = len(list_faults(findings))
    commands = [command for finding in findings for command in finding.commands]
    verdict = f"Found {format_count(faults, 'fault')}." if faults else "Everything is in order."
    if not commands:
        return verdict
    verdict = verdict if faults else "Everything is in order, but the posture is narrowed."
    return "\n".join((f"{verdict} To restore your usual settings, run these commands at a terminal:", *commands))
