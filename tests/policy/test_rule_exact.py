"""Does the rule for one call match that call, and no other?"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcp_server.model.policy import RuleKind, Rules, RuleText
from mcp_server.model.tools import Arguments, Tool
from mcp_server.policy.arguments import build_argument_check
from mcp_server.policy.paths import normalize_path
from mcp_server.policy.rule_exact import InexactRule, write_exact_rule
from mcp_server.policy.rules import compile_rules
from tests.sizes import scale
from tools.catalog import CATALOG, READ_LINE

OURS = {tool.name: tool for tool in CATALOG}
ROOT = "/work"


def upstream(properties: Mapping[str, Any], **more: Any) -> Tool:
    schema = {"type": "object", "properties": properties, **more}
    return replace(OURS["Read"], name="acme_do", written="acme:do", subject=None, paths=(), arguments=schema)


def applies(text: str, tool: Tool, arguments: Arguments) -> bool:
    compiled = compile_rules([RuleText(RuleKind.ALLOW, text, "r:1")], {tool.name: tool}, READ_LINE, roots=(ROOT,))
    assert isinstance(compiled, Rules), compiled
    (rule,) = compiled.every
    return rule.applies is None or rule.applies(tool, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments", "free", "rule"),
    [
        ("bash", {"command": "make test"}, (), 'bash(command eq "make test" and exec_dir eq "." and nothing else)'),
        (
            "bash",
            {"command": 'a "b"\n\u202ec', "exec_dir": "web", "timeout": 5, "run_in_background": True},
            (),
            'bash(command eq "a \\"b\\"\\n\\u202ec" and exec_dir eq "web" and run_in_background eq true'
            " and nothing else)",
        ),
        (
            "Write",
            {"file_path": "docs/a.md", "content": "x"},
            ("content",),
            'Write(file_path eq "docs/a.md")',
        ),
        (
            "git_add",
            {"files": ["a", "/etc/b"], "repo_path": "sub"},
            (),
            'git_add(files eq ["sub/a", "/etc/b"] and repo_path eq "sub" and nothing else)',
        ),
    ],
)
def test_what_the_rule_says(tool: str, arguments: Arguments, free: tuple[str, ...], rule: str) -> None:
    assert write_exact_rule(OURS[tool], arguments, free) == rule
    assert applies(rule, OURS[tool], arguments)


@pytest.mark.parametrize(
    ("properties", "arguments", "why"),
    [
        ({"a": {}}, {"a": "x"}, "from a list of it"),
        ({"a": {"type": ["string", "array"]}}, {"a": "x"}, "from a list of it"),
        ({"a": {"anyOf": [{"type": "string"}, {"$ref": "#/b"}]}}, {"a": "x"}, "from a list of it"),
        ({"a": {"type": "object"}}, {"a": {"b": 1}}, "cannot contain the value"),
        ({"a": {"type": "array"}}, {"a": [[1]]}, "a list of lists"),
        ({"a": {"type": "number"}}, {"a": 1e300}, "cannot contain the value"),
        ({"a": {"type": "integer"}}, {"a": 10**19}, "cannot contain the value"),
        ({"a b": {"type": "string"}}, {"a b": "x"}, "cannot name the argument"),
        ({"a.b": {"type": "string"}}, {"a.b": "x"}, "cannot name the argument"),
        ({}, {"more": "x"}, "cannot name the argument"),
        ({}, {}, "arguments that it does not declare"),
    ],
)
def test_there_is_no_rule_that_would_match_more(properties: Mapping[str, Any], arguments: Arguments, why: str) -> None:
    with pytest.raises(InexactRule, match=why):
        write_exact_rule(upstream(properties), arguments)


def test_a_tool_without_arguments_needs_no_more_than_its_name() -> None:
    assert write_exact_rule(upstream({}, additionalProperties=False), {}) == "acme:do"


WORDS = st.one_of(st.sampled_from(["make", "rm -rf x", ".", "sub", "a'b\"c\\", "x\ty\n"]), st.text(max_size=8))
PATHS = st.sampled_from([".", "a", "sub/a", "sub/../a", "./a", "A", "/etc/a", f"{ROOT}/a", "a/", "a b"])
TEXT = {"type": "string"}
KINDS: Mapping[str, tuple[Mapping[str, Any], st.SearchStrategy[Any]]] = {
    "text": (TEXT, WORDS),
    "default": ({"type": "string", "default": "d"}, st.one_of(st.just("d"), WORDS)),
    "whole": ({"type": "integer"}, st.integers(-3, 3)),
    "number": ({"type": "number"}, st.sampled_from([0, 1, 1.0, 1.5, -2.25])),
    "flag": ({"type": "boolean", "default": False}, st.booleans()),
    "list": ({"type": "array", "items": TEXT}, st.lists(WORDS, max_size=3)),
    "choice": ({"enum": ["x", "y", None]}, st.sampled_from(["x", "y", None])),
    "any": ({}, st.one_of(WORDS, st.integers(), st.lists(WORDS, max_size=2))),
}
CALLS = st.fixed_dictionaries({}, optional={name: one for name, (_, one) in KINDS.items()})
STRAY = st.fixed_dictionaries({}, optional={"stray": WORDS})
BASH = st.fixed_dictionaries(
    {"command": WORDS.filter(bool)},
    optional={
        "exec_dir": PATHS,
        "bash_id": WORDS.filter(bool),
        "run_in_background": st.booleans(),
        "timeout": st.integers(0, 9),
        "description": WORDS.filter(bool),
    },
)
ADD = st.fixed_dictionaries({"files": st.lists(PATHS, max_size=3)}, optional={"repo_path": PATHS})


def meaning(tool: Tool, arguments: Arguments) -> Any:
    """What decides what the call does: two calls with the same are the same."""

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [plain(name, one) for one in value]  # pyright: ignore[reportUnknownVariableType]  # any JSON
        if name in tool.places and isinstance(value, str):
            return normalize_path(tool.join_base_path(name, value, arguments), (ROOT,))
        return (isinstance(value, bool), value)

    properties = tool.arguments["properties"]
    defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
    return {
        name: plain(name, value) for name, value in {**defaults, **arguments}.items() if name not in tool.incidental
    }


def check_exact(tool: Tool, one: Arguments, other: Arguments) -> None:
    try:
        rule = write_exact_rule(tool, one)
    except InexactRule:
        assume(False)
        raise
    assert applies(rule, tool, one), rule
    assert applies(rule, tool, other) is (meaning(tool, one) == meaning(tool, other)), (rule, other)


@pytest.mark.heavy
@settings(max_examples=scale(4_000), deadline=None, derandomize=True)
@given(CALLS, CALLS, STRAY, st.booleans())
def test_no_other_call_of_an_upstream_matches(one: Arguments, other: Arguments, stray: Arguments, near: bool) -> None:
    tool = upstream({name: schema for name, (schema, _) in KINDS.items()})
    check_exact(tool, one, {**(one if near else {}), **other, **stray})


@pytest.mark.heavy
@settings(max_examples=scale(4_000), deadline=None, derandomize=True)
@given(BASH, BASH, st.sampled_from(["command", "exec_dir", "bash_id", "run_in_background", "timeout"]), st.booleans())
def test_no_other_line_of_shell_matches(one: Arguments, other: Arguments, name: str, single: bool) -> None:
    change = {name: other[name]} if single and name in other else {} if single else other
    check_exact(OURS["bash"], one, {**one, **change})


@pytest.mark.heavy
@settings(max_examples=scale(2_000), deadline=None, derandomize=True)
@given(ADD, ADD)
def test_no_other_list_of_paths_matches(one: Arguments, other: Arguments) -> None:
    check_exact(OURS["git_add"], one, other)


@pytest.mark.heavy
@settings(max_examples=scale(2_000), deadline=None, derandomize=True)
@given(PATHS, PATHS, WORDS, WORDS)
def test_only_the_content_of_a_file_is_left_open(path: str, other: str, text: str, text_then: str) -> None:
    tool = OURS["Write"]
    rule = write_exact_rule(tool, {"file_path": path, "content": text}, ("content",))
    same = normalize_path(path, (ROOT,)) == normalize_path(other, (ROOT,))
    assert applies(rule, tool, {"file_path": other, "content": text_then}) is same
    assert build_argument_check({"Write": tool})("Write", {"file_path": other, "content": text_then}) is None
