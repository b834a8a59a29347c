"""Would a change allow more than holds now, or keep for longer what is to be taken away?"""

from collections.abc import Mapping
from dataclasses import replace

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
"""How much each value lets through: reading, asking first, acting. The duty to think first holds back as well."""


def is_wider(axis: str, wished: Value, held: Value) -> bool:
    """A value that nobody has weighed is wider than any other."""
    known = WIDTHS.get(axis, {})
    if wished == held:
        return False
    return wished not in known or held not in known or known[wished] > known[held]


def is_widening(held: Posture, axes: Mapping[str, Value]) -> bool:
    return any(is_wider(axis, wished, getattr(held, axis)) for axis, wished in axes.items())


def get_narrower_posture(one: Posture, other: Posture) -> Posture:
    """On each axis the one of the two that lets through less."""
    less = {axis: value for axis in AXES if is_wider(axis, getattr(one, axis), value := getattr(other, axis))}
    return replace(one, **less)


def is_delaying_narrowing(choice: PostureChoice, now: Posture, change: PostureChange) -> bool:
    """Would it take the place of something narrower that is to come, and not be in force at once itself?"""
    if change.scope is ChangeScope.NOW:
        return False
    return any(
        is_wider(axis, getattr(now, axis), value)
        for one in choice.waiting
        if not one.unconfirmed and (one.scope, one.session) != (change.scope, change.session)
        for axis, value in one.axes.items()
        if not is_axis_kept(axis, value, change)
    )
