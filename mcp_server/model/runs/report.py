"""What was found when a run was over? Advice to whoever reads it; it changes nothing, the answer least of all."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    run: str
    principal: str
    session: str
    status: str
    """What the run said of itself: success, partial or failure."""
    summary: str
    issues: tuple[str, ...] = ()
    missing_steps: tuple[str, ...] = ()
    suggested_next_actions: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    """What could not be looked at, and why."""
    at: int = 0

    def as_text(self) -> str:
        parts = [
            ("Summary", (self.summary,)),
            ("Issues", self.issues),
            ("Missing steps", self.missing_steps),
            ("Suggested next actions", self.suggested_next_actions),
        ]
        if self.unchecked:
            parts.append(("Not checked", self.unchecked))
        lines = {title: "\n".join(f"- {one}" for one in said or ("none",)) for title, said in parts}
        return "\n".join(f"## {title}\n\n{said}\n" for title, said in lines.items())


def report_of(found: Mapping[str, Any]) -> Report:
    """The report that was written down."""
    values: dict[str, Any] = {one.name: found[one.name] for one in fields(Report) if one.name in found}
    for name in ("issues", "missing_steps", "suggested_next_actions", "unchecked"):
        values[name] = tuple(str(one) for one in values.get(name, ()))
    return Report(**values)
