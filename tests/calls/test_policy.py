"""What holds while somebody may still be writing? What either file forbids is forbidden."""

from msgspec.structs import replace

from mcp_server.config.merge import combine_policies
from mcp_server.model.policy import Budget, Policy, RuleKind, Rules, RuleText
from mcp_server.model.posture import Profile
from mcp_server.policy.rules import compile_rules
from tests.policy.world import policy, tools
from tools.catalog import READ_LINE


def under(ceiling: Profile, calls: int | None, **lists: list[str]) -> Policy:
    texts = [RuleText(RuleKind(kind), text, "r") for kind, rules in lists.items() for text in rules]
    rules = compile_rules(texts, tools(), READ_LINE)
    assert isinstance(rules, Rules), rules
    return replace(policy(), rules=rules, ceiling=ceiling, budget=Budget(calls=calls))


def test_what_either_forbids_is_forbidden_and_what_both_allow_is_allowed() -> None:
    before = under(Profile.TRUSTED, None, deny=["Write"], allow=["Read", "grep"])
    now = under(Profile.NORMAL, 5, ask=["Edit"], allow=["grep", "bash"])
    for one, other in ((before, now), (now, before)):
        found = combine_policies(one, other)
        assert {(rule.kind, rule.text) for rule in found.rules.every} == {
            (RuleKind.DENY, "Write"),
            (RuleKind.ASK, "Edit"),
            (RuleKind.ALLOW, "grep"),
        }
        assert (found.ceiling, found.budget.calls) == (Profile.NORMAL, 5)
