"""Which tools does a session see, and in what order?"""

import pytest
from msgspec.structs import replace

from mcp_server.model.menus import META_TOOLS, Menus
from mcp_server.model.policy import Call, Verdict
from mcp_server.model.posture import AiMode, Posture, Profile, Stage, WorkMode
from mcp_server.model.results import Code
from mcp_server.model.sessions import Session
from mcp_server.policy.decision import decide, list_visible_tools
from tests.policy.world import example, menus, policy, tools

# At unrestricted, as the menus count them: the six and the mode's own.
COUNTS = {"swe": 36, "library": 10, "browser": 22, "search": 13, "git": 25, "data": 16, "deploy": 11, "ai": 15}

EVERYWHERE = Session("s", "p", flat=True)


def at(mode: str | None, stage: Stage | None = Stage.ACT) -> Session:
    return Session("s", "p", mode, stage)


def test_root_shows_exactly_the_six() -> None:
    for profile in Profile:
        assert list_visible_tools(at(None), Posture(profile=profile), policy()) == META_TOOLS
    assert list_visible_tools(at("nowhere"), Posture(), policy()) == META_TOOLS


@pytest.mark.parametrize(("mode", "count"), [*COUNTS.items(), ("integrations", 9)])
def test_a_mode_shows_the_six_and_then_its_own_in_menu_order(mode: str, count: int) -> None:
    everything = Posture(profile=Profile.UNRESTRICTED)
    home = menus().by_name.get(mode)
    assert home
    assert list_visible_tools(at(mode), everything, policy()) == (*META_TOOLS, *home.tools)
    assert len(list_visible_tools(at(mode), everything, policy())) == count


def test_a_mode_that_is_everywhere_is_in_every_list_but_that_of_an_endpoint_for_one_mode() -> None:
    modes = tuple(replace(mode, everywhere=mode.name == "git") for mode in menus())
    house = replace(policy(), menus=Menus(modes))
    usual, git = Posture(profile=Profile.UNRESTRICTED), next(mode for mode in modes if mode.everywhere)
    assert list_visible_tools(at(None), usual, house) == (*META_TOOLS, *git.tools)
    assert set(git.tools) <= set(list_visible_tools(at("data"), usual, house))
    assert decide(house.tools.get("git_status"), Call("git_status"), at(None), usual, house).code is None
    pinned = replace(at("data"), pinned=True)
    assert list_visible_tools(pinned, usual, house) == list_visible_tools(pinned, usual, policy())
    refused = decide(house.tools.get("git_status"), Call("git_status"), pinned, usual, house)
    assert refused.code is Code.WRONG_MODE
    assert set(git.tools) - set(list_visible_tools(at(None), Posture(profile=Profile.RESTRICTED), house)), "rules hold"


def test_what_the_profile_the_stage_or_the_work_forbids_is_not_shown() -> None:
    assert "Edit" not in list_visible_tools(at("swe"), Posture(profile=Profile.RESTRICTED), policy())
    assert "Edit" not in list_visible_tools(at("swe", Stage.WARMUP), Posture(), policy())
    assert "Edit" not in list_visible_tools(at("swe", None), Posture(), policy())
    assert "Edit" not in list_visible_tools(at("swe"), Posture(work_mode=WorkMode.PLAN), policy())
    assert "Edit" not in list_visible_tools(at("swe"), Posture(ai_mode=AiMode.CHAT), policy())
    assert "Edit" in list_visible_tools(at("swe"), Posture(), policy())
    assert list_visible_tools(at("swe", Stage.DELIVERY_CHECK), Posture(), policy()) == META_TOOLS


def test_a_blocked_meta_tool_disappears_and_the_others_stay() -> None:
    house = policy({"block": ["message_user"]})
    assert list_visible_tools(at(None), Posture(), house) == tuple(
        name for name in META_TOOLS if name != "message_user"
    )
    assert list_visible_tools(at(None), Posture(), policy({"deny": ["*"]})) == META_TOOLS
    assert list_visible_tools(at(None), Posture(), policy({"block": ["*"]})) == ()


def test_a_tool_some_calls_of_which_are_denied_is_still_shown() -> None:
    house = policy({"deny": ["Read(secrets/**)"], "ask": ["grep"]})
    shown = list_visible_tools(at("swe"), Posture(), house)
    assert "Read" in shown
    assert "grep" in shown


def test_flat_is_every_tool_once_in_menu_order() -> None:
    shown = list_visible_tools(EVERYWHERE, Posture(profile=Profile.UNRESTRICTED), policy())
    assert shown == tuple(dict.fromkeys((*META_TOOLS, *(name for mode in menus() for name in mode.tools))))
    assert len(shown) == 81


def test_flat_shows_what_the_posture_allows() -> None:
    narrow = Posture(profile=Profile.RESTRICTED, work_mode=WorkMode.PLAN)
    shown = list_visible_tools(EVERYWHERE, narrow, policy({"deny": ["web_*"]}))
    assert "Read" in shown
    assert not {"Edit", "bash", "deploy", "web_search"} & set(shown)


def test_shown_is_what_a_call_would_not_be_denied() -> None:
    house = policy({"deny": ["git_*"], "block": ["librarian"], "ask": ["Read"]})
    for mode in menus():
        for profile in Profile:
            posture = replace(Posture(), profile=profile)
            shown = list_visible_tools(at(mode.name), posture, house)
            called = {
                name
                for name, tool in tools().items()
                if decide(tool, Call(name, example(name)), at(mode.name), posture, house).verdict is not Verdict.DENY
            }
            assert set(shown) == called
