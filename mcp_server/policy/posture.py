"""How does a posture choice change when the person asks, a call ends, or a unit of work ends?

- The latest request wins: asking for an axis drops pending changes of that axis, and applying it ends a temporary
  change of that axis. So an older request never comes back over a newer one. The one exception: a pending lowering of
  the profile still happens, even if the profile was raised in between.
- When a unit ends, its temporary changes are reverted first; then the changes that waited for its end apply.
- Running calls are not affected: what was decided stays decided.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.posture import (
    ChangeScope,
    ChangeSource,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    TemporaryChange,
    Value,
)

UNIT_SCOPES = frozenset({ChangeScope.AFTER_CURRENT_UNIT, ChangeScope.FOR_NEXT_UNIT})
DECLINED = "declined"
LIFETIME_NS = 3600 * 10**9
"""How long a change waits for the person to confirm it."""


class PostureStep(Struct, frozen=True):
    """One recorded step: the choice before it, the choice after it, and the change that caused it."""

    before: PostureChoice
    after: PostureChoice
    change: PostureChange
    event: str
    """`asked`, `in force`, `reverted`, `dropped`, or why the person has not agreed to it."""


class ProcessWork(Struct, frozen=True):
    """What is running when a change is requested."""

    calls: tuple[tuple[int, str], ...] = ()
    """Each with its number and its process."""
    unit: bool = False
    """A unit is open in the session that the change is about."""


def request_change(choice: PostureChoice, change: PostureChange, work: ProcessWork) -> list[PostureStep]:
    """Apply the change now, or let it wait for its moment."""
    if change.unconfirmed:
        # Until it is confirmed it replaces only other unconfirmed changes from the same source.
        others = [
            left
            for other in choice.waiting
            for left in (
                remove_replaced_axes((other,), change) if other.unconfirmed and other.door is change.door else (other,)
            )
        ]
        return [PostureStep(choice, replace(choice, waiting=(*others, change)), change, "asked")]
    remainder = replace(choice, waiting=remove_replaced_axes(choice.waiting, change))
    if has_to_wait(change, work):
        queued = replace(change, calls=work.calls if change.scope is ChangeScope.AFTER_CURRENT_TOOL else ())
        return [PostureStep(choice, replace(remainder, waiting=(*remainder.waiting, queued)), queued, "asked")]
    return [PostureStep(choice, apply_change(remainder, change), change, "in force")]


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
    choice = end_trials(choice, change.axes)
    trials = choice.trials
    if change.scope is ChangeScope.FOR_NEXT_UNIT:
        before = {axis: choice.axes.get(axis) for axis in change.axes}
        unasked = {axis: value for axis, value in choice.unasked.items() if axis in change.axes}
        trials = (*trials, TemporaryChange(change, before, unasked))
    return replace(set_values(choice, change), trials=trials, claims=get_unanswered_claims(choice, change))


def set_values(choice: PostureChoice, change: PostureChange) -> PostureChoice:
    if change.unasked:
        return replace(choice, unasked={**choice.unasked, **change.axes})
    unasked = {axis: value for axis, value in choice.unasked.items() if axis not in change.axes}
    return replace(choice, axes={**choice.axes, **change.axes}, unasked=unasked)


def end_trials(choice: PostureChoice, axes: Collection[str]) -> PostureChoice:
    """Bring back what these axes had before any temporary change; such a change goes on for its other axes."""
    for trial in choice.trials:
        choice = restore_values(choice, trial, axes)
    trials = tuple(
        replace(trial, before=left, unasked={axis: trial.unasked[axis] for axis in left if axis in trial.unasked})
        for trial in choice.trials
        if (left := {axis: value for axis, value in trial.before.items() if axis not in axes})
    )
    return replace(choice, trials=trials)


def get_unanswered_claims(choice: PostureChoice, change: PostureChange) -> Mapping[str, Value]:
    """Keep the claims that the change does not settle: only a lasting choice at a terminal settles one."""
    answers = change.door is ChangeSource.TERMINAL and change.scope is not ChangeScope.FOR_NEXT_UNIT
    return {axis: value for axis, value in choice.claims.items() if not (answers and axis in change.axes)}


def end_calls(choice: PostureChoice, over: Callable[[int, str], bool]) -> list[PostureStep]:
    """Apply the changes that waited for calls. `over` tells of a call, by number and process, if it has ended."""
    steps: list[PostureStep] = []
    for change in choice.waiting:
        if change.unconfirmed or change.scope is not ChangeScope.AFTER_CURRENT_TOOL:
            continue
        left = tuple(call for call in change.calls if not over(*call))
        if left == change.calls:
            continue
        choice = steps[-1].after if steps else choice
        if left:
            shorter = replace(change, calls=left)
            waiting = tuple(shorter if one.id == change.id else one for one in choice.waiting)
            steps.append(PostureStep(choice, replace(choice, waiting=waiting), shorter, ""))
        else:
            steps.append(release_change(choice, change))
    return steps


def end_unit(choice: PostureChoice, session: str, milestone: bool) -> list[PostureStep]:
    """Revert and apply what waited for a unit of this session to end; a milestone is the end of a whole run."""
    steps: list[PostureStep] = []
    for trial in choice.trials:
        if is_about_session(trial.change, session):
            choice = steps[-1].after if steps else choice
            steps.append(PostureStep(choice, revert_trial(choice, trial), trial.change, "reverted"))
    for change in choice.waiting:
        due = change.scope in UNIT_SCOPES or (milestone and change.scope is ChangeScope.NEXT_MILESTONE)
        if due and not change.unconfirmed and is_about_session(change, session):
            steps.append(release_change(steps[-1].after if steps else choice, change))
    return steps


def is_about_session(change: PostureChange, session: str) -> bool:
    return change.session in ("", session)


def release_change(choice: PostureChoice, change: PostureChange) -> PostureStep:
    remainder = replace(choice, waiting=tuple(one for one in choice.waiting if one.id != change.id))
    return PostureStep(choice, apply_change(remainder, change), change, "in force")


def revert_trial(choice: PostureChoice, trial: TemporaryChange) -> PostureChoice:
    restored = restore_values(choice, trial, trial.before)
    return replace(restored, trials=tuple(one for one in choice.trials if one.change.id != trial.change.id))


def restore_values(choice: PostureChoice, trial: TemporaryChange, among: Collection[str]) -> PostureChoice:
    """Bring back, among these axes, what they had before the temporary change."""
    over = {axis: value for axis, value in trial.before.items() if axis in among}
    axes = {axis: value for axis, value in choice.axes.items() if axis not in over}
    unasked = {axis: value for axis, value in choice.unasked.items() if axis not in over}
    axes |= {axis: value for axis, value in over.items() if value is not None}
    unasked |= {axis: value for axis, value in trial.unasked.items() if axis in over}
    return replace(choice, axes=axes, unasked=unasked)


def drop_changes(choice: PostureChoice, ids: Iterable[str]) -> list[PostureStep]:
    """Take back changes that the person no longer wants; temporary ones are reverted at once."""
    dropped_ids, steps = set(ids), list[PostureStep]()
    for trial in choice.trials:
        if trial.change.id in dropped_ids:
            choice = steps[-1].after if steps else choice
            steps.append(PostureStep(choice, revert_trial(choice, trial), trial.change, "reverted"))
    for change in choice.waiting:
        if change.id in dropped_ids:
            choice = steps[-1].after if steps else choice
            left = tuple(one for one in choice.waiting if one.id != change.id)
            steps.append(PostureStep(choice, replace(choice, waiting=left), change, "dropped"))
    return steps


def remove_replaced_axes(waiting: Iterable[PostureChange], change: PostureChange) -> tuple[PostureChange, ...]:
    """Return what still waits after this change was requested."""
    shorter = (
        replace(one, axes={axis: value for axis, value in one.axes.items() if is_axis_kept(axis, value, change)})
        for one in waiting
    )
    return tuple(one for one in shorter if one.axes or (one.units and not change.units))


def is_axis_kept(axis: str, pending_value: Value, change: PostureChange) -> bool:
    """True if a pending value of this axis outlives the change; see the exception at the top of this module."""
    value = change.axes.get(axis)
    lowering = isinstance(value, Profile) and isinstance(pending_value, Profile) and value.rank > pending_value.rank
    return axis not in change.axes or (lowering and change.scope is ChangeScope.NOW and not change.unconfirmed)


def find_confirmable_change(choice: PostureChoice, id: str, now: int) -> PostureChange | None:
    """Find the change with this id that waits to be confirmed, unless it has waited too long."""
    change = next((one for one in choice.waiting if one.unconfirmed and one.id == id), None)
    # What a client asked for expires; what menugate itself asked for waits until it is answered.
    fresh = change is not None and (change.door is not ChangeSource.PROMPT or abs(now - change.asked) < LIFETIME_NS)
    return change if fresh else None


def find_same_request(
    choice: PostureChoice, wanted: PostureChange, carried: Collection[str], now: int
) -> PostureChange | None:
    """Find the open request that this one repeats. One that the client carries back may come over another session."""
    for change in choice.waiting:
        is_own = change.session == wanted.session or change.id in carried
        alike = (change.axes, change.scope, change.units) == (wanted.axes, wanted.scope, wanted.units)
        if change.door is wanted.door and is_own and alike and find_confirmable_change(choice, change.id, now):
            return change
    return None


def list_replaced_requests(choice: PostureChoice, wanted: PostureChange) -> list[PostureChange]:
    """Return the open requests that this one replaces completely."""
    left = {one.id for one in request_change(choice, wanted, ProcessWork())[-1].after.waiting}
    return [one for one in choice.waiting if one.id not in left]


def count_used_tries(choice: PostureChoice, wanted: PostureChange, now: int) -> int:
    """Return how many tries the open requests for these axes have used up. Asking for another value gives no new
    ones."""
    alike = [one for one in choice.waiting if one.axes.keys() & wanted.axes.keys() or (one.units and wanted.units)]
    return max((one.tries for one in alike if find_confirmable_change(choice, one.id, now)), default=0)


def leave_request(choice: PostureChoice, request: PostureChange, tries: int, why: str) -> PostureStep:
    """Leave the request open after the client brought no proper answer, or close it if it brought a refusal."""
    if not tries and why == DECLINED:
        left = tuple(one for one in choice.waiting if one.id != request.id)
        return PostureStep(choice, replace(choice, waiting=left), request, why)
    tried = replace(request, tries=request.tries + tries)
    waiting = tuple(tried if one.id == request.id else one for one in choice.waiting)
    return PostureStep(choice, replace(choice, waiting=waiting), tried, why)


def close_requests(choice: PostureChoice, session: str | None, why: str) -> list[PostureStep]:
    """Close what clients requested in this session, or in all, because its run is over."""
    steps: list[PostureStep] = []
    for change in choice.waiting:
        is_own = session is None or is_about_session(change, session)
        if change.unconfirmed and change.door is ChangeSource.PROMPT and is_own:
            choice = steps[-1].after if steps else choice
            left = tuple(one for one in choice.waiting if one.id != change.id)
            steps.append(PostureStep(choice, replace(choice, waiting=left), change, why))
    return steps


def list_coming_choices(choice: PostureChoice, change: PostureChange) -> Iterator[PostureChoice]:
    """Yield the choices to come if the change is not made: temporary changes reverted, then each pending one applied.

    A pending value that outlives the change is left out, because it applies either way."""
    for trial in choice.trials:
        choice = revert_trial(choice, trial)
    yield choice
    for one in choice.waiting:
        if not one.unconfirmed:
            axes = {axis: value for axis, value in one.axes.items() if not is_axis_kept(axis, value, change)}
            choice = set_values(choice, replace(one, axes=axes))
            yield choice


def remove_settled_axes(choice: PostureChoice | None, now: Iterable[Posture], change: PostureChange) -> PostureChange:
    """Leave out the values that hold already, unless something pending or temporary would end them."""
    trials, waiting = (choice.trials, choice.waiting) if choice else ((), ())
    unsettled = {axis for trial in trials for axis in trial.before} | {axis for one in waiting for axis in one.axes}
    changed = {axis for axis, value in change.axes.items() for one in now if getattr(one, axis) != value}
    left = {axis: value for axis, value in change.axes.items() if axis in unsettled | changed}
    return replace(change, axes=left)
