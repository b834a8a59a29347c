"""What follows when menugate finds itself not in order? The health gate: it turns the work to repair, or asks for that.

It never raises anything. What could do much harm with a house in disorder is taken down to `normal`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mcp_server.calls.steering.doors import Doors
from mcp_server.model.posture import Change, Choice, Door, OnFailure, Posture, Profile, Value, WorkMode
from mcp_server.state import deeds

MOST_SAID = 3


@dataclass(frozen=True)
class HealthGate:
    doors: Doors
    policy: OnFailure
    principals: tuple[str, ...]
    """Everybody whose work stands on this house."""

    async def failed(self, faults: Sequence[str]) -> str:
        """What was done about it, in words for the person."""
        reason = "; ".join(faults[:MOST_SAID]) + (f"; and {len(faults) - MOST_SAID} more" * (len(faults) > MOST_SAID))
        await self.doors.store.write(partial(deeds.unhealthy, reason=reason, policy=self.policy))
        if self.policy is OnFailure.LOG_ONLY:
            return "It was put on record, and nothing else was done (`health: log-only`)."
        said = [await self._turned(principal, reason) for principal in self.principals]
        return " ".join(dict.fromkeys(one for one in said if one)) or "The work mode is `repair` already."

    async def _turned(self, principal: str, reason: str) -> str:
        now, choice = await self.doors.stands(principal)
        if now.work_mode is WorkMode.REPAIR or asked_already(choice):
            return ""
        asking = self.policy is not OnFailure.AUTO
        change = Change(
            id=self.doors.new_id(),
            axes=repairing(now),
            reason=f"health gate failed: {reason}",
            door=Door.DOCTOR,
            unconfirmed=asking,
        )
        if not isinstance(await self.doors.ask(principal, change, now.epoch), Choice):
            return ""
        if not asking:
            return "The work mode was turned to `repair` (`health: auto`)."
        how = f"`menugate steer --confirm {change.id}` turns the work mode to `repair`."
        text = f"menugate found itself not in order: {reason}. {how}"
        await self.doors.store.leave_message("", text, principal=principal)
        return how


def asked_already(choice: Choice | None) -> bool:
    return choice is not None and any(one.unconfirmed and one.door is Door.DOCTOR for one in choice.waiting)


def repairing(now: Posture) -> dict[str, Value]:
    lower: dict[str, Value] = {} if Profile.NORMAL.covers(now.profile) else {"profile": Profile.NORMAL}
    return {"work_mode": WorkMode.REPAIR, **lower}
