"""What becomes of a person's choice when a change is asked for, a call ends, or a unit of work is over?

- The last word counts: asking for an axis drops what was waiting for the same axis, and putting it into force ends what
  was in force there for one unit. So nothing older ever comes back over a newer word. One thing is left to come all the
  same: a profile that was to be lowered later is lowered, also where it was raised in between.
- A unit's end first brings back what held for that unit alone, and then puts into force what waited for it.
- Nothing here touches a call that runs: what was decided stays decided, and the next decision is another one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mcp_server.model.posture import (
    ChangeScope,
    ChangeSource,
    PostureChange,
    PostureChoice,
    Profile,
    TemporaryChange,
    Value,
)

UNIT_SCOPES = frozenset({ChangeScope.AFTER_CURRENT_UNIT, ChangeScope.FOR_NEXT_UNIT})
LIVES_NS = 3600 * 10**9
"""How long a change waits for the person's yes."""


@dataclass(frozen=True, slots=True)
class PostureStep:
    """One step of a choice, as it goes on record: how it was, how it is, and the change that did it."""

    before: PostureChoice
    after: PostureChoice
    change: PostureChange
    event: str
    """`asked`, `in force`, `reverted` or `dropped`."""


@dataclass(frozen=True, slots=True)
class ProcessWork:
    """What is going on when a change is asked for."""

    calls: tuple[tuple[int, str], ...] = ()
    unit: bool = False
    """Is a unit open, of the session that counts?"""


def request_change(choice: PostureChoice, change: PostureChange, work: ProcessWork) -> list[PostureStep]:
    """The person spoke: it is in force at once, or waits."""
    if change.unconfirmed:
        # As long as nobody said yes it takes the place of nothing but what was asked for in the same way.
        wishes = {one.id for one in choice.waiting if one.unconfirmed and one.door is change.door}
        others = [
            left
            for one in choice.waiting
            for left in (remove_replaced_axes((one,), change) if one.id in wishes else (one,))
        ]
        return [PostureStep(choice, replace(choice, waiting=(*others, change)), change, "asked")]
    kept = replace(choice, waiting=remove_replaced_axes(choice.waiting, change))
    if has_to_wait(change, work):
        held = replace(change, calls=work.calls if change.scope is ChangeScope.AFTER_CURRENT_TOOL else ())
        return [PostureStep(choice, replace(kept, waiting=(*kept.waiting, held)), held, "asked")]
    return [PostureStep(choice, apply_change(kept, change), change, "in force")]


def has_to_wait(change: PostureChange, work: ProcessWork) -> bool:
    match change.scope:
        case ChangeScope.NOW:
            return False
        case ChangeScope.AFTER_CURRENT_TOOL:
            return bool(work.calls)
        case ChangeScope.NEXT_MILESTONE:
            return True
        case ChangeScope.AFTER_CURRENT_UNIT | ChangeScope.FOR_NEXT_UNIT:
            return work.unit


def apply_change(choice: PostureChoice, change: PostureChange) -> PostureChoice:
    trials = tuple(
        replace(trial, before=left)
        for trial in choice.trials
        if (left := {axis: value for axis, value in trial.before.items() if axis not in change.axes})
    )
    if change.scope is ChangeScope.FOR_NEXT_UNIT:
        trials = (*trials, TemporaryChange(change, {axis: find_original_value(choice, axis) for axis in change.axes}))
    return replace(
        choice, axes={**choice.axes, **change.axes}, trials=trials, claims=get_unanswered_claims(choice, change)
    )


def get_unanswered_claims(choice: PostureChoice, change: PostureChange) -> Mapping[str, Value]:
    """The claims that the person has not put an end to: only a lasting word at a terminal does."""
    answers = change.door is ChangeSource.TERMINAL and change.scope is not ChangeScope.FOR_NEXT_UNIT
    return {axis: value for axis, value in choice.claims.items() if not (answers and axis in change.axes)}


def find_original_value(choice: PostureChoice, axis: str) -> Value | None:
    """What held before every trial of this axis."""
    for trial in choice.trials:
        if axis in trial.before:
            return trial.before[axis]
    return choice.axes.get(axis)


