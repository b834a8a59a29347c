"""Is it said which tool may have been meant, and which may not be carried?"""

from typing import Any

import pytest

from mcp_server.calls.resolver import build_unknown_tool_problem, resolve_links, unpack_carried_call
from mcp_server.config.load import Configuration, load_configuration
from mcp_server.model.policy import Policy
from mcp_server.model.results import Code, Problem
from mcp_server.settings import read_settings
from tests.clients.served import environment
from tests.policy import world

ROOT = "/work"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """The shipped one, with the carriers in it."""
    work, home = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("home")
    found = load_configuration(read_settings({"workspace": str(work)}, environment(home)))
    assert isinstance(found, Configuration)
    return found.policy


def test_a_name_nearby_is_offered_and_no_other(policy: Policy) -> None:
    near = build_unknown_tool_problem("Raed", policy)
    assert near.code is Code.UNKNOWN_TOOL
    assert "Did you mean `Read`?" in near.message
    assert "Did you mean" not in build_unknown_tool_problem("xyzzy", policy).message
    assert len(build_unknown_tool_problem("x" * 10_000, policy).message) < 1_000


@pytest.mark.parametrize(
    ("carrier", "given", "code"),
    [
        ("menu_call", {"tool": "menu_enter", "arguments": {}}, Code.NOT_CARRIED),
        ("menu_call", {"tool": "menu_call", "arguments": {}}, Code.NOT_CARRIED),
        ("menu_call", {"tool": "no_such_tool", "arguments": {}}, Code.UNKNOWN_TOOL),
        ("menu_call", {"arguments": {}}, Code.INVALID_ARGUMENTS),
        ("menu_read", {"tool": "bash", "arguments": {"command": "ls"}}, Code.NOT_READ_ONLY),
    ],
)
def test_what_may_not_be_carried(carrier: str, given: dict[str, Any], code: Code, policy: Policy) -> None:
    problem = unpack_carried_call(policy.tools[carrier], given, policy, ROOT)
    assert isinstance(problem, Problem)
    assert problem.code is code
    assert problem.way_out


def test_a_carried_call_is_the_tools_own(policy: Policy) -> None:
    given = {"tool": "Read", "arguments": {"file_path": "/work/notes.md"}}
    carried = unpack_carried_call(policy.tools["menu_read"], given, policy, ROOT)
    assert not isinstance(carried, Problem)
    tool, arguments = carried
    assert tool.name == "Read"
    assert arguments["file_path"] == "notes.md"


def test_links_are_resolved_where_a_rule_could_care() -> None:
    leads = {"link.md": "secret/a.md"}
    ruled = world.policy({"deny": ["Read(secret/**)"]})
    read = ruled.tools["Read"]

    def resolve(path: str, policy: Policy) -> Any:
        return resolve_links(read, {"file_path": path}, policy, lambda one: leads.get(one, one), ROOT)

    assert resolve("link.md", ruled) == {"file_path": "secret/a.md"}
    assert resolve("notes.md", ruled) is None
    assert resolve("link.md", world.policy()) is None
