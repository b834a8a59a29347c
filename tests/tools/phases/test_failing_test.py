"""Is it told whether a failure is new, was there before, or comes and goes?"""

import pytest

from tools.phases.failing_test import VERDICTS, decide_verdict
from tools.single_test import SingleTestOutcome

PASSED, FAILED, MISSING, UNCLEAR = SingleTestOutcome


@pytest.mark.parametrize(
    ("runs", "before", "verdict"),
    [
        ([FAILED, FAILED], PASSED, "new_failure"),
        ([FAILED, FAILED], FAILED, "failed_before"),
        ([FAILED, FAILED], MISSING, "cannot_tell"),
        ([FAILED, FAILED], UNCLEAR, "cannot_tell"),
        ([FAILED], None, "fails"),
        ([FAILED, PASSED], PASSED, "flaky"),
        ([FAILED, PASSED], None, "flaky"),
        ([PASSED], FAILED, "mended"),
        ([PASSED], PASSED, "passes"),
        ([PASSED], None, "passes"),
        ([MISSING], FAILED, "cannot_tell"),
        ([UNCLEAR], FAILED, "cannot_tell"),
    ],
)
def test_every_case_has_its_verdict(
    runs: list[SingleTestOutcome], before: SingleTestOutcome | None, verdict: str
) -> None:
    assert decide_verdict(runs, before) == verdict
    assert VERDICTS[verdict]
