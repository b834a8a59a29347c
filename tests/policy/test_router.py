"""Which mode was meant? The reviewed cases, every boundary of the table, and any text at all."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.menus import Menus
from mcp_server.policy import router
from mcp_server.policy.router import Confidence, NoRoute, Route, RouteChoice, grade_confidence, route
from tests.policy.world import menus, mode, spoken
from tests.policy.world import table as read
from tests.sizes import scale


@pytest.mark.parametrize("case", read("router"), ids=lambda case: spoken(repr(case["says"])))
def test_reviewed_cases(case: Mapping[str, Any]) -> None:
    got = route(case["says"], menus())
    if "offers" in case:
        assert isinstance(got, RouteChoice), got
        assert [number for number, _ in got.candidates] == case["offers"]
        assert got.note == case["note"]
    elif case["enters"] is None:
        assert got == NoRoute(), got
    else:
        assert got == Route(case["enters"], Confidence(case["sure"]))


def made(**modes: Mapping[str, Any]) -> Menus:
    return Menus(tuple(mode(name, {"title": name.upper() * 2, **row}) for name, row in modes.items()))


def test_two_modes_with_the_same_trigger_are_both_offered() -> None:
    twins = made(one={"triggers": ["Build"]}, two={"triggers": ["build"]}, three={"title": "Building"})
    got = route("BUILD", twins)
    assert got == RouteChoice(((1, "ONEONE (`one`)"), (2, "TWOTWO (`two`)")), "several modes have that name")


def test_a_name_wins_over_a_trigger_of_the_same_text() -> None:
    assert route("one", made(two={"triggers": ["one"]}, one={})) == Route("one", Confidence.EXACT)


def test_the_number_is_answered_before_a_name_that_looks_like_one() -> None:
    assert route("2", made(one={"triggers": ["2"]}, two={})) == Route("two", Confidence.EXACT)


def test_offered_numbers_are_those_of_the_menu_so_answering_with_one_enters_it() -> None:
    got = route("tion", menus())
    assert isinstance(got, RouteChoice)
    for number, label in got.candidates:
        hit = route(str(number), menus())
        assert isinstance(hit, Route)
        assert f"`{hit.mode}`" in label


@pytest.mark.parametrize(
    ("points", "sure"),
    [(55, "low"), (99, "low"), (100, "medium"), (149, "medium"), (150, "high"), (160, "high")],
)
def test_how_sure_points_make_it(points: int, sure: str) -> None:
    assert grade_confidence(points) == sure


# A whole word (70) of one description beside the beginning of a word (55) of another: 15 apart.
@pytest.mark.parametrize(("similar", "offered"), [(14, False), (15, True), (16, True)])
def test_similar_means_within_the_published_distance(
    similar: int, offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "SIMILAR", similar)
    pair = made(one={"when": "for apples"}, two={"when": "for applesauce"})
    assert isinstance(route("apples", pair), RouteChoice) is offered


@pytest.mark.parametrize(("threshold", "found"), [(54, True), (55, True), (56, False)])
def test_the_threshold_is_reached_by_equal_points(threshold: int, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "THRESHOLD", threshold)
    assert isinstance(route("app", made(one={"when": "for apples"})), Route) is found


def test_nothing_below_the_threshold_is_offered_beside_what_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "SIMILAR", 100)
    pair = made(one={"when": "for apples"}, two={"when": "for pineapples"})
    assert route("apples", pair) == Route("one", Confidence.LOW)


def test_the_published_numbers() -> None:
    assert (router.THRESHOLD, router.SIMILAR, router.HIGH, router.MEDIUM) == (55, 10, 150, 100)
    assert (
        router.render_points_table()
        == """\
| what matches | the whole text | a whole word | the beginning of a word | inside a word | shortest input |
| --- | --- | --- | --- | --- | --- |
| name | 160 | 130 | 115 | 100 | 2 |
| title | 160 | 130 | 115 | 100 | 2 |
| trigger | 160 | 130 | 115 | 100 | 2 |
| description | 100 | 70 | 55 | 40 | 3 |

A mode needs at least 55 points. If other modes are within 10 points of the best one, the
model has to choose by number. Confidence is high from 150 points, medium from 100 points, and low
below that.
"""
    )


def test_without_modes_nothing_answers() -> None:
    assert [route(text, Menus(())) for text in ("1", "git", "")] == [NoRoute()] * 3


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(st.text() | st.text(alphabet="0123456789０٣ \n*/git"))
def test_any_text_gets_one_and_the_same_answer(text: str) -> None:
    got = route(text, menus())
    assert got == route(text, menus())
    assert (
        isinstance(got, NoRoute)
        or (isinstance(got, Route) and menus().by_name.get(got.mode))
        or isinstance(got, RouteChoice)
    )


def test_a_number_of_a_million_digits_is_out_of_range_at_once() -> None:
    assert isinstance(route("9" * 1_000_000, menus()), RouteChoice)
