"""Does one glance tell the posture, in any width, and what is to come in words?"""

from itertools import product

import pytest

from mcp_server.cli.badge import COLOURS, build_badge
from mcp_server.model.posture import (
    ChangeScope,
    ModelMode,
    Posture,
    PostureChange,
    PostureChoice,
    Profile,
    RunControl,
    TemporaryChange,
    Value,
    WorkMode,
)
from mcp_server.policy.badge import CODES, describe_axes, describe_pending_changes, format_title


def format_badge(posture: Posture, columns: int) -> str:
    """The badge as a terminal of that width shows it, without its colours."""
    return "".join(part if isinstance(part, str) else part[0] for part in build_badge(posture, columns))


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


def test_what_is_still_to_come_is_said_in_words() -> None:
    plan: dict[str, Value] = {"profile": Profile.NORMAL, "work_mode": WorkMode.PLAN}
    waiting = (
        PostureChange("c1", plan, ChangeScope.AFTER_CURRENT_TOOL, calls=((7, "p"), (9, "p"))),
        PostureChange("c2", {"reasoning": True}, ChangeScope.NEXT_MILESTONE, session="s1"),
        PostureChange("c3", {"profile": Profile.TRUSTED}, ChangeScope.NOW, session="s1", unconfirmed=True),
    )
    tried = PostureChange("c4", {"profile": Profile.RESTRICTED}, ChangeScope.FOR_NEXT_UNIT, session="s2")
    choice = PostureChoice(waiting=waiting, trials=(TemporaryChange(tried, {"profile": Profile.NORMAL}),))
    assert describe_pending_changes(choice) == [
        (tried, "back to profile normal when the unit of session s2 ends"),
        (waiting[0], "work mode plan, profile normal, after-current-tool (call 7, 9)"),
        (waiting[1], "reasoning on, next-milestone of session s1"),
        (waiting[2], "profile trusted, now, once you confirm it"),
    ]
    assert describe_pending_changes(None) == []


def test_every_axis_has_its_word() -> None:
    assert describe_axes(Posture(reasoning=True, work_mode=WorkMode.PLAN)) == {
        "work_mode": "plan",
        "run_control": "autonomous",
        "profile": "normal",
        "model_mode": "smart",
        "ai_mode": "agent",
        "reasoning": "on",
    }
