"""Which rules are refused, and is every fault in them said at once?"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.model.policy import RuleKind, Rules, RuleText
from mcp_server.policy.rules import RuleFault, compile_rules
from tests.policy.world import known, spoken, table
from tests.policy.world import texts as listed
from tests.sizes import scale
from tools.catalog import READ_LINE


@pytest.mark.parametrize("case", table("rule_faults"), ids=lambda case: spoken(case["rules"]))
def test_which_rules_are_refused(case: Mapping[str, Any]) -> None:
    got = compile_rules(listed(case["rules"]), known(), READ_LINE, roots=("/work",))
    if case["says"] is None:
        assert isinstance(got, Rules), got
    else:
        assert not isinstance(got, Rules)
        assert len(got) == 1
        assert case["says"] in got[0].message
        assert got[0].source == case.get("where", got[0].source)


def test_every_fault_is_reported_at_once_and_no_rule_holds() -> None:
    got = compile_rules(listed({"deny": ["Raed", "Read(", "Edit"], "allow": ["nothing"]}), known(), READ_LINE)
    assert not isinstance(got, Rules)
    assert [fault.source for fault in got] == ["rules.yaml:1", "rules.yaml:2", "rules.yaml:1"]


def test_every_rule_that_changes_nothing_is_named() -> None:
    got = compile_rules(listed({"deny": ["Read", "Read(a)", "Edit", "Edit(b)", "Edit(c)"]}), known(), READ_LINE)
    assert not isinstance(got, Rules)
    assert [fault.source for fault in got] == ["rules.yaml:2", "rules.yaml:4", "rules.yaml:5"]


def test_examples_are_checked() -> None:
    right = RuleText(
        RuleKind.DENY,
        "bash(git push:*)",
        "r:1",
        match=("git push x", {"command": "sudo git push"}),
        not_match=("git pull",),
    )
    assert isinstance(compile_rules([right], known(), READ_LINE), Rules)
    wrong = RuleText(
        RuleKind.DENY, "bash(git push:*)", "r:2", match=("git pull",), not_match=({"command": "git push"}, "git push")
    )
    assert compile_rules([wrong], known(), READ_LINE) == (
        RuleFault("r:2", "deny rule `bash(git push:*)`: its `match` example `git pull` does not match."),
        RuleFault("r:2", "deny rule `bash(git push:*)`: its `not_match` example `{'command': 'git push'}` matches."),
        RuleFault("r:2", "deny rule `bash(git push:*)`: its `not_match` example `git push` matches."),
    )
    names = RuleText(RuleKind.DENY, "git_*", "r:3", match=("git_log", {}), not_match=("Read",))
    assert isinstance(compile_rules([names], known(), READ_LINE), Rules)
    assert compile_rules([replace(names, match=("Read",))], known(), READ_LINE) != ()


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(st.text(alphabet="ab(){}[]*?:. /\"'\\,-~!\n eqgtinandexists01", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_rule_or_a_fault(text: str) -> None:
    got = compile_rules(
        [RuleText(RuleKind.DENY, f"bash({text})", "r:1"), RuleText(RuleKind.ALLOW, text, "r:2")], known(), READ_LINE
    )
    assert isinstance(got, Rules) or all(fault.message for fault in got)
