"""Does the measurement of the decision measure a decision?"""

import pytest

from bench.decision import RULES, crowded, microseconds, spread
from mcp_server.model.policy import Policy


@pytest.mark.parametrize("policy", [spread(), crowded()], ids=["spread", "crowded"])
def test_a_decision_among_a_thousand_rules_is_measured(policy: Policy) -> None:
    assert len(policy.rules.every) == RULES
    assert microseconds(policy, rounds=20) > 0
