"""Is a case over its limit seen, in the table and in how the run ends?"""

from collections.abc import Callable
from functools import partial

import pytest

from bench import __main__ as bench
from bench.cases import CASES
from bench.ratios import Limit, Ratio
from bench.report import (
    ResultRow,
    build_case_row,
    build_command_row,
    build_decision_row,
    build_glance_row,
    format_line,
    render_page,
)

CALL = next(case for case in CASES if case.name == "call")
LOAD = next(case for case in CASES if case.name == "load")


def test_a_case_is_judged_by_its_own_limit_and_the_worse_end_of_its_range() -> None:
    within = build_case_row(CALL, Ratio(0.0008, 0.0005, 1.55, 1.5, 1.6))
    over = build_case_row(CALL, Ratio(0.00075, 0.0005, 1.5, 1.4, 1.7))
    slow = build_case_row(LOAD, Ratio(820, 1000, 0.82, 0.79, 0.9))
    assert [row.verdict for row in (within, over, slow)] == ["ok", "OVER", "OVER"]
    assert format_line(within) == "ok   call              0.8 ms against 0.5 ms, ratio 1.55 (1.50–1.60), limit ≤ 1.6"


def test_the_decision_stands_alone() -> None:
    assert build_decision_row([9.0, 48.0, 49.0], Limit(50)).is_within_limit
    assert not build_decision_row([9.0, 10.0, 51.0], Limit(50)).is_within_limit


def test_the_page_has_a_line_per_case() -> None:
    rows = [build_case_row(CALL, Ratio(0.0008, 0.0005, 1.55, 1.5, 1.6)), build_decision_row([20.0], Limit(50))]
    shown = render_page(rows, "")
    assert "| a call that does nothing, one stdio client | 0.8 ms | 0.5 ms | 1.55 | 1.50–1.60 | ≤ 1.6 | ok |" in shown
    assert "| one decision among 1,000 rules | 20 µs |  |  | 20–20 µs | ≤ 50 µs | ok |" in shown
    assert shown.endswith("|\n")


def test_every_limit_the_project_promises_is_a_case() -> None:
    assert {case.name: str(case.limit) for case in CASES} == {
        "list-36-legacy": "≤ 0.7",
        "list-36-modern": "≤ 0.7",
        "list-36-http": "≤ 0.8",
        "list-500-legacy": "≤ 0.7",
        "list-500-modern": "≤ 0.7",
        "list-500-http": "≤ 0.8",
        "call": "≤ 1.6",
        "load": "≥ 0.8",
        "start": "≤ 1.35",
        "crowd": "≤ 2",
        "memory": "≤ 1.35",
    }
    assert str(bench.DECISION_LIMIT) == "≤ 50"
    assert str(bench.COMMAND_LIMIT) == "≤ 15"
    assert (str(bench.GLANCE_LIMIT), bench.GLANCE_CALLS) == ("≤ 30", 20_000)


@pytest.mark.parametrize("build", [partial(build_command_row, "bubblewrap"), build_glance_row])
def test_what_is_added_is_judged_by_the_upper_end_of_its_range(build: Callable[..., ResultRow]) -> None:
    steady = [(19.0, 5.0), (90.0, 76.5), (15.0, 1.0), (19.1, 5.0)]
    assert build(steady, Limit(15)).is_within_limit
    assert not build([*steady, (90.0, 5.0), (20.0, 1.0)], Limit(15)).is_within_limit


def test_cases_are_chosen_by_how_their_names_begin_and_a_wrong_name_is_told() -> None:
    names = ["list-36", "list-500", "call"]
    assert bench.choose_names(names, []) == names
    assert bench.choose_names(names, ["list"]) == ["list-36", "list-500"]
    with pytest.raises(SystemExit, match=r"There is no case `lost`; the cases are list-36, list-500, call\."):
        bench.choose_names(names, ["call", "lost"])
