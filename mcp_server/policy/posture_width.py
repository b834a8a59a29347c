"""Would a change allow more than the current posture, or delay a narrowing that is pending?"""

from collections.abc import Mapping

from msgspec.structs import replace

from mcp_server.model.posture import (
    AXES,
    AiMode,
    ChangeScope,
    ModelMode,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    RunControl,
    Value,
    WorkMode,
)
from mcp_server.policy.posture import is_axis_kept

WIDTHS: Mapping[str, Mapping[Value, int]] = {
    "work_mode": {
        WorkMode.PLAN: 0,
        WorkMode.REVIEW: 0,
        WorkMode.RESEARCH: 0,
        WorkMode.CHAT: 1,
        WorkMode.BUILD: 2,
        WorkMode.REPAIR: 2,
    },
    "run_control": {RunControl.MANUAL: 0, RunControl.ASSISTED: 1, RunControl.AUTONOMOUS: 2},
    "profile": {profile: profile.rank for profile in Profile},
    "model_mode": dict.fromkeys(ModelMode, 0),
    "ai_mode": {AiMode.CHAT: 0, AiMode.AGENT: 1},
    "reasoning": {True: 0, False: 1},
}
"""How much each value allows: reading, asking first, acting. Having to reason first is narrower."""


def is_wider(axis: str, value: Value, current: Value) -> bool:
    """True if the value allows more. A value without a width counts as wider than any other."""
    widths = WIDTHS.get(axis, {})
    if value == current:
        return False
    return value not in widths or current not in widths or widths[value] > widths[current]


def is_widening(posture: Posture, axes: Mapping[str, Value]) -> bool:
    return any(is_wider(axis, value, getattr(posture, axis)) for axis, value in axes.items())


def get_narrower_posture(one: Posture, other: Posture) -> Posture:
    """Take the narrower value of each axis."""
    less = {axis: value for axis in AXES if is_wider(axis, getattr(one, axis), value := getattr(other, axis))}
    return replace(one, **less)


def is_delaying_narrowing(choice: PostureChoice, now: Posture, change: PostureChange) -> bool:
    """True if the change would replace a pending narrowing without applying at once itself."""
    if change.scope is ChangeScope.NOW:
        return False
    return any(
        is_wider(axis, getattr(now, axis), value)
        for one in choice.waiting
        if not one.unconfirmed and (one.scope, one.session) != (change.scope, change.session)
        for axis, value in one.axes.items()
        if not is_axis_kept(axis, value, change)
    )
