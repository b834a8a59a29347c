"""Is what the person typed taken as they meant it, and is what is not understood said with what there is?"""

from collections.abc import Mapping

import pytest

from mcp_server.model.posture import (
    AXES,
    ChangeScope,
    Posture,
    PostureChoice,
    Profile,
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


@pytest.mark.parametrize(
    ("typed", "axis", "axes", "scope"),
    [
        ("plan", "work_mode", {"work_mode": "plan"}, "now"),
        ("repair --autonomous --permission-profile normal", "work_mode",
         {"work_mode": "repair", "run_control": "autonomous", "profile": "normal"}, "now"),
        ("research --autonomous --permission-profile=restricted --model-mode deep", "work_mode",
         {"work_mode": "research", "run_control": "autonomous", "profile": "restricted", "model_mode": "deep"}, "now"),
        ("review after-current-unit", "work_mode", {"work_mode": "review"}, "after-current-unit"),
        ("trusted --scope for-next-unit", "profile", {"profile": "trusted"}, "for-next-unit"),
        ("build trusted deep next-milestone", "work_mode",
         {"work_mode": "build", "profile": "trusted", "model_mode": "deep"}, "next-milestone"),
        ("on", "reasoning", {"reasoning": "on"}, "now"),
        ("chat --ai chat", "work_mode", {"work_mode": "chat", "ai_mode": "chat"}, "now"),
        ("", None, {}, "now"),
    ],
)  # fmt: skip
def test_what_is_understood(typed: str, axis: str | None, axes: Mapping[str, str], scope: str) -> None:
    meant = parse_phrase(typed.split(), axis)
    assert {name: format_value(value) for name, value in meant.axes.items()} == axes
    assert meant.scope is ChangeScope(scope)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("bild", "`bild` is not a value of mode: chat, plan, build, review, repair, research"),
        ("plan chat", "`--mode chat` or `--ai-mode chat`; say which"),
        ("plan --scope", "`--scope` needs a value"),
        ("plan --scope soon", "now, after-current-tool"),
        ("plan --god", "is not an axis"),
        ("plan trusted restricted", "contradict each other"),
        ("plan --autonomous manual", "contradict each other"),
        ("plan now next-milestone", "contradict each other"),
        ("plan trustd", "Did you mean `trusted`?"),
    ],
)
def test_what_is_not_understood_is_said_and_not_guessed(typed: str, says: str) -> None:
    with pytest.raises(Unclear) as unclear:
        parse_phrase(typed.split(), "work_mode")
    assert says in str(unclear.value)
