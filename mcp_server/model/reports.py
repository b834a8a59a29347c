"""What did the checks find in a finished run? Advice for the reader; it changes nothing, not even the answer."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from mcp_server.model.parts import list_parts

LATEST = "latest"
"""In an address, the run that was used last."""
REPORT_ADDRESS = "menugate://report"
"""The address of the newest report."""


def format_report_address(run: str) -> str:
    return f"{REPORT_ADDRESS}/{run}"


def format_summary_address(run: str) -> str:
    return f"menugate://run/{run}/summary"


LISTS = ("issues", "missing_steps", "suggested_next_actions")
"""The parts of a report that are lists, whether checks or a model wrote it."""


class AdviserOpinion(Struct, frozen=True):
    """A model's answer. It is unchecked, and may repeat what anyone wrote into the run."""

    model: str
    place: str
    sent: int
    """Bytes that the model was sent."""
    answered: bool = False
    summary: str = ""
    issues: tuple[str, ...] = ()
    missing_steps: tuple[str, ...] = ()
    suggested_next_actions: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The opinion in lines, each with the kind of statement it is."""
        return (
            *([f"summary: {self.summary}"] if self.summary else []),
            *(f"issue: {one}" for one in self.issues),
            *(f"missing step: {one}" for one in self.missing_steps),
            *(f"suggested next action: {one}" for one in self.suggested_next_actions),
        )


class RunReport(Struct, frozen=True):
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
    """What could not be checked, and why."""
    opinion: AdviserOpinion | None = None
    """None if no model was asked."""
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
            parts.append((f"A model's opinion, unchecked ({self.opinion.model})", self.opinion.lines))
        bodies = {title: "\n".join(f"- {line}" for line in lines or ("none",)) for title, lines in parts}
        return "\n".join(f"## {title}\n\n{body}\n" for title, body in bodies.items())


def parse_report(stored: Mapping[str, Any]) -> RunReport:
    values = _parse_fields(RunReport, stored, (*LISTS, "unchecked"))
    opinion = values.pop("opinion", None)
    if isinstance(opinion, dict):
        opinion = AdviserOpinion(**_parse_fields(AdviserOpinion, cast(Mapping[str, Any], opinion), LISTS))
    return RunReport(**values, opinion=opinion)


def _parse_fields(kind: type, stored: Mapping[str, Any], lists: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {name: stored[name] for name in list_parts(kind) if name in stored}
    return values | {name: tuple(str(one) for one in values.get(name, ())) for name in lists}
