"""Does what the operator says count most, then approved annotations, and else the worst?"""

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.tools import ASKING, Effect
from mcp_server.model.upstreams import ToolShape
from mcp_server.policy.upstream_effects import LOWEST, UNKNOWN, judge_tool


def test_nothing_known_is_a_write_for_trusted() -> None:
    judged = judge_tool({"readOnlyHint": True}, ToolShape(), approved=False)
    assert (judged.effect, judged.profile, judged.annotations) == (UNKNOWN, Profile.TRUSTED, None)


@pytest.mark.parametrize("effect", [effect for effect in Effect if effect not in (Effect.NONE, Effect.SESSION)])
def test_an_override_counts_whatever_the_annotations_say(effect: Effect) -> None:
    for approved in (True, False):
        judged = judge_tool({"readOnlyHint": True}, ToolShape(effect=effect), approved)
        assert (judged.effect, judged.profile, judged.annotations) == (effect, LOWEST[effect], None)


@pytest.mark.parametrize("read_only", [True, False, None])
@pytest.mark.parametrize("destructive", [True, False, None])
@pytest.mark.parametrize("open_world", [True, False, None])
def test_annotations_never_lead_to_an_effect_that_always_asks(
    read_only: bool | None, destructive: bool | None, open_world: bool | None
) -> None:
    said = {"readOnlyHint": read_only, "destructiveHint": destructive, "openWorldHint": open_world}
    judged = judge_tool({key: value for key, value in said.items() if value is not None}, ToolShape(), approved=True)
    assert judged.effect not in ASKING
    assert judged.hints.read_only is bool(read_only)
    assert not (judged.asks and read_only)
