"""How does the posture look at a glance? In full, in two-letter codes where space is short, or as a window title."""

from collections.abc import Mapping

from mcp_server.model.posture import (
    AXES,
    ModelMode,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    RunControl,
    Value,
    WorkMode,
    format_value,
)
from mcp_server.model.text import format_count

NARROW = 80
ALWAYS_IN_FULL = frozenset({WorkMode.REPAIR, WorkMode.REVIEW})
"""Too important for a code: something is being repaired, or nothing may change."""
CODES: Mapping[Value, str] = {
    WorkMode.CHAT: "Ch",
    WorkMode.PLAN: "Pl",
    WorkMode.BUILD: "Bu",
    WorkMode.REVIEW: "Rv",
    WorkMode.REPAIR: "Rp",
    WorkMode.RESEARCH: "Rs",
    RunControl.MANUAL: "Ma",
    RunControl.ASSISTED: "As",
    RunControl.AUTONOMOUS: "Au",
    Profile.RESTRICTED: "Re",
    Profile.NORMAL: "No",
    Profile.TRUSTED: "Tr",
    Profile.UNRESTRICTED: "Un",
    ModelMode.FAST: "Fa",
    ModelMode.SMART: "Sm",
    ModelMode.DEEP: "De",
}
"""Two letters, because restricted, repair, review and research start with the same one."""


def get_badge_values(posture: Posture) -> tuple[Value, ...]:
    return (posture.work_mode, posture.run_control, posture.profile, posture.model_mode)


def format_full_badge(posture: Posture) -> str:
    return " | ".join(map(format_value, get_badge_values(posture)))


def is_badge_narrow(posture: Posture, columns: int) -> bool:
    return columns < NARROW and posture.work_mode not in ALWAYS_IN_FULL


def format_title(posture: Posture, project: str) -> str:
    """Format the one line of a terminal's title."""
    parts = (posture.work_mode, CODES[posture.run_control].upper(), posture.profile, posture.model_mode)
    return f"menugate[{'|'.join(map(str, parts))}] {project}"


def describe_axes(posture: Posture) -> dict[str, str]:
    return {axis: format_value(getattr(posture, axis)) for axis in AXES}


def describe_axis_values(axes: Mapping[str, Value | None]) -> str:
    """`work mode plan, profile normal`."""
    return ", ".join(f"{axis.replace('_', ' ')} {format_value(axes[axis])}" for axis in AXES if axis in axes)


def describe_pending_changes(choice: PostureChoice | None) -> list[tuple[PostureChange, str]]:
    """Describe each change that will still happen, by itself or once it is confirmed."""
    if choice is None:
        return []
    trials = [
        (trial.change, f"back to {describe_axis_values({**trial.before, **trial.unasked})} when the unit{whose} ends")
        for trial in choice.trials
        for whose in [format_session_suffix(trial.change)]
    ]
    return trials + [
        (change, f"{describe_wish(change)}, {describe_change_timing(change)}") for change in choice.waiting
    ]


def describe_wish(change: PostureChange) -> str:
    if not change.units:
        return describe_axis_values(change.axes)
    return (
        f"resume {describe_runs(change.session)} ({format_count(change.units, 'unit')}, if run control is `assisted`)"
    )


def describe_runs(session: str) -> str:
    return f"the run of session {session}" if session else "every run"


def describe_change_timing(change: PostureChange) -> str:
    if change.unconfirmed:
        return f"{change.scope}, once you confirm it"
    calls = ", ".join(str(seq) for seq, _ in change.calls)
    return f"{change.scope}{f' (call {calls})' if calls else ''}{format_session_suffix(change)}"


def format_session_suffix(change: PostureChange) -> str:
    return f" of session {change.session}" if change.session else ""
