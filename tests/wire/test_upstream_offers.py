"""Do the resources and prompts of servers reach clients in the protocol's shape, and their refusals as errors?"""

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from mcp_server.model.results import Code, Ending, Problem, Question, Relayed
from mcp_server.wire.upstream_offers import build_contents, build_messages, keep_sound_entries


def test_what_is_no_entry_harms_no_other() -> None:
    entries: list[dict[str, Any]] = [{"uri": "memo://a"}, {"uri": "memo://b", "name": "b"}, {"uri": 5, "name": "c"}]
    assert keep_sound_entries("resources", entries) == [entries[1]]
    assert keep_sound_entries("templates", [{"name": "a"}]) == keep_sound_entries("prompts", [{"name": 1}]) == []


def test_contents_come_without_notes() -> None:
    part = {"uri": "memo://a", "text": "a"}
    ending = Relayed(({"type": "resource", "resource": part}, {"type": "text", "text": "a note"}))
    assert build_contents(ending)["contents"] == [part]


def test_messages_get_their_roles_back() -> None:
    extra = {"menugate/prompt": {"roles": ["user", "assistant"], "description": "d"}}
    blocks = ({"type": "text", "text": "a"}, {"type": "text", "text": "b"})
    answer = build_messages(Relayed(blocks, extra=extra))
    assert answer["description"] == "d"
    assert answer["messages"] == [
        {"role": "user", "content": blocks[0]},
        {"role": "assistant", "content": blocks[1]},
    ]
    assert build_messages(Relayed(blocks))["messages"] == []


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (Problem(Code.RULE_DENIED, "no"), INVALID_PARAMS),
        (Problem(Code.UPSTREAM_AWAY, "gone"), INTERNAL_ERROR),
        (Question("q", "really?"), INVALID_PARAMS),
    ],
)
def test_a_refusal_is_an_error_that_says_why(ending: Ending, code: int) -> None:
    with pytest.raises(MCPError) as raised:
        build_contents(ending)
    assert raised.value.error.code == code
    if isinstance(ending, Problem):
        assert raised.value.error.data["menugate/refusal"]["code"] == str(ending.code)
