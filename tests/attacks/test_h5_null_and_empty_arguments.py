"""Do our own tools work for hosts that send every optional argument, as null or as an empty string?

mcp-use and CrewAI send `menu: null`, smolagents sends `""` for whatever it leaves out. Neither says anything, except
where an empty text is a text: `content`, `old_string`, `new_string`.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served
from tests.clients.typed import typed

MEANINGFUL = {("write_to_shell", "content")}
NOTHING = [None, ""]
CALLS: dict[str, dict[str, dict[str, Any]]] = {
    "swe": {
        "Read": {"file_path": "notes.md"},
        "grep": {"pattern": "first"},
        "glob": {"pattern": "**/*.md"},
        "git_status": {},
        "git_diff_unstaged": {},
        "git_diff_staged": {},
        "git_add": {"files": ["src/main.py"]},
        "TodoCreate": {"content": "mend it"},
        "TodoRead": {},
        "wait": {"seconds": 0},
        "get_phase_status": {},
        "bash": {"command": "echo there"},
    },
    "git": {"git_log": {}, "git_diff": {"target": "HEAD"}, "git_show": {"revision": "HEAD"}, "git_branch_list": {}},
    "data": {"fs_list_directory": {}, "fs_read_file": {"path": "notes.md"}, "fs_file_info": {"path": "notes.md"}},
    "project": {
        "index_search": {"query": "main"},
        "index_symbols": {"query": "main"},
        "index_read": {"path": "src/main.py"},
        "memory_search": {},
    },
}
"""Calls that only read, or do no harm twice, with what they need and no more."""


@pytest.fixture
def repository(workspace: Path, home: Path) -> Path:
    (home / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (("init", "-q", "-b", "main"), ("add", "notes.md"), ("commit", "-q", "-m", "First")):
        subprocess.run(["git", *words], cwd=workspace, env=env, check=True, capture_output=True)
    return workspace


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def fine(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), said(answer)
    return said(answer)


def refused(answer: Mapping[str, Any], code: str = "INVALID_ARGUMENTS") -> str:
    assert answer["isError"], said(answer)
    assert code in said(answer)
    return said(answer)


def schemas(one: Pipe) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool["inputSchema"] for tool in one.request("tools/list")["result"]["tools"]}


def left_out(tool: str, schema: Mapping[str, Any], nothing: Any) -> dict[str, Any]:
    """Every optional argument, as such a host fills it in: an empty text only where a text or nothing could stand."""
    required = schema.get("required", ())
    empty = {name for name in schema["properties"] if name not in required and (tool, name) not in MEANINGFUL}
    return dict.fromkeys(sorted(empty), nothing)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_every_optional_argument_that_says_nothing_counts_as_left_out(
    nothing: Any, era: str, repository: Path, home: Path
) -> None:
    with pipe(repository, home) as one:
        one.hello("mcp", era)
        meta = schemas(one)
        fine(one.call("menu_list", **left_out("menu_list", meta["menu_list"], nothing)))
        for mode, calls in CALLS.items():
            fine(one.call("menu_enter", mode=mode, **left_out("menu_enter", meta["menu_enter"], nothing)))
            listed = schemas(one)
            for tool, needed in calls.items():
                whole = left_out(tool, listed[tool], nothing) | needed
                fine(one.call(tool, **whole))
                # And the same within a carrier, whose own arguments are left out in the same way.
                carried = {"tool": tool, "arguments": whole, "mode": nothing, "menu": nothing}
                fine(one.call("menu_call", **carried))
        fine(one.call("menu_call", tool="memory_search", arguments=nothing, mode=nothing, menu=nothing))
        fine(one.call("think", content="so far", menu=nothing))
        fine(one.call("message_user", message="Hello", block_on_user=nothing, attachments=nothing))
        fine(one.call("menu_exit", menu=nothing))
        fine(one.call("complete", final_answer="Done", status=nothing, menu=nothing))


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_the_same_over_http_where_no_call_shares_a_connection(nothing: Any, workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="mcp", era=MODERN) as one:
        entered = one.call("menu_enter", mode="swe", menu=nothing)
        handle = entered["structuredContent"]["menu"]
        carried = {"file_path": "notes.md", "offset": nothing, "limit": nothing, "allow_large": nothing}
        assert "first" in fine(one.call("menu_read", tool="Read", arguments=carried, mode=nothing, menu=handle))
        assert "first" in fine(one.call("menu_read", tool="Read", arguments=carried, mode="swe", menu=nothing))


def test_an_empty_text_stays_one_where_it_means_something(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("mcp")
        fine(one.call("menu_enter", mode="swe"))
        fine(one.call("Read", file_path="notes.md", offset=None))
        fine(one.call("Edit", file_path="notes.md", old_string="first\n", new_string="", replace_all=None))
        assert (workspace / "notes.md").read_text() == "# Notes\n\n"
        said_of_old = one.call("Edit", file_path="notes.md", old_string="", new_string="x", replace_all=None)
        assert "`old_string` is missing" not in refused(said_of_old, "Error")
        assert (workspace / "notes.md").read_text() == "# Notes\n\n"
        fine(one.call("Write", file_path="empty.txt", content=""))
        assert (workspace / "empty.txt").read_text() == ""


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": None}),
        ("Read", {"file_path": ""}),
        ("Write", {"file_path": "there.txt", "content": None}),
        ("Edit", {"file_path": "notes.md", "old_string": None, "new_string": "x"}),
        ("Edit", {"file_path": "notes.md", "old_string": "first", "new_string": None}),
        ("grep", {"pattern": ""}),
        ("git_add", {"files": [""]}),
        ("git_add", {"files": [None]}),
        ("bash", {"command": ""}),
    ],
    ids=str,
)
def test_what_a_tool_needs_is_not_left_out_by_saying_nothing(
    tool: str, arguments: dict[str, Any], workspace: Path, home: Path
) -> None:
    with pipe(workspace, home) as one:
        one.hello("mcp")
        fine(one.call("menu_enter", mode="swe"))
        fine(one.call("Read", file_path="notes.md"))
        refused(one.call(tool, **arguments))
        refused(one.call("menu_call", tool=tool, arguments=arguments))
    assert (workspace / "notes.md").read_text() == "# Notes\n\nfirst\n"
    assert not (workspace / "there.txt").exists()


def test_a_call_is_the_same_call_whichever_way_its_optional_arguments_are_left_out(
    repository: Path, home: Path
) -> None:
    """The person's yes is for the call as it is meant: rules, approvals and the record all see that one."""
    (repository / ".env").write_text("TOKEN=1\n")
    with pipe(repository, home) as one:
        one.hello("mcp")
        fine(one.call("menu_enter", mode="swe"))
        asked = refused(one.call("git_add", files=[".env"], repo_path=""), "APPROVAL_REQUIRED")
        id = asked.partition("menugate approve ")[2].split("`")[0].split()[0]
        assert typed(repository, home, "approve", id).code == 0
        fine(one.call("menu_call", tool="git_add", arguments={"files": [".env"], "repo_path": None}, menu=""))


def test_a_rule_about_an_argument_is_not_met_by_one_that_says_nothing(workspace: Path, home: Path) -> None:
    config = home / "menugate.yaml"
    config.write_text("rules:\n  deny:\n    - bash(description exists)\n")
    with pipe(workspace, home, "--config", str(config)) as one:
        one.hello("mcp")
        fine(one.call("menu_enter", mode="swe"))
        for nothing in NOTHING:
            fine(one.call("bash", command="echo there", description=nothing))
        refused(one.call("bash", command="echo there", description="say it"), "RULE_DENIED")


def test_explain_says_of_it_what_the_call_is_told(workspace: Path, home: Path) -> None:
    for nothing in ("null", '""'):
        asked = ("explain", "Read", f'{{"file_path": "notes.md", "offset": {nothing}}}')
        explained = typed(workspace, home, *asked)
        assert explained.code == 0, explained.err + explained.out
        assert "INVALID_ARGUMENTS" not in explained.out
