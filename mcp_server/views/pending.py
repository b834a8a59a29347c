"""What waits for the person here? Runs that are paused and questions, of everybody who works in this workspace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_server.cli.output import one_line, say, when
from mcp_server.policy.pending import MOST, paused, unanswered
from mcp_server.views.posture import holding

if TYPE_CHECKING:
    from mcp_server.config.load import Configuration
    from mcp_server.model.approvals import Approval
    from mcp_server.policy.pending import PausedRun
    from mcp_server.settings import Settings
    from mcp_server.state.reader import Reader


@dataclass(frozen=True, slots=True)
class PendingView:
    paused: "Sequence[PausedRun]" = ()
    asked: "Sequence[Approval]" = ()

    def in_json(self) -> dict[str, Any]:
        return {
            "paused": [
                {
                    "principal": one.principal,
                    "session": one.session or None,
                    "by": one.hold.by,
                    "reason": one.hold.reason,
                    "since": when(one.hold.at),
                }
                for one in self.paused
            ],
            "approvals": [
                {"id": one.id, "tool": one.wanted.tool, "principal": one.wanted.principal, "since": when(one.asked)}
                for one in self.asked
            ],
        }


def waiting(settings: "Settings", found: "Configuration", state: "Reader | None", now: int) -> PendingView:
    from mcp_server.state.peek import held_beside

    held = state.holds() if state else held_beside(settings.database)
    runs = paused(held, lambda whose: holding(settings, found, state, False, whose).posture.run_control)
    return PendingView(runs, unanswered(state.approvals() if state else (), now))


def show_waiting(waits: PendingView, reader: str) -> None:
    """Above everything else: it is what the person came to do."""
    for one in waits.paused[:MOST]:
        say((one_line(f"paused: {one.run}{_whose(one.principal, reader)}"), "yellow"), f", since {when(one.hold.at)}")
        say(one_line(f"  {one.hold.reason}; `menugate next{_for(one, reader)}` lets it go on"))
    _more(len(waits.paused), "menugate status --json")
    for asked in waits.asked[:MOST]:
        what = f"waits for your yes: `{asked.wanted.tool}`{_whose(asked.wanted.principal, reader)}"
        say((one_line(what), "yellow"), f", since {when(asked.asked)}")
        shows = f"menugate approvals show {asked.id}" if asked.whole else "menugate approvals"
        say(f"  `menugate approve {asked.id}` or `menugate deny {asked.id}`; `{shows}` shows the call")
    _more(len(waits.asked), "menugate approvals")


def _more(count: int, where: str) -> None:
    if count > MOST:
        say(f"  and {count - MOST} more; `{where}` shows all of them")


def _whose(principal: str, reader: str) -> str:
    return "" if principal == reader else f" of {principal}"


def _for(one: "PausedRun", reader: str) -> str:
    whose = "" if one.principal == reader else f" --principal {one.principal}"
    return f"{whose} --session {one.session}" if one.session else whose
