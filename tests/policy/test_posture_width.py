"""Is it known of every value whether it lets through more than another? What nobody weighed counts as more."""

from collections.abc import Mapping
from functools import cache

import pytest
from msgspec.structs import replace

from mcp_server.config.faults import FaultCollector
from mcp_server.config.load import DATA
from mcp_server.config.stages import load_work_modes
from mcp_server.model.posture import (
    AXES,
    NARROWEST_FIRST,
    WIDTHS,
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
    is_wider,
    list_axis_words,
)
from mcp_server.model.tools import READING, Effect
from mcp_server.policy.posture_width import get_narrower_posture, is_delaying_narrowing, is_widening

VALUES: dict[str, tuple[Value, ...]] = {
    axis: (True, False) if kind is bool else list_axis_words(kind) for axis, kind in AXES.items()
}


def test_every_value_of_every_axis_is_weighed() -> None:
    assert WIDTHS.keys() == AXES.keys()
    for axis, values in VALUES.items():
        assert [f"WIDTHS does not weigh `{value}`" for value in values if value not in WIDTHS[axis]] == []
        assert set(WIDTHS[axis]) == set(values)


def test_every_value_of_every_axis_has_its_place_in_the_order() -> None:
    for axis, values in VALUES.items():
        order = NARROWEST_FIRST[axis]
        assert [f"NARROWEST_FIRST has no place for `{value}`" for value in values if value not in order] == []
        assert sorted(map(str, order)) == sorted(map(str, values)), axis


def test_what_nobody_weighed_is_wider_than_anything() -> None:
    for axis in AXES:
        assert all(
            is_wider(axis, ModelMode.FAST if axis != "model_mode" else WorkMode.PLAN, held) for held in WIDTHS[axis]
        )
    assert is_wider("a new axis", True, False)


def test_the_read_only_modes_are_the_narrowest() -> None:
    narrowest = {mode for mode, width in WIDTHS["work_mode"].items() if width == 0}
    assert narrowest == {mode for mode, effects in shipped_work_modes().items() if effects <= READING}


def test_no_work_mode_allows_more_than_a_wider_one() -> None:
    allowed, widths = shipped_work_modes(), WIDTHS["work_mode"]
    assert [
        f"`{one}` allows more than `{other}`"
        for one in WorkMode
        for other in WorkMode
        if widths[one] < widths[other] and not allowed[one] <= allowed[other]
    ] == []


@cache
def shipped_work_modes() -> Mapping[WorkMode, frozenset[Effect]]:
    findings = FaultCollector()
    modes = load_work_modes(DATA / "menus" / "work_modes.yaml", findings)
    assert not findings.faults()
    return modes


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("wished", Profile)
def test_a_profile_is_wider_the_higher_it_is(profile: Profile, wished: Profile) -> None:
    assert is_widening(replace(Posture(), profile=profile), {"profile": wished}) is (wished.rank > profile.rank)


def test_one_axis_is_enough() -> None:
    held = Posture(WorkMode.PLAN, RunControl.MANUAL, ai_mode=AiMode.CHAT, reasoning=True)
    assert not is_widening(
        held, {"work_mode": WorkMode.REVIEW, "model_mode": ModelMode.DEEP, "profile": Profile.NORMAL}
    )
    for axes in (
        {"work_mode": WorkMode.CHAT},
        {"work_mode": WorkMode.REVIEW, "run_control": RunControl.ASSISTED},
        {"ai_mode": AiMode.AGENT},
        {"reasoning": False},
    ):
        assert is_widening(held, axes)
        assert not is_widening(Posture(), axes)


def test_the_narrower_of_two_is_taken_axis_by_axis() -> None:
    one = Posture(WorkMode.PLAN, RunControl.AUTONOMOUS, Profile.TRUSTED, epoch=7)
    other = Posture(WorkMode.BUILD, RunControl.MANUAL, Profile.NORMAL, reasoning=True)
    found = Posture(WorkMode.PLAN, RunControl.MANUAL, Profile.NORMAL, reasoning=True, epoch=7)
    assert get_narrower_posture(one, other) == found


@pytest.mark.parametrize(
    ("wish", "scope", "off"),
    [
        (WorkMode.PLAN, ChangeScope.NOW, False),
        (WorkMode.PLAN, ChangeScope.NEXT_MILESTONE, True),
        (WorkMode.PLAN, ChangeScope.FOR_NEXT_UNIT, True),
        (WorkMode.REVIEW, ChangeScope.AFTER_CURRENT_UNIT, False),
    ],
)
def test_what_is_to_be_narrowed_is_not_put_off(wish: WorkMode, scope: ChangeScope, off: bool) -> None:
    coming = PostureChange("a", {"work_mode": WorkMode.PLAN}, ChangeScope.AFTER_CURRENT_UNIT)
    change = PostureChange("b", {"work_mode": wish}, scope)
    assert is_delaying_narrowing(PostureChoice(waiting=(coming,)), Posture(), change) is off
    assert not is_delaying_narrowing(PostureChoice(waiting=(replace(coming, unconfirmed=True),)), Posture(), change)
    assert not is_delaying_narrowing(PostureChoice(waiting=(coming,)), Posture(WorkMode.PLAN), change), (
        "it would take nothing away"
    )
