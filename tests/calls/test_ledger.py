"""Does the record hold what was decided, and nothing that a question quotes of the arguments?"""

import pytest

from mcp_server.calls.approval_contents import find_texts
from mcp_server.calls.ledger import build_tool_counter, mask_quoted_arguments
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.model.posture import Posture, Profile
from mcp_server.model.sessions import Session
from mcp_server.policy.decision import list_visible_tools
from tests.policy import world


@pytest.mark.parametrize(
    ("why", "masked"),
    [
        ("`notes.md` is deleted", "`…` is deleted"),
        ("`a/notes.md` and `notes.md` are deleted", "`…` and `…` are deleted"),
        ("it is deleted", "it is deleted"),
    ],
)
def test_what_is_quoted_is_left_out(why: str, masked: str) -> None:
    assert mask_quoted_arguments(why, {"path": "notes.md", "more": [{"deep": "a/notes.md"}]}) == masked


def test_every_text_in_arguments_is_found() -> None:
    assert list(find_texts({"a": "x", "b": ["y", {"c": "z", "d": 7}], "e": None})) == ["x", "y", "z"]


def test_tools_are_counted_as_they_are_shown() -> None:
    policy = world.policy()
    ruling = CurrentPolicy(policy)
    count = build_tool_counter(ruling)
    for mode in (None, "swe"):
        for profile in Profile:
            session, posture = Session("s", "me", mode=mode), Posture(profile=profile)
            shown = len(list_visible_tools(session, posture, policy))
            assert count(session, posture) == shown
            assert count(session, posture) == shown, "also the second time"


def test_another_policy_is_counted_anew() -> None:
    ruling = CurrentPolicy(world.policy())
    count = build_tool_counter(ruling)
    session, posture = Session("s", "me", mode="swe"), Posture()
    before = count(session, posture)
    ruling.policy = world.policy({"block": ["Read"]})
    assert count(session, posture) == before - 1
