"""What was found when a run was over? Advice to whoever reads it; it changes nothing, the answer least of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

# Where does a client read what a run came to?

LATEST = "latest"
"""Stands for the run that was used last."""


REPORT_ADDRESS = "menugate://report"
"""Of the newest report."""


def format_report_address(run: str) -> str:
    return f"{REPORT_ADDRESS}/{run}"


def format_summary_address(run: str) -> str:
    return f"menugate://run/{run}/summary"


LISTS = ("issues", "missing_steps", "suggested_next_actions")
"""The parts of a report that are lists, whoever looked."""


@dataclass(frozen=True, slots=True)
class AdviserOpinion:
    """What a model said that was asked. Nobody checked it, and it may repeat what somebody wrote into the run."""

    model: str
    place: str
    sent: int
    """So many bytes went there."""
    answered: bool = False
    summary: str = ""
    issues: tuple[str, ...] = ()
    missing_steps: tuple[str, ...] = ()
    suggested_next_actions: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Each says of itself what it is, wherever it is read."""
        return (
            *([f"summary: {self.summary}"] if self.summary else []),
            *(f"issue: {one}" for one in self.issues),
            *(f"missing step: {one}" for one in self.missing_steps),
            *(f"suggested next action: {one}" for one in self.suggested_next_actions),
        )


@dataclass(frozen=True, slots=True)
class RunReport:
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
    opinion: AdviserOpinion | None = None
    """None where no model was asked."""
    at: int = 0

    def format_text(self) -> str:
        parts = [
            ("Summary", (self.summary,)),
            ("Issues", self.issues),
            ("Missing steps", self.missing_steps),
            ("Suggested next actions", self.suggested_next_actions),
        ]
        if self.unchecked:
            parts.append(("Not checked", self.unchecked))
        if self.opinion and self.opinion.answered:
            parts.append((f"A model's words, checked by nobody ({self.opinion.model})", self.opinion.lines))
        lines = {title: "\n".join(f"- {one}" for one in said or ("none",)) for title, said in parts}
        return "\n".join(f"## {title}\n\n{said}\n" for title, said in lines.items())


def parse_report(found: Mapping[str, Any]) -> RunReport:
    """The report that was written down."""
    values = _parse_fields(RunReport, found, (*LISTS, "unchecked"))
    said = values.pop("opinion", None)
    opinion = (
        AdviserOpinion(**_parse_fields(AdviserOpinion, cast(Mapping[str, Any], said), LISTS))
        if isinstance(said, dict)
        else None
    )
    return RunReport(**values, opinion=opinion)


def _parse_fields(kind: type, found: Mapping[str, Any], lists: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {one.name: found[one.name] for one in fields(kind) if one.name in found}
    return values | {name: tuple(str(one) for one in values.get(name, ())) for name in lists}
