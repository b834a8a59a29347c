"""What becomes of a person's choice, and can anything older come back over a newer word?"""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.model.posture import (
    AXES,
    NARROWEST_FIRST,
    AiMode,
    ChangeScope,
    ChangeSource,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    RunControl,
    Value,
    WorkMode,
    format_value,
    is_wider,
)
from mcp_server.policy import posture
from mcp_server.policy.phrases import NAMES, find_axis, parse_axis_value
from mcp_server.policy.posture import LIFETIME_NS, PostureStep, ProcessWork
from tests.yaml_text import load_yaml

CASES: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "steering.yaml").read_text())
_numbers = count(1)


def after(choice: PostureChoice, turns: Sequence[PostureStep]) -> PostureChoice:
    return turns[-1].after if turns else choice


def happens(choice: PostureChoice, line: str) -> PostureChoice:
    """One line of a case."""
    words = line.split()
    match words:
        case ["ask", *_]:
            change, work = wish(words[1:])
            return after(choice, posture.request_change(choice, change, work))
        case ["call", number, "ends"]:
            return after(choice, posture.end_calls(choice, lambda seq, _process: seq == int(number)))
        case [("unit" | "run") as what, "of", session, "ends"]:
            return after(choice, posture.end_unit(choice, session, what == "run"))
        case ["drop"]:
            ids = [one.id for one in choice.waiting] + [one.change.id for one in choice.trials]
            return after(choice, posture.drop_changes(choice, ids))
        case ["confirm"]:
            ids = [one.id for one in choice.waiting if one.unconfirmed]
            found = posture.find_confirmable_change(choice, ids[0] if ids else "", 0)
            return (
                after(choice, posture.request_change(choice, replace(found, unconfirmed=False), ProcessWork()))
                if found
                else choice
            )
        case _:
            raise AssertionError(line)


def wish(words: list[str]) -> tuple[PostureChange, ProcessWork]:
    axis = find_axis(words[0])
    scope = next((ChangeScope(word) for word in words if word in list(ChangeScope)), ChangeScope.NOW)
    calls = tuple((int(word), "p") for word in words if word.isdigit())
    session = words[words.index("of") + 1] if "of" in words else ""
    change = PostureChange(
        f"c{next(_numbers)}",
        {axis: parse_axis_value(axis, words[1])},
        scope,
        session=session,
        unconfirmed="unconfirmed" in words,
        unasked="unasked" in words,
    )
    return change, ProcessWork(calls, "unit" in words)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_becomes_of_it(case: dict[str, Any]) -> None:
    choice = PostureChoice()
    for line in case["does"]:
        choice = happens(choice, line)
    assert {axis: format_value(value) for axis, value in choice.axes.items()} == case["chosen"]
    waits = [f"{NAMES[axis][0]} {format_value(one.axes[axis])}" for one in choice.waiting for axis in one.axes]
    assert waits == [word.replace("model ", "model-mode ") for word in case.get("waits", [])]
    assert bool(choice.trials) is case.get("reverts", False)
    assert {axis: format_value(value) for axis, value in choice.unasked.items()} == case.get("unasked", {})


SAMPLES: list[dict[str, Value]] = [
    *({"profile": profile} for profile in Profile),
    *({"work_mode": mode} for mode in (WorkMode.PLAN, WorkMode.REPAIR)),
    *({"work_mode": WorkMode.PLAN, "profile": profile} for profile in Profile),
]
AXES_ASKED = st.sampled_from(SAMPLES)


def asking(axes: dict[str, Value], scope: ChangeScope, session: str, unconfirmed: bool) -> PostureChange:
    return PostureChange(f"c{next(_numbers)}", axes, scope, session=session, unconfirmed=unconfirmed)


CHANGES = st.builds(
    asking,
    AXES_ASKED,
    st.sampled_from(ChangeScope),
    st.sampled_from(["", "s1", "s2"]),
    st.booleans(),
)
ENDINGS = st.one_of(
    st.tuples(st.just("unit"), st.sampled_from(["s1", "s2"]), st.booleans()),
    st.tuples(st.just("call"), st.integers(1, 3), st.booleans()),
)
EVENTS = st.one_of(st.tuples(st.just("ask"), CHANGES, st.booleans()), ENDINGS)


def stepped(choice: PostureChoice, event: tuple[Any, ...]) -> list[PostureStep]:
    kind, what, flag = event
    if kind == "ask":
        return posture.request_change(choice, what, ProcessWork(((1, "p"), (2, "p")) if flag else (), flag))
    if kind == "unit":
        return posture.end_unit(choice, what, flag)
    return posture.end_calls(choice, lambda seq, _process: seq == what)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(EVENTS, max_size=12))
