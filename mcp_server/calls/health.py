"""What happens if menugate finds itself out of order? The health gate switches the work mode to `repair`, or asks to.

It never widens anything. A profile that could do much harm on a faulty server is lowered to `normal`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mcp_server.calls.posture import PostureChanges
from mcp_server.model.posture import (
    ChangeSource,
    OnFailure,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    Value,
    WorkMode,
)
from mcp_server.model.results import Problem
from mcp_server.state import ledger

MOST_SAID = 3
CONFIRM = "`menugate steer --confirm {}` turns the work mode to `repair`."


@dataclass(frozen=True)
class HealthResponse:
    doors: PostureChanges
    policy: OnFailure
    principals: tuple[str, ...]
    """All principals who work with this server."""

    async def respond_to_faults(self, faults: Sequence[str]) -> str:
        """Respond, and return for the person what was done."""
        reason = "; ".join(faults[:MOST_SAID]) + (f"; and {len(faults) - MOST_SAID} more" * (len(faults) > MOST_SAID))
        await self.doors.store.write(partial(ledger.record_health, reason=reason, policy=self.policy))
        if self.policy is OnFailure.LOG_ONLY:
            return "It was put on record, and nothing else was done (`health: log-only`)."
        said = [await self._turn_to_repair(principal, reason) for principal in self.principals]
        return " ".join(dict.fromkeys(said))

    async def _turn_to_repair(self, principal: str, reason: str) -> str:
        now, choice = await self.doors.load_posture_and_choice(principal)
        if now.work_mode is WorkMode.REPAIR:
            return "The work mode is `repair` already."
        if (asked := find_pending_repair(choice)) is not None:
            return f"{CONFIRM.format(asked.id)} That was asked before."
        asking = self.policy is not OnFailure.AUTO
        change = PostureChange(
            id=self.doors.new_id(),
            axes=build_repair_axes(now),
            reason=f"health gate failed: {reason}",
            door=ChangeSource.DOCTOR,
            unconfirmed=asking,
        )
        answer = await self.doors.request_change(principal, change, now.epoch)
        if isinstance(answer, Problem):
            return f"The work mode stays `{now.work_mode}`: {answer.message} {answer.way_out}"
        if not isinstance(answer, PostureChoice):
            return f"The posture changed meanwhile; the work mode was left at `{now.work_mode}`."
        if not asking:
            return "The work mode was turned to `repair` (`health: auto`)."
        how = CONFIRM.format(change.id)
        text = f"menugate found itself not in order: {reason}. {how}"
        await self.doors.store.leave_message("", text, principal=principal)
        return how


def find_pending_repair(choice: PostureChoice | None) -> PostureChange | None:
    waiting = choice.waiting if choice else ()
    return next((one for one in waiting if one.unconfirmed and one.door is ChangeSource.DOCTOR), None)


def build_repair_axes(now: Posture) -> dict[str, Value]:
    lower: dict[str, Value] = {} if Profile.NORMAL.covers(now.profile) else {"profile": Profile.NORMAL}
    return {"work_mode": WorkMode.REPAIR, **lower}
