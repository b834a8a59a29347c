"""What is waiting for the person? Paused runs, and calls that need approval."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from mcp_server.model.approvals import Approval
from mcp_server.model.posture import RunControl
from mcp_server.model.sessions import Hold, Holder
from mcp_server.model.text import format_count

MAX_LISTED = 10
"""Runs, and calls, that are named before the rest is only counted."""
MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS


class PausedRun(Struct, frozen=True):
    principal: str
    session: str
    """Empty if every run of the principal is paused."""
    hold: Hold

    @property
    def run(self) -> str:
        return f"the run of session {self.session}" if self.session else "every run"


def list_paused_runs(holds: Mapping[tuple[str, str], Hold], control: Callable[[str], RunControl]) -> list[PausedRun]:
    """List the paused runs, longest-waiting first. A finished unit pauses a run only in `assisted`."""
    runs = [
        PausedRun(principal, session, hold)
        for (principal, session), hold in holds.items()
        if hold.by is not Holder.UNIT or control(principal) is RunControl.ASSISTED
    ]
    return sorted(runs, key=lambda run: (run.hold.at, run.principal, run.session))


def list_unanswered_approvals(approvals: Iterable[Approval], now: int) -> list[Approval]:
    """List the questions that the person can still answer, oldest first."""
    return sorted((one for one in approvals if one.is_waiting(now)), key=lambda one: (one.asked, one.id))


def describe_pending(runs: list[PausedRun], questions: list[Approval], now: int) -> Iterator[str]:
    """Describe each on a line of its own, as `status` shows them in a conversation."""
    for paused in runs[:MAX_LISTED]:
        yield f"Paused: {paused.run}, {format_elapsed_time(paused.hold.at, now)}, because {paused.hold.reason}."
    if len(runs) > MAX_LISTED:
        yield f"Paused: {len(runs) - MAX_LISTED} more."
    if runs:
        yield "The user can resume paused runs with `menugate next`."
    for approval in questions[:MAX_LISTED]:
        first = f"`menugate approvals show {approval.id}` and then " if approval.is_unread else ""
        answers = f"{first}`menugate approve {approval.id}` or `menugate deny {approval.id}`"
        since = format_elapsed_time(approval.asked, now)
        yield f"Waiting for the user's approval: `{approval.wanted.tool}`, {since}; answer with {answers}."
    if len(questions) > MAX_LISTED:
        yield f"Waiting for the user's approval: {len(questions) - MAX_LISTED} more, which `menugate approvals` lists."


def format_elapsed_time(then: int, now: int) -> str:
    """Format it in the largest whole unit. A time in the future, after the clock was set back, counts as now."""
    passed = now - then
    if passed < MINUTE_NS:
        return "for less than a minute"
    for size, name in ((DAY_NS, "day"), (HOUR_NS, "hour"), (MINUTE_NS, "minute")):
        if passed >= size:
            return f"for {format_count(passed // size, name)}"
    raise AssertionError("a minute fits")
