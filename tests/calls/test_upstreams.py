"""May a call ask of other servers only what was decided about?"""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcp_server.calls.request import ResolvedCall
from mcp_server.calls.upstreams import GrantedUpstreams, is_tool_of, read_result
from mcp_server.model.results import Code, Refusal
from mcp_server.model.tools import LazyFunction
from mcp_server.model.upstreams import Mount, StdioTarget, UpstreamCaller, Upstreams
from mcp_server.policy.upstream_offers import get_definition
from mcp_server.policy.upstream_pins import compute_mount_digest
from mcp_server.policy.upstream_tools import RELAY, build_run
from tests.config.samples import made

MOUNT = Mount("server", "server", StdioTarget(("x",)))
TOOL = made("server_tool", run=build_run(MOUNT, "tool"), written="server:tool")
PRETENDING = made("server_tool", run=partial(LazyFunction(RELAY.where), "server", "tool"), written="server:tool")


class Reached:
    async def call_tool(self, *call: Any) -> dict[str, Any]:
        return {"content": [], "called": call[:3]}


def granted(tool: Any) -> GrantedUpstreams:
    caller = cast(UpstreamCaller, None)
    return GrantedUpstreams(cast(Upstreams, Reached()), cast(ResolvedCall, SimpleNamespace(tool=tool)), caller)


@pytest.mark.anyio
async def test_a_tool_reaches_itself() -> None:
    assert (await granted(TOOL).call_tool("server", "tool", {"a": 1}))["called"] == ("server", "tool", {"a": 1})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "server", "name"),
    [
        (TOOL, "server", "other"),
        (TOOL, "other", "tool"),
        (made("server_tool"), "server", "tool"),
        (PRETENDING, "server", "tool"),
    ],
)
async def test_nothing_else_is_reached(tool: Any, server: str, name: str) -> None:
    with pytest.raises(Refusal) as refused:
        await granted(tool).call_tool(server, name, {})
    assert refused.value.problem.code is Code.NOT_GRANTED


def test_only_its_own_code_makes_a_tool_that_of_a_server() -> None:
    assert is_tool_of(TOOL, "server", "tool") and not is_tool_of(made("server_tool"), "server", "tool")


def test_a_tool_is_bound_to_its_server_as_it_was_defined() -> None:
    other = build_run(replace(MOUNT, target=StdioTarget(("y",))), "tool")
    assert get_definition(TOOL) == compute_mount_digest(MOUNT) != get_definition(replace(TOOL, run=other))
    assert get_definition(made("server_tool")) == ""


def test_a_result_says_that_menugate_answered() -> None:
    result: dict[str, Any] = {"content": [], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "x"}, "own": 1}}
    assert read_result("server", result).extra == {"own": 1}
