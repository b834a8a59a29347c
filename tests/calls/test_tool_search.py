"""Is an answer to a search short, whatever the tools' servers wrote, and does it say only what this caller may know?"""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_server.calls.tool_search import SearchPlace, ToolFinder, describe_tools, list_mode_tools
from mcp_server.cli.menus import count_tokens
from mcp_server.model.menus import Menus, Mode
from mcp_server.model.policy import Policy, Rule, RuleKind, Rules
from mcp_server.model.posture import Posture, Profile, WorkMode
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Tool
from tests.policy.world import EFFECTS, WORK
from tests.sizes import scale
from tests.upstreams.catalogues import CATALOGUES, TOOLS

MAX_TOKENS = 1_200


def make_mode(server: str) -> Mode:
    tools = tuple(tool.name for tool in TOOLS if (tool.written or "").startswith(f"{server}:"))
    return Mode(server, f"Server {server}", "", "", "", f"to use the server {server}", "", tools)


MENUS = Menus(tuple(map(make_mode, CATALOGUES)))
POLICY = Policy({tool.name: tool for tool in TOOLS}, MENUS, EFFECTS, work_modes=WORK)
AT_ROOT = SearchPlace(Session("s", "p"), Posture(profile=Profile.TRUSTED), POLICY, fixed=False, carriers=False)


def with_tools(*tools: Tool) -> SearchPlace:
    mode = Mode("all", "All", "", "", "", "to use everything", "", tuple(tool.name for tool in tools))
    return replace(AT_ROOT, policy=replace(POLICY, tools={tool.name: tool for tool in tools}, menus=Menus((mode,))))


async def find(need: str, place: SearchPlace = AT_ROOT) -> Done:
    return await ToolFinder(tuple).find(need, place)


def count(ending: Ending) -> int:
    assert isinstance(ending, Done)
    return count_tokens(ending.text) + count_tokens(ending.data)


def names(ending: Done) -> list[str]:
    assert ending.data is not None
    return [tool["name"] for tool in ending.data["tools"]]


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("fixed", [True, False])
async def test_answers_about_real_servers_are_short(fixed: bool) -> None:
    place = replace(AT_ROOT, fixed=fixed, carriers=fixed)
    finder = ToolFinder(tuple)
    for tool in TOOLS:
        assert count(await finder.find(tool.title, place)) <= MAX_TOKENS
        assert count(describe_tools([tool.name], place)) <= MAX_TOKENS, tool.name
    for mode in MENUS:
        assert count(list_mode_tools(mode, place)) <= MAX_TOKENS, mode.name
        assert count(describe_tools(mode.tools, place)) <= MAX_TOKENS, mode.name


WORD = st.text(alphabet='abc {}"\\\n`<>é漢\u202e', max_size=300)
SCHEMAS = st.dictionaries(WORD, st.fixed_dictionaries({"description": WORD, "enum": st.lists(WORD, max_size=9)}))


@pytest.mark.heavy
@settings(max_examples=scale(400), deadline=None, derandomize=True)
@given(WORD, SCHEMAS)
def test_hostile_descriptions_make_no_long_answer(words: str, properties: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    tools = [
        dataclasses.replace(TOOLS[0], name=f"evil_{n}", description=words * 20, arguments=schema) for n in range(9)
    ]
    place = with_tools(*tools)
    ending = describe_tools([tool.name for tool in tools], place)
    assert isinstance(ending, Done)
    assert len(ending.text) <= 5_000
    listed = list_mode_tools(place.policy.menus.modes[0], place)
    assert isinstance(listed, Done)
    assert len(listed.text) <= 5_000


async def test_what_a_rule_blocks_or_denies_is_left_out() -> None:
    for kind in (RuleKind.BLOCK, RuleKind.DENY):
        rule = Rule(kind, "git_git_log", "f:1", lambda name: name == "git_git_log")
        place = replace(AT_ROOT, policy=replace(POLICY, rules=Rules((rule,))))
        assert "git_git_log" not in names(await find("git log", place))
        assert isinstance(describe_tools(["git_git_log"], place), Problem)
    assert "git_git_log" in names(await find("git log"))


@pytest.mark.parametrize(
    ("posture", "needs"),
    [
        (Posture(profile=Profile.RESTRICTED), "needs the profile `normal`"),
        (Posture(profile=Profile.TRUSTED, work_mode=WorkMode.PLAN), "Work mode `plan`"),
    ],
)
async def test_what_the_posture_hides_is_shown_with_what_it_needs(posture: Posture, needs: str) -> None:
    ending = await find("commit", replace(AT_ROOT, posture=posture))
    assert ending.data is not None
    entry = next(tool for tool in ending.data["tools"] if tool["name"] == "git_git_commit")
    assert needs in entry["needs"]
    assert "call" not in entry
    assert f"Not now: {entry['needs']}" in ending.text


async def test_a_tool_in_no_mode_is_never_found() -> None:
    """That is where a tool is that you have not approved yet."""
    place = replace(AT_ROOT, policy=replace(POLICY, menus=Menus(tuple(mode for mode in MENUS if mode.name != "time"))))
    assert not {name for name in names(await find("convert time between timezones", place)) if "time_" in name}
    answer = describe_tools(["time_convert_time"], place)
    assert isinstance(answer, Problem)
    assert answer.code is Code.UNKNOWN_TOOL


async def test_the_index_follows_the_policy() -> None:
    finder = ToolFinder(tuple)
    before = await finder.find("timezone", AT_ROOT)
    after = await finder.find("timezone", with_tools(*(tool for tool in TOOLS if "git_" in tool.name)))
    assert names(before)[0] == "time_get_current_time" or names(before)[0] == "time_convert_time"
    assert names(after) == []


def test_the_call_named_fits_the_place() -> None:
    tool = POLICY.tools["git_git_log"]
    mode = MENUS.find_modes_with(tool.name)[0]
    args = '{"repo_path": "…"}'
    handle = '"menu": "menu_x"'
    in_git = replace(AT_ROOT, session=replace(AT_ROOT.session, mode="git"))
    fixed = replace(AT_ROOT, fixed=True, carriers=True)
    calls = {
        'menu_enter {"mode": "git"}, then git_git_log ' + args: AT_ROOT,
        "git_git_log " + args: in_git,
        'menu_read {"tool": "git_git_log", "arguments": ' + args + ', "mode": "git"}': fixed,
        'menu_read {"tool": "git_git_log", "arguments": ' + args + ', "mode": "git", ' + handle + "}": replace(
            fixed, handle="menu_x"
        ),
    }
    reads = dataclasses.replace(tool, hints=dataclasses.replace(tool.hints, read_only=True))
    assert {place.format_call(reads, mode) for place in calls.values()} == set(calls)
