"""Does everybody who is refused read what was written for them, word for word?"""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.policy.messages import fault, refusal
from tests.policy.world import spoken, table

PAGE = table("messages")


@pytest.mark.parametrize("case", PAGE["faults"], ids=lambda case: spoken(case["rules"]))
def test_a_rule_that_cannot_hold_is_told_why(case: Mapping[str, Any]) -> None:
    assert fault(case) == case["says"]


@pytest.mark.parametrize("case", PAGE["refusals"], ids=lambda case: spoken(case["case"]))
def test_a_call_that_may_not_run_is_told_why_and_what_else(case: Mapping[str, Any]) -> None:
    got = refusal(case)
    assert (got.reason, got.way_out) == (case["reason"], case["way_out"])
