"""What is allowed if several versions of the configuration apply at once? Only what all of them allow."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from mcp_server.config.limits import get_lower_profile
from mcp_server.config.load import Configuration, narrow_budget
from mcp_server.config.operator import OperatorConfig
from mcp_server.config.workspace import WorkspaceConfig
from mcp_server.model.policy import Policy, Rule, RuleKind, Rules, RuleText
from mcp_server.model.posture import PostureChoice, Profile

Ruled = TypeVar("Ruled", Rule, RuleText)


def is_as_strict_as(one: OperatorConfig | WorkspaceConfig, other: OperatorConfig | WorkspaceConfig) -> bool:
    """Whether `one` forbids everything that `other` forbids."""
    (forbids, allows), (other_forbids, other_allows) = split_rules(one.rules), split_rules(other.rules)
    rest = [(each.posture, each.tokens) for each in (one, other) if isinstance(each, OperatorConfig)]
    return (
        other_forbids <= forbids
        and allows <= other_allows
        and get_lower_profile(one.max_profile, other.max_profile) is one.max_profile
        and narrow_budget(one.budget, other.budget) == one.budget
        and len({repr(each) for each in rest}) < 2
    )


def combine_configurations(configurations: Sequence[Configuration]) -> Configuration:
    """Return the last one, narrowed by everything that an earlier one forbids."""
    combined = configurations[0]
    for configuration in configurations[1:]:
        config, earlier, own = configuration.library.config, combined.library.config, configuration.own
        # A principal that was removed can still connect until the next start, but only at the lowest profile.
        profiles = {token.principal: token.max_profile for token in config.tokens}
        tokens = (
            replace(
                token,
                max_profile=get_lower_profile(token.max_profile, profiles.get(token.principal, Profile.RESTRICTED)),
            )
            for token in earlier.tokens
        )
        config = replace(
            config,
            rules=combine_rules(earlier.rules, config.rules),
            max_profile=get_lower_profile(config.max_profile, earlier.max_profile),
            tokens=tuple(tokens),
        )
        policy = combine_policies(combined.policy, configuration.policy)
        claims = PostureChoice.build_from_posture(combined.posture).axes
        posture = PostureChoice(claims=claims).apply_to(configuration.posture)
        combined = replace(
            configuration,
            library=replace(configuration.library, config=config),
            own=replace(own, rules=combine_rules(combined.own.rules, own.rules)),
            policy=policy,
            posture=posture.cap_profile(policy.ceiling),
        )
    return combined


def combine_policies(one: Policy, other: Policy) -> Policy:
    """Forbid what either forbids, and allow only what both allow."""
    rules = Rules(combine_rules(one.rules.every, other.rules.every))
    ceiling, budget = get_lower_profile(one.ceiling, other.ceiling), narrow_budget(one.budget, other.budget)
    return replace(other, rules=rules, ceiling=ceiling, budget=budget)


def combine_rules(one: Sequence[Ruled], other: Sequence[Ruled]) -> tuple[Ruled, ...]:
    """Combine the rules; one that is in both is taken from `other`, because its line number is current."""
    (_, allowed), (narrowing, _) = split_rules(one), split_rules(other)
    extra = [rule for rule in one if rule.kind is not RuleKind.ALLOW and (rule.kind, rule.text) not in narrowing]
    return (*extra, *(rule for rule in other if rule.kind is not RuleKind.ALLOW or (rule.kind, rule.text) in allowed))


def split_rules(
    rules: Sequence[Rule | RuleText],
) -> tuple[frozenset[tuple[RuleKind, str]], frozenset[tuple[RuleKind, str]]]:
    """Return the rules that narrow, and those that allow."""
    pairs = frozenset((rule.kind, rule.text) for rule in rules)
    allowing = frozenset(pair for pair in pairs if pair[0] is RuleKind.ALLOW)
    return pairs - allowing, allowing