def end_calls(choice: PostureChoice, over: Callable[[int, str], bool]) -> list[PostureStep]:
    """`over` says of a call, by number and process, that it runs no more."""
    turns: list[PostureStep] = []
    for change in choice.waiting:
        if change.unconfirmed or change.scope is not ChangeScope.AFTER_CURRENT_TOOL:
            continue
        left = tuple(call for call in change.calls if not over(*call))
        if left == change.calls:
            continue
        choice = turns[-1].after if turns else choice
        if left:
            shorter = replace(change, calls=left)
            waiting = tuple(shorter if one.id == change.id else one for one in choice.waiting)
            turns.append(PostureStep(choice, replace(choice, waiting=waiting), shorter, ""))
        else:
            turns.append(release_change(choice, change))
    return turns


def end_unit(choice: PostureChoice, session: str, milestone: bool) -> list[PostureStep]:
    """A unit of this session ended; a milestone is the end of a whole run."""
    turns: list[PostureStep] = []
    for trial in choice.trials:
        if is_about_session(trial.change, session):
            choice = turns[-1].after if turns else choice
            turns.append(PostureStep(choice, revert_trial(choice, trial), trial.change, "reverted"))
    for change in choice.waiting:
        due = change.scope in UNIT_SCOPES or (milestone and change.scope is ChangeScope.NEXT_MILESTONE)
        if due and not change.unconfirmed and is_about_session(change, session):
            turns.append(release_change(turns[-1].after if turns else choice, change))
    return turns


def is_about_session(change: PostureChange, session: str) -> bool:
    return change.session in ("", session)


def release_change(choice: PostureChoice, change: PostureChange) -> PostureStep:
    kept = replace(choice, waiting=tuple(one for one in choice.waiting if one.id != change.id))
    return PostureStep(choice, apply_change(kept, change), change, "in force")


def revert_trial(choice: PostureChoice, trial: TemporaryChange) -> PostureChoice:
    axes = dict(choice.axes)
    for axis, value in trial.before.items():
        if value is None:
            axes.pop(axis, None)
        else:
            axes[axis] = value
    return replace(choice, axes=axes, trials=tuple(one for one in choice.trials if one.change.id != trial.change.id))


def drop_changes(choice: PostureChoice, ids: Iterable[str]) -> list[PostureStep]:
    """The person thought better of it. What is in force for one unit goes back at once."""
    wanted, turns = set(ids), list[PostureStep]()
    for trial in choice.trials:
        if trial.change.id in wanted:
            choice = turns[-1].after if turns else choice
            turns.append(PostureStep(choice, revert_trial(choice, trial), trial.change, "reverted"))
    for change in choice.waiting:
        if change.id in wanted:
            choice = turns[-1].after if turns else choice
            left = tuple(one for one in choice.waiting if one.id != change.id)
            turns.append(PostureStep(choice, replace(choice, waiting=left), change, "dropped"))
    return turns


def remove_replaced_axes(waiting: Iterable[PostureChange], change: PostureChange) -> tuple[PostureChange, ...]:
    """What still waits once this was asked for."""
    shorter = (
        replace(one, axes={axis: value for axis, value in one.axes.items() if is_axis_kept(axis, value, change)})
        for one in waiting
    )
    return tuple(one for one in shorter if one.axes)


def is_axis_kept(axis: str, waiting: Value, change: PostureChange) -> bool:
    wished = change.axes.get(axis)
    lowering = isinstance(wished, Profile) and isinstance(waiting, Profile) and wished.rank > waiting.rank
    return axis not in change.axes or (lowering and change.scope is ChangeScope.NOW and not change.unconfirmed)


def find_confirmable_change(choice: PostureChoice, id: str, now: int) -> PostureChange | None:
    """The change that waits for this yes, if it has not waited too long."""
    found = next((one for one in choice.waiting if one.unconfirmed and one.id == id), None)
    # What a client asked for is soon forgotten; what menugate itself asks for stands until it is answered.
    fresh = found is not None and (found.door is not ChangeSource.PROMPT or abs(now - found.asked) < LIVES_NS)
    return found if fresh else None


def list_coming_choices(choice: PostureChoice, change: PostureChange) -> Iterator[PostureChoice]:
    """What a choice comes down to by itself, step by step: its trials over, and then in force what waits. What would
    stay beside the change is left out, for that comes about all the same."""
    for trial in choice.trials:
        choice = revert_trial(choice, trial)
    yield choice
    for one in choice.waiting:
        if not one.unconfirmed:
            axes = {axis: value for axis, value in one.axes.items() if not is_axis_kept(axis, value, change)}
            choice = replace(choice, axes={**choice.axes, **axes})
            yield choice
