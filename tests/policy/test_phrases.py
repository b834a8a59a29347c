"""Is what the person typed taken as they meant it, and is what is not understood said with what there is?"""

import pytest

from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    Posture,
    PostureChoice,
    Profile,
    RunControl,
    Value,
    WorkMode,
    format_value,
)
from mcp_server.policy.phrases import (
    BY_NAME,
    NAMES,
    TYPED,
    Unclear,
    find_axis,
    find_narrowed_posture,
    list_axis_values,
    parse_axis_value,
    parse_phrase,
)


@pytest.mark.parametrize(
    ("words", "axis", "axes", "scope"),
    [
        (["plan"], "work_mode", {"work_mode": WorkMode.PLAN}, ChangeScope.NOW),
        (["trusted"], None, {"profile": Profile.TRUSTED}, ChangeScope.NOW),
        (
            ["repair", "--autonomous", "--permission-profile", "normal"],
            "work_mode",
            {"work_mode": WorkMode.REPAIR, "run_control": RunControl.AUTONOMOUS, "profile": Profile.NORMAL},
            ChangeScope.NOW,
        ),
        (["--profile=normal", "next-milestone"], None, {"profile": Profile.NORMAL}, ChangeScope.NEXT_MILESTONE),
        (["--scope", "for-next-unit", "on"], None, {"reasoning": True}, ChangeScope.FOR_NEXT_UNIT),
        ([], None, {}, ChangeScope.NOW),
    ],
)
def test_what_the_words_say(words: list[str], axis: str | None, axes: dict[str, Value], scope: ChangeScope) -> None:
    phrase = parse_phrase(words, axis)
    assert (phrase.axes, phrase.scope) == (axes, scope)


@pytest.mark.parametrize(
    ("words", "axis", "message"),
    [
        (["plann"], "work_mode", "Did you mean `plan`?"),
        (["trusted", "normal"], None, "`trusted` and `normal` cannot both hold"),
        (["now", "next-milestone"], None, "`now` and `next-milestone` cannot both hold"),
        (["--profile"], None, "`--profile` needs a value"),
        (["--scope", "later"], None, "`later` is not scope"),
        (["--colour", "red"], None, "`--colour` is not an axis"),
        (["something"], None, "`something` is not a value or a scope"),
    ],
)
def test_what_is_not_understood_is_named(words: list[str], axis: str | None, message: str) -> None:
    with pytest.raises(Unclear) as unclear:
        parse_phrase(words, axis)
    assert message in str(unclear.value)


def test_every_axis_has_names_and_a_command_and_takes_each_of_its_values() -> None:
    assert set(NAMES) == set(TYPED) == set(AXES)
    assert sorted(name for names in NAMES.values() for name in names) == sorted(BY_NAME)
    for axis, names in NAMES.items():
        assert {find_axis(f"--{name}") for name in names} == {axis}
        for word in list_axis_values(axis):
            assert format_value(parse_axis_value(axis, word)) == word


@pytest.mark.parametrize(("lost", "why"), [("x", "was lost"), ("", "is not sealed with this account's key")])
def test_what_narrows_unasked_is_said_with_what_ends_it(lost: str, why: str) -> None:
    assert find_narrowed_posture(None, Posture(), lost) is None
    assert find_narrowed_posture(PostureChoice(), Posture(), lost) is None
    choice = PostureChoice(claims={"profile": Profile.RESTRICTED})
    narrowed = find_narrowed_posture(choice, Posture(profile=Profile.TRUSTED), lost)
    assert narrowed is not None
    assert why in narrowed.says
    assert narrowed.commands == ("menugate profile trusted",)
