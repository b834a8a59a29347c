"""Is a rule added to the operator's file, and is every other character of it left alone?"""

import difflib
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcp_server.config.faults import FaultCollector
from mcp_server.config.operator import read_operator_config
from mcp_server.config.operator_edit import UneditableLayout, add_workspace_rule, format_workspace_rule
from mcp_server.model.policy import RuleKind
from tests.sizes import scale

WORK = "/home/ada/my shop"
RULE = 'bash(command eq "it\'s # a: b" and nothing else)'
WRITTEN = "'bash(command eq \"it''s # a: b\" and nothing else)'"
BLOCK = f"workspaces:\n  '{WORK}':\n    rules:\n      allow:\n        - {WRITTEN}\n"
FLOW = f"workspaces: {{'{WORK}': {{rules: {{allow: [{WRITTEN}]}}}}}}"


def rules(text: str, workspace: str = WORK) -> list[tuple[RuleKind, str]]:
    findings = FaultCollector()
    config = read_operator_config(Path("menugate.yaml"), findings, None, text, Path(workspace))
    assert findings.faults() == ()
    return [(rule.kind, rule.text) for rule in config.rules]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("# mine\n", f"# mine\n{BLOCK}"),
        ("{}\n", f"{{{FLOW}}}\n"),
        ("glance: off", f"glance: off\n{BLOCK}"),
        ("---\nglance: off\n...\n", f"---\nglance: off\n{BLOCK}...\n"),
        ("rules:\n  deny:\n  - Write # no\n# end\n", f"rules:\n  deny:\n  - Write # no\n{BLOCK}# end\n"),
        ("workspaces: {}\nglance: off\n", f"{FLOW}\nglance: off\n"),
        (
            "workspaces:\n  /other:\n    rules: {deny: [Write]}  # c\nglance: off\n",
            "workspaces:\n  /other:\n    rules: {deny: [Write]}  # c\n"
            f"{BLOCK.removeprefix('workspaces:' + chr(10))}glance: off\n",
        ),
        (
            f"workspaces:\n    {WORK}/:\n        rules:\n            allow:\n            - Read # y\n            # x\n",
            f"workspaces:\n    {WORK}/:\n        rules:\n            allow:\n            - Read # y\n"
            f"            - {WRITTEN}\n            # x\n",
        ),
        (
            f"workspaces:\n  {WORK}:\n    rules:\n      allow:\n        - rule: Read\n          reason: >-\n"
            "            long\n            text\n\n        # after\n      deny: []\n",
            f"workspaces:\n  {WORK}:\n    rules:\n      allow:\n        - rule: Read\n          reason: >-\n"
            f"            long\n            text\n        - {WRITTEN}\n\n        # after\n      deny: []\n",
        ),
        (
            f"workspaces: {{{WORK}: {{rules: {{allow: [a, # c\n  ]}}}}}}\n",
            f"workspaces: {{{WORK}: {{rules: {{allow: [a, {WRITTEN}, # c\n  ]}}}}}}\n",
        ),
        (
            f"workspaces:\r\n  {WORK}:\r\n    rules:\r\n      allow:\r\n        - Read\r\nglance: off\r\n",
            f"workspaces:\r\n  {WORK}:\r\n    rules:\r\n      allow:\r\n        - Read\r\n        - {WRITTEN}\r\n"
            "glance: off\r\n",
        ),
        (
            f"workspaces:\n  {WORK}:\n    rules:\n      deny: [Write]\n",
            f"workspaces:\n  {WORK}:\n    rules:\n      deny: [Write]\n      allow:\n        - {WRITTEN}\n",
        ),
    ],
)
def test_where_the_rule_is_written(before: str, after: str) -> None:
    assert add_workspace_rule(before, WORK, RULE) == after
    assert (RuleKind.ALLOW, RULE) in rules(after)


def test_the_section_can_be_shown_by_itself() -> None:
    assert format_workspace_rule(WORK, RULE) == BLOCK


@pytest.mark.parametrize(
    "text",
    [
        "workspaces: x\n",
        "- a\n",
        f"workspaces:\n  {WORK}:\n    rules:\n      allow: x\n",
        "a: &x 1\nb: *x\n",
        # A rule between the text and its last blank lines would change the text.
        f"workspaces:\n  {WORK}:\n    rules:\n      allow:\n      - |+\n        a\n\n\n",
    ],
)
def test_a_layout_without_a_safe_place_is_left_alone(text: str) -> None:
    with pytest.raises(UneditableLayout):
        add_workspace_rule(text, WORK, RULE)


LINE = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
TEXTS = st.lists(LINE, max_size=3, unique=True)
LISTS = st.fixed_dictionaries({}, optional={"deny": TEXTS, "allow": TEXTS})
SECTION = st.fixed_dictionaries({"rules": LISTS})
SECTIONS = st.dictionaries(st.sampled_from([WORK, f"{WORK}/", "/other", "/a: b"]), SECTION, max_size=3)
FILES = st.fixed_dictionaries({}, optional={"rules": LISTS, "workspaces": SECTIONS, "glance": st.just("off")})


@pytest.mark.heavy
@settings(max_examples=scale(2_000), deadline=None, derandomize=True)
@given(FILES, st.integers(2, 6), st.sampled_from([None, True, False]), st.sampled_from(["", "\n", "  # why"]), LINE)
def test_whatever_the_file_says_stays(
    said: dict[str, object], indent: int, flow: bool | None, comment: str, rule: str
) -> None:
    dumped = yaml.safe_dump(said, indent=indent, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    lines = dumped.splitlines()
    before = "".join(f"{line}{comment if line.endswith(':') else ''}\n" for line in ["# mine", *lines, "# the end"])
    findings = FaultCollector()
    read_operator_config(Path("menugate.yaml"), findings, None, before, Path(WORK))
    assume(not findings.faults())
    known = rules(before)
    assume((RuleKind.ALLOW, rule) not in known)
    after = add_workspace_rule(before, WORK, rule)
    assert sorted(rules(after)) == sorted([*known, (RuleKind.ALLOW, rule)])
    assert rules(after, "/other") == rules(before, "/other")
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    assert {name for name, *_ in changes} <= {"equal", "insert"}