def test_only_what_was_asked_for_ever_holds_and_each_axis_waits_once(events: list[tuple[Any, ...]]) -> None:
    choice, asked = PostureChoice(), {axis: {None} for axis in AXES}
    for event in events:
        if event[0] == "ask":
            for axis, value in event[1].axes.items():
                asked[axis].add(value)
        for turn in stepped(choice, event):
            assert turn.before == choice
            choice = turn.after
        assert all(choice.axes.get(axis) in asked[axis] for axis in AXES)
        settled = [axis for one in choice.waiting if not one.unconfirmed for axis in one.axes]
        # A lowering that waits may stand beside one word more about the profile, and nothing else beside anything.
        assert len([axis for axis in settled if axis != "profile"]) == len({a for a in settled if a != "profile"})
        wishes = [axis for one in choice.waiting if one.unconfirmed for axis in one.axes]
        assert len(wishes) == len(set(wishes))
        tried = [axis for trial in choice.trials for axis in trial.before]
        assert len(tried) == len(set(tried))


OPERATORS = st.builds(
    Posture,
    work_mode=st.sampled_from(WorkMode),
    run_control=st.sampled_from(RunControl),
    profile=st.sampled_from(Profile),
    ai_mode=st.sampled_from(AiMode),
    reasoning=st.booleans(),
)


def asking_nobody(picks: dict[str, int], scope: ChangeScope) -> PostureChange:
    axes = {axis: NARROWEST_FIRST[axis][pick % len(NARROWEST_FIRST[axis])] for axis, pick in picks.items()}
    return replace(asking(axes, scope, "", False), unasked=True)


UNASKED = st.builds(
    asking_nobody,
    st.dictionaries(st.sampled_from(list(AXES)), st.integers(0, 5), min_size=1),
    st.sampled_from(ChangeScope),
)
UNASKED_EVENTS = st.one_of(st.tuples(st.just("ask"), UNASKED, st.booleans()), ENDINGS)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(UNASKED_EVENTS, max_size=8), OPERATORS)
def test_what_nobody_was_asked_about_allows_no_more_whatever_the_operator_sets(
    events: list[tuple[Any, ...]], operator: Posture
) -> None:
    choice = PostureChoice()
    for event in events:
        choice = after(choice, stepped(choice, event))
        held = choice.apply_to(operator)
        assert not [axis for axis in AXES if is_wider(axis, getattr(held, axis), getattr(operator, axis))]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(EVENTS, max_size=8), st.sampled_from(Profile), st.lists(ENDINGS, max_size=8))
def test_nothing_raises_the_profile_over_a_newer_word(
    before: list[tuple[Any, ...]], word: Profile, later: list[tuple[Any, ...]]
) -> None:
    choice = PostureChoice()
    for event in before:
        choice = after(choice, stepped(choice, event))
    choice = after(choice, posture.request_change(choice, PostureChange("last", {"profile": word}), ProcessWork()))
    for event in later:
        choice = after(choice, stepped(choice, event))
        held = choice.axes["profile"]
        assert isinstance(held, Profile)
        assert word.covers(held)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(EVENTS, max_size=10))
def test_a_trial_is_over_with_the_unit(events: list[tuple[Any, ...]]) -> None:
    choice = PostureChoice()
    for event in events:
        choice = after(choice, stepped(choice, event))
    running = {trial.change.id for trial in choice.trials}
    for session in ("s1", "s2"):
        choice = after(choice, posture.end_unit(choice, session, True))
    assert running.isdisjoint(trial.change.id for trial in choice.trials)


def test_a_prompts_wish_is_soon_forgotten_and_the_doctors_is_not() -> None:
    for door, lasts in ((ChangeSource.PROMPT, False), (ChangeSource.DOCTOR, True)):
        change = PostureChange("c", {"work_mode": WorkMode.REPAIR}, door=door, unconfirmed=True, asked=1)
        choice = PostureChoice(waiting=(change,))
        assert posture.find_confirmable_change(choice, "c", LIFETIME_NS) is not None
        assert (posture.find_confirmable_change(choice, "c", LIFETIME_NS + 2) is not None) is lasts
        assert posture.find_confirmable_change(choice, "d", 1) is None


def test_a_wish_takes_the_place_of_no_word_of_the_person() -> None:
    word = PostureChange("a", {"work_mode": WorkMode.PLAN}, ChangeScope.NEXT_MILESTONE)
    doctors = PostureChange("b", {"work_mode": WorkMode.REPAIR}, door=ChangeSource.DOCTOR, unconfirmed=True)
    choice = PostureChoice(waiting=(word, doctors))
    for id in ("c", "d"):
        wish = PostureChange(id, {"work_mode": WorkMode.BUILD}, door=ChangeSource.PROMPT, unconfirmed=True)
        choice = after(choice, posture.request_change(choice, wish, ProcessWork()))
        assert choice.waiting == (word, doctors, wish)
    confirmed = replace(choice.waiting[-1], unconfirmed=False)
    assert after(choice, posture.request_change(choice, confirmed, ProcessWork())).waiting == ()
