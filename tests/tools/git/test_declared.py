"""Do the git tools say about themselves what they do?"""

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.tools import ACTING, READING, REVIEWING, WARMUP, Effect, Tool
from tests.tools.git.ground import TOOLS
from tools.catalog import CATALOG

# min, read-only, destructive, idempotent, open world, effect, stages; one row a tool, in their order.
POLICY = """
git_status        R 1 0 1 0 read-local WAQ
git_diff_unstaged R 1 0 1 0 read-local WAQ
git_diff_staged   R 1 0 1 0 read-local WAQ
git_diff          R 1 0 1 0 read-local WAQ
git_commit        N 0 0 0 0 vcs-local  A
git_add           N 0 0 1 0 vcs-local  A
git_reset         N 0 1 1 0 vcs-local  A
git_log           R 1 0 1 0 read-local WAQ
git_create_branch N 0 0 0 0 vcs-local  A
git_checkout      T 0 1 1 0 vcs-local  A
git_show          R 1 0 1 0 read-local WAQ
git_branch_list   R 1 0 1 0 read-local WAQ
"""
# What callers of other git servers know: these arguments, and none of them missing.
KNOWN = {
    "git_status": {"repo_path"},
    "git_diff_unstaged": {"repo_path", "context_lines"},
    "git_diff_staged": {"repo_path", "context_lines"},
    "git_diff": {"repo_path", "target", "context_lines"},
    "git_commit": {"repo_path", "message"},
    "git_add": {"repo_path", "files"},
    "git_reset": {"repo_path"},
    "git_log": {"repo_path", "max_count", "start_timestamp", "end_timestamp"},
    "git_create_branch": {"repo_path", "branch_name", "base_branch"},
    "git_checkout": {"repo_path", "branch_name"},
    "git_show": {"repo_path", "revision"},
    "git_branch_list": {"repo_path", "show_remote"},
}
STAGES = {"W": WARMUP, "A": ACTING, "Q": REVIEWING}


def row(tool: Tool) -> str:
    hints = (tool.hints.read_only, tool.hints.destructive, tool.hints.idempotent, tool.hints.open_world)
    stages = "".join(letter for letter, stages in STAGES.items() if stages <= tool.stages)
    flags = " ".join(str(int(hint)) for hint in hints)
    return f"{tool.name} {tool.profile[0].upper()} {flags} {tool.effect} {stages}"


def test_the_policy_table() -> None:
    wanted = [" ".join(line.split()) for line in POLICY.strip().split("\n")]
    assert [row(tool) for tool in TOOLS.values()] == wanted
    assert [tool.name for tool in CATALOG if tool.name in TOOLS] == list(TOOLS)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_what_others_call_it_with_fits(tool: Tool) -> None:
    assert len(tool.description.encode()) <= 1024
    assert tool.hints.read_only == (tool.effect in READING)
    assert KNOWN[tool.name] <= tool.arguments["properties"].keys()
    assert set(tool.arguments.get("required", ())) <= KNOWN[tool.name] - {"repo_path"}


def test_some_arguments_ask_for_more() -> None:
    hooks = TOOLS["git_commit"].get_demand({"message": "x", "run_hooks": True})
    assert (hooks.effect, hooks.profile) == (Effect.EXEC, Profile.TRUSTED)
    assert TOOLS["git_add"].get_demand({"files": ["a", ".env"]}).confirm
    assert TOOLS["git_add"].get_demand({"files": ["a", "."]}).confirm is None
    assert TOOLS["git_checkout"].get_demand({"branch_name": "x", "obeyed_files": True}).confirm
    assert TOOLS["git_checkout"].get_demand({"branch_name": "x"}).confirm is None
    assert TOOLS["git_show"].get_demand({"revision": "x", "paths": ["id_rsa"]}).confirm
