"""Do the figures of the bench mean what they say?"""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.ratios import Limit, compare, percentile, subtract

FIGURES = st.lists(st.floats(0.001, 1000), min_size=1, max_size=40)


@given(FIGURES)
def test_a_side_beside_itself_is_one_whatever_its_noise(figures: list[float]) -> None:
    told = compare(figures, figures)
    assert (told.value, told.low, told.high) == (1.0, 1.0, 1.0)


@given(FIGURES, st.floats(0.1, 10))
def test_a_side_that_takes_so_many_times_as_long_is_told_so(figures: list[float], times: float) -> None:
    told = compare([figure * times for figure in figures], figures)
    assert told.value == pytest.approx(times)
    assert told.low == pytest.approx(times)
    assert told.high == pytest.approx(times)


def test_the_range_is_wide_where_the_rounds_disagree_and_holds_the_ratio() -> None:
    steady = compare([2.0, 2.01, 1.99] * 8, [1.0] * 24)
    wild = compare([1.0, 2.0, 3.0] * 8, [1.0] * 24)
    assert steady.high - steady.low < 0.05 < wild.high - wild.low
    assert wild.low <= wild.value <= wild.high


def test_one_slow_round_does_not_move_the_ratio() -> None:
    assert compare([1.0] * 9 + [50.0], [1.0] * 10).value == 1.0


def test_the_same_rounds_give_the_same_range() -> None:
    ours, bare = [1.0, 1.4, 0.9, 1.2], [1.0, 1.1, 0.8, 1.3]
    assert compare(ours, bare) == compare(ours, bare)


@pytest.mark.parametrize(("ours", "bare"), [([], []), ([1.0], [1.0, 2.0])])
def test_sides_that_were_not_measured_in_turns_are_refused(ours: list[float], bare: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        compare(ours, bare)


@given(FIGURES, st.floats(-100, 100))
def test_what_is_added_to_every_round_is_the_difference(figures: list[float], added: float) -> None:
    told = subtract([(figure + added, figure) for figure in figures])
    assert [told.low, told.value, told.high] == pytest.approx([added] * 3, abs=1e-9)


def test_a_few_slow_rounds_do_not_move_the_difference() -> None:
    told = subtract([(12.0, 10.0)] * 18 + [(500.0, 10.0), (12.0, 700.0)])
    assert (told.ours, told.other, told.value) == (12.0, 10.0, 2.0)
    with pytest.raises(ValueError, match="no round"):
        subtract([])


@given(FIGURES)
def test_percentiles_are_figures_that_were_seen(figures: list[float]) -> None:
    assert percentile(figures, 0.0) == min(figures)
    assert percentile(figures, 1.0) == max(figures)
    assert min(figures) <= percentile(figures, 0.5) <= max(figures)
    assert len(figures) % 2 == 0 or percentile(figures, 0.5) == median(figures)


@pytest.mark.parametrize(
    ("limit", "value", "kept", "shown"),
    [
        (Limit(0.7), 0.7, True, "≤ 0.7"),
        (Limit(0.7), 0.701, False, "≤ 0.7"),
        (Limit(0.8, at_least=True), 0.8, True, "≥ 0.8"),
        (Limit(0.8, at_least=True), 0.79, False, "≥ 0.8"),
    ],
)
def test_a_limit_is_kept_up_to_and_with_its_bound(limit: Limit, value: float, kept: bool, shown: str) -> None:
    assert (limit.is_kept_by(value), str(limit)) == (kept, shown)
