"""Is every line that `make bench` prints really measured?"""

import os

import pytest

from bench import glances, sides
from bench.__main__ import DECISION, measure_cases


def test_the_decision_is_measured() -> None:
    (row,) = measure_cases([DECISION], (sides.OURS, sides.BARE), quick=True)
    assert row.name == DECISION


@pytest.mark.heavy
@pytest.mark.skipif(not glances.is_available(), reason="this system has no clock of another process")
def test_the_cost_of_a_line_about_a_call_is_measured() -> None:
    assert glances.read_processor_time(os.getpid()) > 0
    rounds = glances.measure_rounds(2 * glances.TURN)
    assert len(rounds) == 2 and all(0 < figure < 1e6 for one in rounds for figure in one)
