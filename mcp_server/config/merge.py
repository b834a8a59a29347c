"""What holds by several versions of the same files? Whatever any of them forbids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from mcp_server.config.load import Configuration, lowest, narrower
from mcp_server.config.operator import OperatorConfig
from mcp_server.config.workspace import WorkspaceConfig
from mcp_server.model.policy import Policy, Rule, RuleKind, Rules, RuleText
from mcp_server.model.posture import PostureChoice, Profile

Ruled = TypeVar("Ruled", Rule, RuleText)


def covers(one: OperatorConfig | WorkspaceConfig, other: OperatorConfig | WorkspaceConfig) -> bool:
    """Does the one forbid whatever the other forbids?"""
    (forbids, allows), (forbade, allowed) = sorted_out(one.rules), sorted_out(other.rules)
    low = lowest(one.max_profile, other.max_profile) is one.max_profile
    rest = [(each.posture, each.tokens) for each in (one, other) if isinstance(each, OperatorConfig)]
    alike = len({repr(each) for each in rest}) < 2
    low = low and narrower(one.budget, other.budget) == one.budget
    return forbade <= forbids and allows <= allowed and low and alike


def together(laws: Sequence[Configuration]) -> Configuration:
    """The last of these under whatever any of them forbids; only what all of them allow is allowed."""
    found = laws[0]
    for now in laws[1:]:
        config, then, own = now.library.config, found.library.config, now.own
        # Who is struck off the list comes in until the next start, and does as little as there is until then.
        known = {one.principal: one.max_profile for one in config.tokens}
        tokens = (
            replace(one, max_profile=lowest(one.max_profile, known.get(one.principal, Profile.RESTRICTED)))
            for one in then.tokens
        )
        config = replace(
            config,
            rules=of_both(then.rules, config.rules),
            max_profile=lowest(config.max_profile, then.max_profile),
            tokens=tuple(tokens),
        )
        policy = both(found.policy, now.policy)
        least = PostureChoice(claims=PostureChoice.whole(found.posture).axes).over(now.posture)
        found = replace(
            now,
            library=replace(now.library, config=config),
            own=replace(own, rules=of_both(found.own.rules, own.rules)),
            policy=policy,
            posture=least.capped(policy.ceiling),
        )
    return found


def both(one: Policy, other: Policy) -> Policy:
    """What either forbids is forbidden, and only what both allow is allowed."""
    rules = Rules(of_both(one.rules.every, other.rules.every))
    ceiling, budget = lowest(one.ceiling, other.ceiling), narrower(one.budget, other.budget)
    return replace(other, rules=rules, ceiling=ceiling, budget=budget)


def of_both(one: Sequence[Ruled], other: Sequence[Ruled]) -> tuple[Ruled, ...]:
    """A rule that stands in both is the other's: its line is where it stands now."""
    (_, allowed), (known, _) = sorted_out(one), sorted_out(other)
    kept = [rule for rule in one if rule.kind is not RuleKind.ALLOW and (rule.kind, rule.text) not in known]
    return (*kept, *(rule for rule in other if rule.kind is not RuleKind.ALLOW or (rule.kind, rule.text) in allowed))


def sorted_out(
    rules: Sequence[Rule | RuleText],
) -> tuple[frozenset[tuple[RuleKind, str]], frozenset[tuple[RuleKind, str]]]:
    """What forbids, and what allows."""
    every = [(rule.kind, rule.text) for rule in rules]
    return (
        frozenset(one for one in every if one[0] is not RuleKind.ALLOW),
        frozenset(one for one in every if one[0] is RuleKind.ALLOW),
    )
