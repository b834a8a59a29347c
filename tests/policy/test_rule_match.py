"""Does a condition hold for the calls it should, and narrow where it cannot be told?"""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.policy import RuleKind, Rules, RuleText
from mcp_server.model.tools import RuleSubject
from mcp_server.policy import rule_match
from mcp_server.policy.rule_match import build_condition
from mcp_server.policy.rule_syntax import parse_rule
from mcp_server.policy.rules import compile_rules
from tests.policy.world import compiled, known, speaks, spoken, table, tools
from tests.sizes import scale
from tools.catalog import READ_LINE


@pytest.mark.parametrize(
    "case", table("rules"), ids=lambda case: spoken(f"{case['kind']} {case['rule']} {case['tool']}")
)
def test_what_a_rule_speaks_about(case: Mapping[str, Any]) -> None:
    assert case.keys() <= {"kind", "rule", "tool", "speaks", "silent"}
    rules = compiled(case["kind"], case["rule"])
    wanted = {str(call): True for call in case.get("speaks", ())} | {
        str(call): False for call in case.get("silent", ())
    }
    calls = [*case.get("speaks", ()), *case.get("silent", ())]
    assert {str(call): speaks(rules, case["kind"], case["tool"], call) for call in calls} == wanted


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ("bash(git push:*)", "git"),
        ("bash(/usr/bin/Git push)", "git"),
        ("bash(*)", None),
        ("bash(g* push)", None),
        ("Read(src/**)", "src"),
        ("Read(**/Secrets/*.key)", "secrets"),
        ("Read(*.key)", None),
        ("Read({a,b}/c)", None),
        ("Read(/etc/**)", "etc"),
        ("Read(/work/src/**)", "src"),
        ("git_commit(wip*)", None),
        ("Read", None),
        ("Read(limit gt 5)", None),
        ("mcp_tool(call)", None),
    ],
)
def test_the_word_a_rule_is_found_by(rule: str, word: str | None) -> None:
    assert compiled("deny", rule).every[0].word == word


def test_a_rule_about_tools_of_several_kinds_is_found_by_no_word() -> None:
    (rule,) = compiled("deny", "[bR]*(git)").every
    assert rule.word is None
    assert rule.names("bash")
    assert rule.names("Read")


def test_a_regex_that_takes_too_long_matches_where_a_rule_narrows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_match, "REGEX_SECONDS", 0.000001)
    text = {"command": "a" * 5_000}
    for cautious in (True, False):
        holds = build_condition(
            parse_rule("bash(command regex '(a|aa)+$x')"), cautious, READ_LINE, [RuleSubject.COMMAND]
        )
        assert holds
        assert holds(tools()["bash"], text) is cautious


def test_what_is_too_long_to_be_read_matches_where_a_rule_narrows() -> None:
    for text in ("bash(git push:*)", "bash(command glob 'git*')"):
        for cautious in (True, False):
            holds = build_condition(parse_rule(text), cautious, READ_LINE, [RuleSubject.COMMAND])
            assert holds
            assert holds(tools()["bash"], {"command": "a" * 70_000}) is cautious
            assert holds(tools()["bash"], {"command": "echo " + "$(" * 20 + ")" * 20}) is (cautious and "push" in text)


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(st.text(alphabet="git push'\"$(){}\\;&|\n`<>#a=", max_size=40), st.sampled_from(["git", "git push"]))
def test_what_is_allowed_by_its_words_is_found_by_its_words(command: str, prefix: str) -> None:
    """The careful reading sees whatever the literal one sees, so that the same words deny more than they allow."""
    literal, careful = (
        build_condition(parse_rule(f"bash({prefix}:*)"), cautious, READ_LINE, [RuleSubject.COMMAND])
        for cautious in (False, True)
    )
    assert literal
    assert careful
    call = {"command": command}
    assert literal(tools()["bash"], call) <= careful(tools()["bash"], call)


@pytest.mark.heavy
@settings(max_examples=scale(300), deadline=None, derandomize=True)
@given(
    st.sampled_from(["bash", "Read", "git_add"]),
    st.text(alphabet="aBc*?/. {},:[]", min_size=1, max_size=12),
    st.text(alphabet="abC/. ;$*'", max_size=16),
    st.sampled_from(["deny", "allow"]),
)
def test_a_rule_that_applies_is_found_by_its_word(name: str, specifier: str, text: str, kind: str) -> None:
    rules = compile_rules([RuleText(RuleKind(kind), f"{name}({specifier})", "r:1")], known(), READ_LINE, roots=("/a",))
    if isinstance(rules, Rules):
        speaks(rules, kind, name, {"files": ["b", text]} if name == "git_add" else text)
