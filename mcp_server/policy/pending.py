"""What waits for the person? Runs that are paused, and calls that need a yes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mcp_server.model.approvals import Approval
from mcp_server.model.posture import RunControl
from mcp_server.model.sessions import Hold, Holder

MOST = 10
"""Of each, so many are named."""
MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS


@dataclass(frozen=True, slots=True)
class PausedRun:
    principal: str
    session: str
    """Empty where every run of the principal's is paused."""
    hold: Hold

    @property
    def run(self) -> str:
        return f"the run of session {self.session}" if self.session else "every run"


def list_paused_runs(holds: Mapping[tuple[str, str], Hold], control: Callable[[str], RunControl]) -> list[PausedRun]:
    """Who waits, the longest first. A finished unit pauses `assisted` alone."""
    found = [
        PausedRun(principal, session, hold)
        for (principal, session), hold in holds.items()
        if hold.by is not Holder.UNIT or control(principal) is RunControl.ASSISTED
    ]
    return sorted(found, key=lambda one: (one.hold.at, one.principal, one.session))


def list_unanswered_approvals(approvals: Iterable[Approval], now: int) -> list[Approval]:
    """The questions that the person can still answer, the oldest first."""
    return sorted((one for one in approvals if one.is_waiting(now)), key=lambda one: (one.asked, one.id))


def describe_pending(runs: list[PausedRun], questions: list[Approval], now: int) -> Iterator[str]:
    """A line for each, for whoever has no table to put it into."""
    for one in runs[:MOST]:
        yield f"Paused: {one.run}, {format_elapsed_time(one.hold.at, now)}, because {one.hold.reason}."
    if len(runs) > MOST:
        yield f"Paused: {len(runs) - MOST} more."
    if runs:
        yield "What is paused goes on with the user's `menugate next`."
    for asked in questions[:MOST]:
        first = f"`menugate approvals show {asked.id}` and then " if asked.is_unread else ""
        answers = f"{first}`menugate approve {asked.id}` or `menugate deny {asked.id}`"
        since = format_elapsed_time(asked.asked, now)
        yield f"Waits for the user's yes: `{asked.wanted.tool}`, {since}; answered by {answers}."
    if len(questions) > MOST:
        yield f"Waits for the user's yes: {len(questions) - MOST} more, which `menugate approvals` shows."


def format_elapsed_time(then: int, now: int) -> str:
    """In the roundest words that are true; for a moment to come, as good as now."""
    passed = now - then
    if passed < MINUTE_NS:
        return "for less than a minute"
    for size, name in ((DAY_NS, "day"), (HOUR_NS, "hour"), (MINUTE_NS, "minute")):
        if passed >= size:
            count = passed // size
            return f"for {count} {name}{'s' if count > 1 else ''}"
    raise AssertionError("a minute fits")
