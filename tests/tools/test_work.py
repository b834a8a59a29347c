"""Are the todos and the phases' tools what the policy table says they are, and do their arguments ask for no less?"""

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.tools import READING, Tool
from tests.policy.world import tools
from tests.tools.packs import tools_of
from tools.todos.criteria import escape_pattern

RUNS = {"content": "x", "acceptance_criteria": [{"type": "test_passes", "params": {"test": "t.T.t"}}]}
LOOKS = {"content": "x", "acceptance_criteria": [{"type": "file_exists", "params": {"path": "a"}}]}


@pytest.mark.parametrize("tool", tools_of("todos", "phases"), ids=lambda tool: tool.name)
def test_each_is_as_the_policy_table_has_it(tool: Tool) -> None:
    told = tools()[tool.name]
    for name in ("profile", "effect", "hints", "stages"):
        assert getattr(tool, name) == getattr(told, name), name
    assert len(tool.description.encode()) <= 1024


def test_what_runs_something_needs_the_profile_for_it_from_the_start() -> None:
    create, _, _, claim, _ = tools_of("todos")
    for tool, arguments, least in (
        (create, RUNS, Profile.NORMAL),
        (create, LOOKS, Profile.RESTRICTED),
        (create, {"content": "x"}, Profile.RESTRICTED),
        (claim, {"id": "a", "explanation": "x", "auto_verify": True}, Profile.NORMAL),
        (claim, {"id": "a", "explanation": "x"}, Profile.RESTRICTED),
    ):
        demand = tool.get_demand(arguments)
        assert demand.profile is least
        assert demand.effect in READING


def test_a_text_is_looked_for_as_it_is() -> None:
    assert escape_pattern("a+b (c) [d] {e} $f^g|h.i*j?k\\l") == r"a\+b \(c\) \[d\] \{e\} \$f\^g\|h\.i\*j\?k\\l"
