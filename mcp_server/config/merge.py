"""What holds by several versions of the same files? Whatever any of them forbids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from mcp_server.config.limits import get_lower_profile
from mcp_server.config.load import Configuration, narrow_budget
from mcp_server.config.operator import OperatorConfig
from mcp_server.config.workspace import WorkspaceConfig
from mcp_server.model.policy import Policy, Rule, RuleKind, Rules, RuleText
from mcp_server.model.posture import PostureChoice, Profile

Ruled = TypeVar("Ruled", Rule, RuleText)


def is_as_strict_as(one: OperatorConfig | WorkspaceConfig, other: OperatorConfig | WorkspaceConfig) -> bool:
    """Does the one forbid whatever the other forbids?"""
    (forbids, allows), (forbade, allowed) = split_rules(one.rules), split_rules(other.rules)
    low = get_lower_profile(one.max_profile, other.max_profile) is one.max_profile
    rest = [(each.posture, each.tokens) for each in (one, other) if isinstance(each, OperatorConfig)]
    alike = len({repr(each) for each in rest}) < 2
    low = low and narrow_budget(one.budget, other.budget) == one.budget
    return forbade <= forbids and allows <= allowed and low and alike


def combine_configurations(laws: Sequence[Configuration]) -> Configuration:
    """The last of these under whatever any of them forbids; only what all of them allow is allowed."""
    found = laws[0]
    for now in laws[1:]:
        config, then, own = now.library.config, found.library.config, now.own
        # Who is struck off the list comes in until the next start, and does as little as there is until then.
        known = {one.principal: one.max_profile for one in config.tokens}
        tokens = (
            replace(one, max_profile=get_lower_profile(one.max_profile, known.get(one.principal, Profile.RESTRICTED)))
            for one in then.tokens
        )
        config = replace(
            config,
            rules=combine_rules(then.rules, config.rules),
            max_profile=get_lower_profile(config.max_profile, then.max_profile),
            tokens=tuple(tokens),
        )
        policy = combine_policies(found.policy, now.policy)
        least = PostureChoice(claims=PostureChoice.build_from_posture(found.posture).axes).apply_to(now.posture)
        found = replace(
            now,
            library=replace(now.library, config=config),
            own=replace(own, rules=combine_rules(found.own.rules, own.rules)),
            policy=policy,
            posture=least.cap_profile(policy.ceiling),
        )
    return found


def combine_policies(one: Policy, other: Policy) -> Policy:
    """What either forbids is forbidden, and only what both allow is allowed."""
    rules = Rules(combine_rules(one.rules.every, other.rules.every))
    ceiling, budget = get_lower_profile(one.ceiling, other.ceiling), narrow_budget(one.budget, other.budget)
    return replace(other, rules=rules, ceiling=ceiling, budget=budget)


def combine_rules(one: Sequence[Ruled], other: Sequence[Ruled]) -> tuple[Ruled, ...]:
    """A rule that stands in both is the other's: its line is where it stands now."""
    (_, allowed), (known, _) = split_rules(one), split_rules(other)
    kept = [rule for rule in one if rule.kind is not RuleKind.ALLOW and (rule.kind, rule.text) not in known]
    return (*kept, *(rule for rule in other if rule.kind is not RuleKind.ALLOW or (rule.kind, rule.text) in allowed))


def split_rules(
    rules: Sequence[Rule | RuleText],
) -> tuple[frozenset[tuple[RuleKind, str]], frozenset[tuple[RuleKind, str]]]:
    """What forbids, and what allows."""
    every = [(rule.kind, rule.text) for rule in rules]
    return (
        frozenset(one for one in every if one[0] is not RuleKind.ALLOW),
        frozenset(one for one in every if one[0] is RuleKind.ALLOW),
    )
