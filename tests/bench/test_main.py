"""Is every line that `make bench` prints really measured?"""

from bench import sides
from bench.__main__ import DECISION, measure_cases


def test_the_decision_is_measured() -> None:
    (row,) = measure_cases([DECISION], (sides.OURS, sides.BARE), quick=True)
    assert row.name == DECISION
