"""Does a model that doesn't know a tool's name get to the tool? Real servers, both eras, every kind of list."""

from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN, held, over_http, structured, text
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import served


def said(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


def ask(one: Pipe, **arguments: Any) -> dict[str, Any]:
    """Ask where the tool is listed."""
    assert not one.call("menu_enter", mode="integrations")["isError"]
    return one.call("request_tools", **arguments)


@pytest.mark.parametrize("era", ERAS)
def test_words_lead_to_a_tool_and_the_call_named_runs_it(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home) as one:
        one.hello(era=era)
        answer = ask(one, query="make a new foldr")
        assert not answer["isError"]
        found = answer["structuredContent"]["tools"][0]
        assert found["name"] == "fs_create_directory"
        assert found["modes"] == ["data"]
        assert found["call"] == 'menu_enter {"mode": "data"}, then fs_create_directory {"path": "…"}'
        assert said(answer).splitlines()[1].startswith("- fs_create_directory(path")
        assert "Nearest modes: data (to list, move, delete" in said(answer)
        one.call("menu_enter", mode="data")
        assert not one.call("fs_create_directory", path="made")["isError"]
    assert (workspace / "made").is_dir()


@pytest.mark.parametrize("era", ERAS)
def test_words_that_name_no_mode_are_answered_at_root(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home) as one:
        one.hello(era=era)
        before = one.names()
        answer = one.call("menu_enter", mode="who commited this and when?")
        assert answer["isError"]
        assert said(answer).startswith("Error UNKNOWN_MODE")
        assert "Modes: swe, git, data, integrations, project." in said(answer)
        assert "- git_log(" in said(answer)
        assert 'Call: menu_enter {"mode": "git"}, then git_log {}' in said(answer)
        assert one.names() == before


@pytest.mark.anyio
async def test_a_list_that_never_changes_is_told_a_call_through_a_carrier(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here:
        async with held(over_http(here), MODERN) as one:
            asked = {"tool": "request_tools", "mode": "integrations", "arguments": {"query": "show the commit log"}}
            found = structured(await one.call("menu_call", **asked))["tools"][0]
            assert found["call"] == 'menu_read {"tool": "git_log", "arguments": {}, "mode": "git"}'
            listed = {"tool": "fs_list_directory", "arguments": {"path": "."}, "mode": "data"}
            assert "notes.md" in text(await one.call("menu_read", **listed))


def test_what_the_posture_does_not_allow_is_named_with_what_it_needs(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        found = {tool["name"]: tool for tool in ask(one, query="delete a file")["structuredContent"]["tools"]}
        assert "call" not in found["fs_delete"]
        assert found["fs_delete"]["needs"] == "`fs_delete` needs the profile `trusted`; the current one is `normal`."
        # Having found it changes nothing.
        one.call("menu_enter", mode="data")
        assert "PROFILE_TOO_LOW" in said(one.call("fs_delete", path="notes.md"))
    assert (workspace / "notes.md").exists()


def test_what_a_rule_forbids_is_not_found(workspace: Path, home: Path) -> None:
    (workspace / "menugate.yaml").write_text("rules:\n  block: [git_log]\n  deny: [git_show]\n")
    with pipe(workspace, home) as one:
        one.hello()
        answer = ask(one, query="git log, git show")
        names = {tool["name"] for tool in answer["structuredContent"]["tools"]}
        assert names.isdisjoint({"git_log", "git_show"})
        assert "git_status" in names
        assert "UNKNOWN_TOOL" in said(one.call("request_tools", tool_names=["git_log"]))


def test_a_pinned_endpoint_finds_only_its_own_tools(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        answer = said(one.call("menu_enter", mode="show the commit log of git"))
        assert "git_log" not in answer
        assert "Nearest modes: data" in answer


def test_whole_schemas_modes_and_categories(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        schemas = said(ask(one, tool_names=["git_log", "Read", "git_log"]))
        assert schemas.count("Arguments: {") == 2
        assert '"type": "object"' in schemas
        assert said(one.call("request_tools", list_categories=True)).splitlines()[1].startswith("1. swe: Software")
        within = said(one.call("request_tools", category="version control"))
        assert "- git_status(" in within
        both = one.call("request_tools", category="data", query="copy or move it")["structuredContent"]["tools"]
        assert {mode for tool in both for mode in tool["modes"]} >= {"data"}
        assert both[0]["name"] == "fs_move"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "INVALID_ARGUMENTS"),
        ({"query": "  "}, "INVALID_ARGUMENTS"),
        ({"category": "nowhere at all"}, "UNKNOWN_MODE"),
        ({"tool_names": ["grpe"]}, "UNKNOWN_TOOL"),
        ({"tool_names": ["menu_enter"]}, "UNKNOWN_TOOL"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(
    workspace: Path, home: Path, arguments: dict[str, Any], code: str
) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        answer = ask(one, **arguments)
        assert said(answer).startswith(f"Error {code}")


def test_a_need_that_no_tool_has_still_gets_modes(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        answer = ask(one, query="xyzzy plugh")
        assert not answer["isError"]
        assert said(answer).startswith("No tool has these words.")
        assert answer["structuredContent"]["modes"] == ["swe", "git", "data"]


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_that_was_added_is_in_every_list_until_the_run_ends(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home, "--listing", "masked") as one:
        one.hello(era=era)
        answer = ask(one, tool_names=["fs_list_directory"], add=True)
        assert "Call: fs_list_directory {" in said(answer) and "in your list until the run ends" in said(answer)
        for mode in ("integrations", "swe"):
            one.call("menu_enter", mode=mode)
            assert one.names()[-1] == "fs_list_directory"
            assert not one.call("fs_list_directory", path=".")["isError"]
        one.call("menu_exit")
        assert "fs_list_directory" in one.names()
        one.call("complete", final_answer="done")
        assert "fs_list_directory" not in one.names()
        assert "WRONG_MODE" in said(one.call("fs_list_directory", path="."))


def test_adding_a_tool_allows_no_more_than_its_mode_does(workspace: Path, home: Path) -> None:
    (workspace / "menugate.yaml").write_text("rules:\n  block: [git_log]\n  deny: ['fs_list_directory(depth gt 1)']\n")
    with pipe(workspace, home, "--listing", "masked") as one:
        one.hello()
        assert "PROFILE_TOO_LOW" not in said(ask(one, tool_names=["fs_delete", "fs_list_directory"], add=True))
        assert "fs_delete" not in one.names() and "fs_list_directory" in one.names()
        assert "PROFILE_TOO_LOW" in said(one.call("fs_delete", path="notes.md"))
        assert "RULE_DENIED" in said(one.call("fs_list_directory", path=".", depth=2))
        assert "UNKNOWN_TOOL" in said(ask(one, tool_names=["git_log"], add=True))
        assert "BLOCKED" in said(one.call("git_log"))
        assert "INVALID_ARGUMENTS" in said(ask(one, query="a log", add=True))


def test_of_many_added_tools_the_earliest_leave(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--listing", "masked") as one:
        one.hello()
        names = ["git_log", "git_show", "git_diff", "git_add", "git_status", "git_reset", "git_commit", "git_checkout"]
        names += ["fs_move", "fs_file_info", "fs_create_directory"]
        answer = one.call("menu_enter", mode="integrations")
        for name in names:
            answer = one.call("request_tools", tool_names=[name], add=True)
            assert not answer["isError"], said(answer)
        assert "Taken out, because at most 10 are kept: git_log." in said(answer)
        one.call("menu_exit")
        shown = one.names()
        assert "git_log" not in shown and {"git_show", "fs_create_directory"} <= set(shown)


@pytest.mark.anyio
async def test_a_client_that_keeps_no_list_is_told_that_nothing_was_added(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here:
        async with held(over_http(here), MODERN) as one:
            names = await one.names()
            asked = {"tool_names": ["git_log"], "add": True}
            answer = text(await one.call("menu_call", tool="request_tools", mode="integrations", arguments=asked))
            assert "Nothing was added" in answer and "git_log" in answer
            assert await one.names() == names
