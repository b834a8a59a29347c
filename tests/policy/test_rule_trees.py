"""Do rules about paths hold for what a call takes along, and for what it comes across, without being named?"""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from mcp_server.model.policy import Policy, RuleKind, Rules
from mcp_server.model.tools import Tool
from mcp_server.policy.rule_trees import MAX_ENTRIES, build_hidden_test, find_paths_beneath, has_tree_rules
from mcp_server.policy.rules import compile_rules
from tests.policy import world
from tools.catalog import CATALOG, READ_LINE

TOOLS = {tool.name: tool for tool in CATALOG}
MOVE, GREP, READ = TOOLS["fs_move"], TOOLS["grep"], TOOLS["Read"]
CALL = {"source": "src", "destination": "old"}


def policy(**rules: Sequence[str]) -> Policy:
    compiled = compile_rules(world.texts(dict(rules)), TOOLS, READ_LINE)
    assert isinstance(compiled, Rules), compiled
    return replace(world.policy(), tools=TOOLS, rules=compiled)


def names(folder: str, most: int) -> tuple[str, ...] | None:
    assert most == MAX_ENTRIES
    return {"src": ("a.py", "secret/key.txt")}.get(folder, ())


def beneath(made: Policy, tool: Tool = MOVE) -> list[tuple[RuleKind | None, str]]:
    return [(one.rule and one.rule.kind, one.path) for one in find_paths_beneath(tool, [CALL], made, names)]


@pytest.mark.parametrize("kind", [RuleKind.DENY, RuleKind.ASK])
def test_who_moves_a_folder_moves_what_a_rule_is_about(kind: RuleKind) -> None:
    made = policy(**{kind: ["fs_move(src/secret/**)"]})
    assert has_tree_rules(MOVE, made)
    assert beneath(made) == [(kind, "src/secret/key.txt")]


def test_where_it_goes_to_is_asked_about_as_well() -> None:
    assert beneath(policy(deny=["fs_move(destination glob 'old/secret/**')"])) == [
        (RuleKind.DENY, "src/secret/key.txt")
    ]


def test_no_rule_and_no_rule_that_allows_reaches_below() -> None:
    assert not has_tree_rules(MOVE, policy())
    assert beneath(policy(allow=["fs_move(src/secret/**)"])) == []
    assert beneath(policy(deny=["fs_move(docs/**)"])) == []


def test_a_tree_too_large_to_look_through_is_said_to_be() -> None:
    made = policy(deny=["fs_move(src/secret/**)"])
    (large,) = find_paths_beneath(MOVE, [CALL], made, lambda _folder, _most: None)
    assert (large.rule, large.path) == (None, "src")


def test_what_may_not_be_named_is_not_shown() -> None:
    is_hidden = build_hidden_test(READ, [{"file_path": "a"}], policy(deny=["Read(src/secret/**)"]))
    assert is_hidden is not None
    assert is_hidden("src/secret/key.txt")
    assert not is_hidden("src/a.py")
    assert build_hidden_test(READ, [{"file_path": "a"}], policy(deny=["Read"])) is None
    assert build_hidden_test(READ, [{"file_path": "a"}], policy()) is None


def test_what_was_asked_and_answered_hides_nothing_more() -> None:
    made = policy(ask=["Read(src/secret/**)"])
    assert build_hidden_test(READ, [{"file_path": "src/secret/key.txt"}], made) is None
    assert build_hidden_test(READ, [{"file_path": "src/a.py"}], made) is not None
