"""Of two postures the narrower is known on every axis, for every value there is."""

from itertools import product

import pytest

from mcp_server.model.posture import (
    AXES,
    NARROWEST_FIRST,
    ChangeScope,
    ChangeSource,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    TemporaryChange,
    WorkMode,
    get_narrower_value,
    list_axis_words,
)

ORDER = {
    "work_mode": "review research plan chat repair build",
    "run_control": "manual assisted autonomous",
    "profile": "restricted normal trusted unrestricted",
    "model_mode": "fast smart deep",
    "ai_mode": "chat agent",
    "reasoning": "True False",
}


@pytest.mark.parametrize("axis", AXES)
def test_every_value_has_its_place(axis: str) -> None:
    order = NARROWEST_FIRST[axis]
    planned = ORDER[axis].split()
    assert [str(value) for value in order if str(value) in planned] == planned, "what came later may stand anywhere"
    kind = AXES[axis]
    assert set(order) == ({True, False} if kind is bool else set(list_axis_words(kind)))
    for one, other in product(order, order):
        assert get_narrower_value(axis, one, other) == order[min(order.index(one), order.index(other))]


def test_a_claim_narrows_and_never_widens() -> None:
    for work, profile in product(WorkMode, Profile):
        claimed = PostureChoice(claims={"work_mode": work, "profile": profile})
        for usual in (Posture(), Posture(work_mode=WorkMode.PLAN, profile=Profile.TRUSTED)):
            held = claimed.apply_to(usual)
            assert held.work_mode == get_narrower_value("work_mode", work, usual.work_mode)
            assert held.profile == get_narrower_value("profile", profile, usual.profile)


def test_only_a_terminal_tries_something_beyond_a_claim() -> None:
    for door in ChangeSource:
        change = PostureChange("c", {"profile": Profile.TRUSTED}, ChangeScope.FOR_NEXT_UNIT, door=door)
        trial = TemporaryChange(change, {"profile": None})
        choice = PostureChoice(axes=change.axes, trials=(trial,), claims={"profile": Profile.RESTRICTED})
        held = Profile.TRUSTED if door is ChangeSource.TERMINAL else Profile.RESTRICTED
        assert choice.apply_to(Posture()).profile is held
