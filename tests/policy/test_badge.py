"""Does one glance tell the posture, in any width, and are typed words understood, or refused with a hint?"""

from collections.abc import Mapping
from itertools import product

import pytest

from mcp_server.cli.badge import COLOURS
from mcp_server.model.posture import ChangeScope, ModelMode, Posture, Profile, RunControl, WorkMode, format_value
from mcp_server.policy.badge import CODES, format_badge, format_title
from mcp_server.policy.phrases import Unclear, parse_phrase

EVERY = [Posture(*axes) for axes in product(WorkMode, RunControl, Profile, ModelMode)]


def test_every_posture_has_a_badge_of_its_own_in_every_width() -> None:
    for columns in (40, 79, 80, 200):
        assert len({format_badge(posture, columns) for posture in EVERY}) == len(EVERY)
    assert len(set(CODES.values())) == len(CODES)


def test_every_value_has_its_letters_and_its_colour() -> None:
    values = [value for kind in (WorkMode, RunControl, Profile, ModelMode) for value in kind]
    assert [f"CODES has no letters for `{value}`" for value in values if value not in CODES] == []
    coloured = [value for value in values if not isinstance(value, ModelMode)]
    assert [f"COLOURS has no colour for `{value}`" for value in coloured if value not in COLOURS] == []
    assert set(COLOURS) == set(map(str, coloured))


@pytest.mark.parametrize(
    ("posture", "columns", "shown"),
    [
        (Posture(profile=Profile.TRUSTED), 80, "build | autonomous | trusted | smart"),
        (Posture(profile=Profile.TRUSTED), 79, "[Bu][Au][Tr][Sm]"),
        (Posture(WorkMode.RESEARCH, RunControl.ASSISTED, Profile.RESTRICTED, ModelMode.DEEP), 20, "[Rs][As][Re][De]"),
        (Posture(WorkMode.REPAIR), 20, "repair | autonomous | normal | smart"),
        (
            Posture(WorkMode.REVIEW, RunControl.ASSISTED, model_mode=ModelMode.DEEP),
            1,
            "review | assisted | normal | deep",
        ),
    ],
)
def test_the_badge(posture: Posture, columns: int, shown: str) -> None:
    assert format_badge(posture, columns) == shown


def test_the_title_names_the_project() -> None:
    assert format_title(Posture(profile=Profile.TRUSTED), "app") == "menugate[build|AU|trusted|smart] app"


def test_the_colours_are_those_of_the_table() -> None:
    table = {
        "dim": "chat manual normal",
        "blue": "plan",
        "green": "build autonomous restricted",
        "yellow": "review assisted trusted",
        "red": "repair unrestricted",
        "cyan": "research",
    }
    assert {word: colour for colour, words in table.items() for word in words.split()}.items() <= COLOURS.items()


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
        ("bild", "`bild` is not mode: chat, plan, build, review, repair, research"),
        ("plan chat", "`--mode chat` or `--ai-mode chat`; write which"),
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
