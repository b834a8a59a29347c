"""Does `mcp_tool` say what is missing, and leave everything else to the gate?"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mcp_server.model.context import Context
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Done, Ending, Problem
from mcp_server.model.tools import Effect
from tools.integrations.definitions import MCP_TOOL, McpToolArguments
from tools.integrations.servers import use_servers

pytestmark = pytest.mark.anyio


class Navigator:
    def list_servers(self) -> Ending:
        return Done("servers")

    def list_server_tools(self, server: str) -> Ending:
        return Done(f"tools of {server}")

    def find_server_tool(self, server: str, tool: str) -> str:
        return f"{server}_{tool}"

    def find_server_resource(self, server: str, uri: str) -> tuple[str, dict[str, Any]]:
        return f"{server}:resource", {"uri": uri}


async def call_tool(tool: str, arguments: dict[str, Any]) -> Ending:
    return Done(f"{tool} {arguments}")


CONTEXT = cast(Context, SimpleNamespace(navigator=Navigator(), call_tool=call_tool))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"command": "list_servers"}, "servers"),
        ({"command": "list_tools", "server": "s"}, "tools of s"),
        ({"command": "call_tool", "server": "s", "options": {"tool": "t"}}, "s_t {}"),
        ({"command": "call_tool", "server": "s", "options": {"tool": "t", "arguments": {"a": 1}}}, "s_t {'a': 1}"),
        ({"command": "read_resource", "server": "s", "options": {"uri": "m://a"}}, "s:resource {'uri': 'm://a'}"),
    ],
)
async def test_each_command_leads_to_its_own_call(given: Any, says: str) -> None:
    assert (await use_servers(CONTEXT, cast(McpToolArguments, given))).text == says


@pytest.mark.parametrize(
    "given",
    [
        {"command": "list_tools"},
        {"command": "call_tool", "server": "s"},
        {"command": "call_tool", "server": "s", "options": {"tool": 5}},
        {"command": "call_tool", "server": "s", "options": {"tool": "t", "arguments": []}},
        {"command": "read_resource", "server": "s", "options": {"uri": ""}},
    ],
)
async def test_what_is_missing_is_said_with_an_example(given: Any) -> None:
    ending = await use_servers(CONTEXT, cast(McpToolArguments, given))
    assert isinstance(ending, Problem) and ending.code is Code.INVALID_ARGUMENTS
    assert '{"command": ' in ending.way_out


@pytest.mark.parametrize(
    ("command", "effect", "profile"),
    [
        ("list_servers", Effect.SESSION, Profile.NORMAL),
        ("list_tools", Effect.SESSION, Profile.NORMAL),
        ("call_tool", Effect.DELEGATE, Profile.TRUSTED),
        ("read_resource", Effect.DELEGATE, Profile.TRUSTED),
    ],
)
def test_only_lists_need_no_more_than_normal(command: str, effect: Effect, profile: Profile) -> None:
    demand = MCP_TOOL.get_demand({"command": command})
    assert (demand.effect, demand.profile) == (effect, profile)
