"""What needs the user's attention? Paused runs and open questions, of everyone who works in this workspace."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mcp_server.policy.pending import list_paused_runs, list_unanswered_approvals
from mcp_server.views.posture import build_posture_view
from mcp_server.views.text import format_time

if TYPE_CHECKING:
    from mcp_server.config.limits import Limits
    from mcp_server.model.approvals import Approval
    from mcp_server.policy.pending import PausedRun
    from mcp_server.settings import Settings
    from mcp_server.state.reader import Reader


class PendingView(Struct, frozen=True):
    paused: "Sequence[PausedRun]" = ()
    asked: "Sequence[Approval]" = ()
    glances: "Mapping[str, str]" = field(default_factory=dict[str, str])
    """What the call of each question is about, by the question's id."""

    def to_json(self) -> dict[str, Any]:
        return {
            "paused": [
                {
                    "principal": one.principal,
                    "session": one.session or None,
                    "by": one.hold.by,
                    "reason": one.hold.reason,
                    "since": format_time(one.hold.at),
                }
                for one in self.paused
            ],
            "approvals": [
                {
                    "id": one.id,
                    "tool": one.wanted.tool,
                    "glance": self.glances.get(one.id) or None,
                    "principal": one.wanted.principal,
                    "since": format_time(one.asked),
                }
                for one in self.asked
            ],
        }


def build_pending_view(settings: "Settings", limits: "Limits", state: "Reader | None", now: int) -> PendingView:
    from mcp_server.state.peek import find_holds_beside

    held = state.load_holds() if state else find_holds_beside(settings.database)
    runs = list_paused_runs(
        held, lambda whose: build_posture_view(settings, limits, state, False, whose).posture.run_control
    )
    asked = list_unanswered_approvals(state.load_approvals() if state else (), now)
    return PendingView(runs, asked, state.load_question_glances(asked) if state else {})


def format_owner(principal: str, reader: str) -> str:
    return "" if principal == reader else f" of {principal}"


def format_target_options(one: "PausedRun", reader: str) -> str:
    whose = "" if one.principal == reader else f" --principal {one.principal}"
    return f"{whose} --session {one.session}" if one.session else whose
