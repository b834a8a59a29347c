"""Would a change allow more than the current posture, or delay a narrowing that is pending?"""

from collections.abc import Mapping

from msgspec.structs import replace

from mcp_server.model.posture import AXES, ChangeScope, Posture, PostureChange, PostureChoice, Value, is_wider
from mcp_server.policy.posture import is_axis_kept


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
