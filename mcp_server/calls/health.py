"""What happens if the health check finds faults? The work mode becomes `repair`, or the person is asked to set it.

Nothing is ever widened. A higher profile than `normal` is lowered to it, because it could do harm on a faulty server.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from mcp_server.calls.posture import PostureChanges
from mcp_server.config.operator import OperatorConfig
from mcp_server.model.posture import (
    ChangeSource,
    OnFailure,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    Value,
    WorkMode,
    is_wider,
)
from mcp_server.model.results import Problem
from mcp_server.state import ledger

MAX_FAULTS = 3
CONFIRM = "`menugate steer --confirm {}` sets work mode `repair`."


def build_health_response(changes: PostureChanges, config: OperatorConfig, person: str) -> "HealthResponse":
    people = (person, *(token.principal for token in config.tokens))
    return HealthResponse(changes, config.health, tuple(dict.fromkeys(people)))


class HealthResponse(Struct, frozen=True):
    changes: PostureChanges
    policy: OnFailure
    principals: tuple[str, ...]
    """Everyone who works with this server."""

    async def respond_to_faults(self, faults: Sequence[str]) -> str:
        """Respond, and tell the person what was done."""
        reason = "; ".join(faults[:MAX_FAULTS]) + (
            f"; and {len(faults) - MAX_FAULTS} more" * (len(faults) > MAX_FAULTS)
        )
        await self.changes.store.write(partial(ledger.record_health, reason=reason, policy=self.policy))
        if self.policy is OnFailure.LOG_ONLY:
            return "The faults were recorded; nothing else was done (`health: log-only`)."
        answers = [await self._start_repair(principal, reason) for principal in self.principals]
        return " ".join(dict.fromkeys(answers))

    async def _start_repair(self, principal: str, reason: str) -> str:
        now, choice = await self.changes.postures.reread_with_choice(principal)
        if now.work_mode is WorkMode.REPAIR:
            return "The work mode is already `repair`."
        if (pending := find_pending_repair(choice)) is not None:
            return f"{CONFIRM.format(pending.id)} You were asked this before."
        asking = self.policy is not OnFailure.AUTO
        axes = build_repair_axes(now, widens=asking)
        if not axes:
            return describe_kept_mode(now)
        change = PostureChange(
            id=self.changes.new_id(),
            axes=axes,
            reason=f"health gate failed: {reason}",
            door=ChangeSource.DOCTOR,
            unconfirmed=asking,
            unasked=not asking,
        )
        answer = await self.changes.request_change(principal, change, now.epoch)
        if isinstance(answer, Problem):
            return f"The work mode stays `{now.work_mode}`: {answer.message} {answer.way_out}"
        if not isinstance(answer, PostureChoice):
            return f"The posture changed meanwhile; the work mode stays `{now.work_mode}`."
        if not asking:
            is_repair = "work_mode" in axes
            return "The work mode is now `repair` (`health: auto`)." if is_repair else describe_kept_mode(now)
        command = CONFIRM.format(change.id)
        text = f"The health check found faults: {reason}. {command}"
        await self.changes.store.leave_message("", text, principal=principal)
        return command


def find_pending_repair(choice: PostureChoice | None) -> PostureChange | None:
    waiting = choice.waiting if choice else ()
    return next((one for one in waiting if one.unconfirmed and one.door is ChangeSource.DOCTOR), None)


def build_repair_axes(now: Posture, widens: bool) -> dict[str, Value]:
    """`widens`: also if `repair` allows more than the current work mode."""
    axes: dict[str, Value] = {} if Profile.NORMAL.covers(now.profile) else {"profile": Profile.NORMAL}
    if widens or not is_wider("work_mode", WorkMode.REPAIR, now.work_mode):
        axes["work_mode"] = WorkMode.REPAIR
    return axes


def describe_kept_mode(now: Posture) -> str:
    return f"The work mode stays `{now.work_mode}`, which allows less than `repair`."
