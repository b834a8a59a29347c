"""Is forbidden what any version forbids, and allowed only what all of them allow?"""

import pytest
from msgspec.structs import replace

from mcp_server.config.merge import combine_policies, combine_rules, is_as_strict_as, split_rules
from mcp_server.config.workspace import WorkspaceConfig
from mcp_server.model.policy import Budget, RuleKind, RuleText
from mcp_server.model.posture import Profile
from tests.policy import world


def rule(kind: RuleKind, text: str, line: int = 1) -> RuleText:
    return RuleText(kind, text, f"rules.yaml:{line}")


DENY, ASK, ALLOW = rule(RuleKind.DENY, "Read(a)"), rule(RuleKind.ASK, "Read(b)"), rule(RuleKind.ALLOW, "Read(c)")


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ([DENY], [], [DENY]),
        ([], [DENY], [DENY]),
        ([DENY], [ASK], [DENY, ASK]),
        ([ALLOW], [], []),
        ([], [ALLOW], []),
        ([ALLOW], [ALLOW], [ALLOW]),
        ([DENY, ALLOW], [ALLOW, ASK], [DENY, ALLOW, ASK]),
    ],
)
def test_what_either_forbids_and_both_allow(one: list[RuleText], other: list[RuleText], both: list[RuleText]) -> None:
    assert list(combine_rules(one, other)) == both


def test_a_rule_in_both_stands_where_it_stands_now() -> None:
    moved = rule(RuleKind.DENY, DENY.text, line=9)
    assert combine_rules([DENY], [moved]) == (moved,)


def test_rules_are_what_they_say_wherever_they_stand() -> None:
    forbids, allows = split_rules([DENY, ASK, ALLOW])
    assert forbids == {(RuleKind.DENY, "Read(a)"), (RuleKind.ASK, "Read(b)")}
    assert allows == {(RuleKind.ALLOW, "Read(c)")}


def test_of_two_policies_the_lower_ceiling_and_the_smaller_budget_hold() -> None:
    one = replace(world.policy({"deny": ["Read"]}), ceiling=Profile.NORMAL, budget=Budget(calls=5))
    other = replace(world.policy({"allow": ["Edit(a)"]}), ceiling=Profile.TRUSTED, budget=Budget(calls=9))
    both = combine_policies(one, other)
    assert (both.ceiling, both.budget.calls) == (Profile.NORMAL, 5)
    assert [(each.kind, each.text) for each in both.rules.every] == [(RuleKind.DENY, "Read")]


@pytest.mark.parametrize(
    ("one", "other", "stricter"),
    [
        (WorkspaceConfig(), WorkspaceConfig(), True),
        (WorkspaceConfig(rules=(DENY,)), WorkspaceConfig(), True),
        (WorkspaceConfig(), WorkspaceConfig(rules=(DENY,)), False),
        (WorkspaceConfig(rules=(ALLOW,)), WorkspaceConfig(), False),
        (WorkspaceConfig(max_profile=Profile.NORMAL), WorkspaceConfig(), True),
        (WorkspaceConfig(), WorkspaceConfig(max_profile=Profile.NORMAL), False),
        (WorkspaceConfig(budget=Budget(calls=5)), WorkspaceConfig(), True),
        (WorkspaceConfig(), WorkspaceConfig(budget=Budget(calls=5)), False),
    ],
)
def test_which_of_two_is_as_strict(one: WorkspaceConfig, other: WorkspaceConfig, stricter: bool) -> None:
    assert is_as_strict_as(one, other) is stricter
