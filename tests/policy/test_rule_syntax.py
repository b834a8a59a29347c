"""What do rules speak about, and which are refused?"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_server.model.policy import RuleKind, Rules, RuleText
from mcp_server.model.posture import Profile
from mcp_server.model.tools import RuleSubject, Tool
from mcp_server.policy import rule_match
from mcp_server.policy.globs import Impossible, compile_path_glob, compile_text_glob, split_path
from mcp_server.policy.rule_match import build_condition, find_call_words
from mcp_server.policy.rule_syntax import MalformedRule, ParsedRule, Predicate, PredicateOperator, parse_rule
from mcp_server.policy.rules import RuleFault, compile_rules
from tests.policy.world import spoken, table, tools
from tests.policy.world import texts as listed
from tools.catalog import READ_LINE

SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "kind": {"enum": ["web", "news"]},
        "depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "flag": {"type": ["boolean", "null"]},
        "filter": {"anyOf": [{"type": "object", "properties": {"language": {"type": "string"}}}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
}


def known() -> dict[str, Tool]:
    """The tools of the table and one of an upstream, whose schema is its own."""
    upstream = replace(
        tools()["Read"],
        name="acme_search",
        written="acme:search",
        arguments=SEARCH,
        subject=None,
        profile=Profile.TRUSTED,
    )
    return {**tools(), "acme_search": upstream}


def compiled(kind: str, text: str) -> Rules:
    rules = compile_rules([RuleText(RuleKind(kind), text, "rules.yaml:1")], known(), READ_LINE, roots=("/work",))
    assert isinstance(rules, Rules), rules
    return rules


def speaks(rules: Rules, kind: str, name: str, call: Any) -> bool:
    tool = known()[name]
    arguments: Any = {tool.subject[0]: call} if isinstance(call, str) and tool.subject else call
    every = [
        rule
        for rule in rules.find_for_tool(name, RuleKind(kind))
        if rule.applies is None or rule.applies(tool, arguments)
    ]
    found = rules.find_for_call(name, RuleKind(kind), find_call_words(tool, arguments, READ_LINE))
    assert set(every) <= set(found), "a rule that applies is not found by its word"
    return bool(every)


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


def test_what_a_text_is_taken_apart_into() -> None:
    assert parse_rule("server:tool(a.b-c gt -1.5 and d in ['x\\'y', \"\\u00e9\", 2])") == ParsedRule(
        "server:tool",
        None,
        (Predicate(("a", "b-c"), PredicateOperator.GT, -1.5), Predicate(("d",), PredicateOperator.IN, ["x'y", "é", 2])),
    )
    assert parse_rule("bash('a eq b')") == ParsedRule("bash", "a eq b")
    assert parse_rule("bash(echo (a))") == ParsedRule("bash", "echo (a)")
    assert parse_rule('bash("a\nb")') == ParsedRule("bash", "a\nb")
    assert parse_rule("mcp__s__t__u") == ParsedRule("s:t__u")


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


def test_hostile_patterns_and_texts_take_no_time() -> None:
    fits = compile_text_glob("*a*a*a*a*a*a*a*a*b", cautious=True)
    assert fits("a" * 60_000) is False
    deep = compile_path_glob("**/a/**/a/**/a/**/b", cautious=True)
    assert deep("a/" * 30_000) is False


def test_lexical_paths() -> None:
    assert split_path("./a//b/../c/.") == ("a", "c")
    assert split_path("../../a") == ("..", "..", "a")
    assert split_path("a/../../b") == ("..", "b")
    assert split_path("/../a") == ("/", "a")
    assert split_path("/w/x/a", ("/w/x/",)) == ("a",)
    assert split_path("/w/xy/a", ("/w/x",)) == ("/", "w", "xy", "a")
    assert split_path("") == ()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(alphabet="ab(){}[]*?:. /\"'\\,-~!\n eqgtinandexists01", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_rule_or_a_fault(text: str) -> None:
    got = compile_rules(
        [RuleText(RuleKind.DENY, f"bash({text})", "r:1"), RuleText(RuleKind.ALLOW, text, "r:2")], known(), READ_LINE
    )
    assert isinstance(got, Rules) or all(fault.message for fault in got)


@settings(max_examples=300, deadline=None, derandomize=True)
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


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(alphabet="ab*?/.", min_size=1, max_size=12), st.text(alphabet="ab/.", max_size=16))
def test_a_path_that_is_allowed_by_a_pattern_is_denied_by_it(pattern: str, path: str) -> None:
    try:
        literal, careful = compile_path_glob(pattern, False), compile_path_glob(pattern, True)
    except Impossible:
        return
    assert bool(literal(path)) <= bool(careful(path))


@settings(max_examples=300, deadline=None, derandomize=True)
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


def test_malformed_text_says_where() -> None:
    with pytest.raises(MalformedRule, match="`now` is left over"):
        parse_rule("bash(timeout gt 1 now)")
