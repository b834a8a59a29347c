"""Does the measurement of the decision measure a decision?"""

import pytest

from bench.decision import RULES, build_crowded_policy, build_spread_policy, measure_microseconds
from mcp_server.model.policy import Policy


@pytest.mark.parametrize("policy", [build_spread_policy(), build_crowded_policy()], ids=["spread", "crowded"])
def test_a_decision_among_a_thousand_rules_is_measured(policy: Policy) -> None:
    assert len(policy.rules.every) == RULES
    assert measure_microseconds(policy, rounds=20) > 0
