"""Is a case over its limit seen, in the table and in how the run ends?"""

import pytest

from bench import __main__ as bench
from bench.cases import CASES
from bench.ratios import Limit, Ratio
from bench.report import (
    build_case_row,
    build_command_row,
    build_decision_row,
    build_glance_row,
    format_line,
    render_page,
)

CALL = next(case for case in CASES if case.name == "call")
LOAD = next(case for case in CASES if case.name == "load")


def test_a_case_is_judged_by_its_own_limit() -> None:
    within = build_case_row(CALL, Ratio(0.0008, 0.0005, 1.6, 1.5, 1.7))
    over = build_case_row(CALL, Ratio(0.00085, 0.0005, 1.7, 1.6, 1.8))
    slow = build_case_row(LOAD, Ratio(790, 1000, 0.79, 0.7, 0.8))
    assert [row.verdict for row in (within, over, slow)] == ["ok", "OVER", "OVER"]
    assert format_line(within) == "ok   call              0.8 ms against 0.5 ms, ratio 1.60 (1.50–1.70), limit ≤ 1.6"


def test_the_decision_stands_alone_and_by_its_median() -> None:
    assert build_decision_row([9.0, 49.0, 500.0], Limit(50)).is_within_limit
    assert not build_decision_row([9.0, 51.0, 52.0], Limit(50)).is_within_limit


def test_the_page_has_a_line_per_case() -> None:
    rows = [build_case_row(CALL, Ratio(0.0008, 0.0005, 1.6, 1.5, 1.7)), build_decision_row([20.0], Limit(50))]
    shown = render_page(rows, "")
    assert "| a call that does nothing, one stdio client | 0.8 ms | 0.5 ms | 1.60 | 1.50–1.70 | ≤ 1.6 | ok |" in shown
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


def test_what_a_sandbox_adds_is_judged_by_its_median() -> None:
    rounds = [(9.0, 3.0), (17.0, 4.0), (90.0, 5.0)]
    assert build_command_row("bubblewrap", rounds, Limit(15)).is_within_limit
    assert not build_command_row("bubblewrap", [(20.0, 3.0), *rounds, (22.0, 3.0)], Limit(15)).is_within_limit


def test_what_a_line_about_a_call_adds_is_judged_by_its_median() -> None:
    rounds = [(900.0, 880.0), (1500.0, 1000.0), (910.0, 885.0)]
    assert build_glance_row(rounds, Limit(30)).is_within_limit
    assert not build_glance_row([(931.0, 900.0)], Limit(30)).is_within_limit


def test_cases_are_chosen_by_how_their_names_begin_and_a_wrong_name_is_told() -> None:
    names = ["list-36", "list-500", "call"]
    assert bench.choose_names(names, []) == names
    assert bench.choose_names(names, ["list"]) == ["list-36", "list-500"]
    with pytest.raises(SystemExit, match=r"There is no case `lost`; the cases are list-36, list-500, call\."):
        bench.choose_names(names, ["call", "lost"])
