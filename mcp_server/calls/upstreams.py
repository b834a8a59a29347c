"""How does a call reach another server's tool, and what comes back? Through the call's own port, as it was sent."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mcp_server.model.context import Context, Progress
from mcp_server.model.results import Code, Ending, Problem, Refusal, Relayed
from mcp_server.model.tools import Arguments, Tool
from mcp_server.model.upstreams import ResultTrim, UpstreamCaller, Upstreams, WireResult
from mcp_server.policy.upstream_tools import RELAY
from mcp_server.policy.upstream_trim import trim_result

if TYPE_CHECKING:
    from mcp_server.calls.request import ResolvedCall

STAMP = "io.modelcontextprotocol/serverInfo"
"""What the newest revision writes into every result about the server at hand, which for clients is menugate."""
NO_SERVERS = Problem(Code.NOT_GRANTED, "this tool may not reach other servers.", "Call their tools by name instead.")


async def relay_call(
    server: str, tool: str, trim: ResultTrim, definition: str, context: Context, arguments: Arguments
) -> Ending:
    """`definition` is for the port of the call, which reads it from the tool that was decided about."""
    result = await context.upstreams.call_tool(server, tool, arguments)
    return trim_result(read_result(server, result), trim)


def read_result(server: str, result: WireResult) -> Relayed:
    """Take over a result; a `Refusal` says if it is none."""
    content: Any = result.get("content", [])
    extra: Any = result.get("_meta") or {}
    data: Any = result.get("structuredContent")
    if not (isinstance(content, list) and all(map(_is_block, cast(list[Any], content))) and isinstance(extra, Mapping)):
        raise Refusal.because(
            Code.UPSTREAM_FAULT,
            f"the server `{server}` sent a result that is not MCP.",
            "Try another way; the same call would fail again.",
        )
    blocks = tuple(cast(list[Mapping[str, Any]], content))
    if data is not None and not isinstance(data, Mapping):
        # Only the newest revision allows it, and its clients understand text as well.
        blocks = blocks or ({"type": "text", "text": json.dumps(data, ensure_ascii=False)},)
        data = None
    kept = {key: value for key, value in cast(Mapping[str, Any], extra).items() if key != STAMP}
    return Relayed(blocks, data, result.get("isError") is True, kept)


def _is_block(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(cast(Mapping[str, Any], block).get("type"), str)


@dataclass(frozen=True)
class GrantedUpstreams:
    """What one call may ask of other servers: nothing but the tool that was decided about."""

    upstreams: Upstreams | None
    call: "ResolvedCall"
    caller: UpstreamCaller

    async def call_tool(self, server: str, tool: str, arguments: Arguments) -> WireResult:
        if self.upstreams is None or not is_tool_of(self.call.tool, server, tool):
            raise Refusal(NO_SERVERS)
        return await self.upstreams.call_tool(server, tool, arguments, self.caller)


def grant_upstreams(find: Callable[[], Upstreams | None], call: "ResolvedCall", progress: Progress) -> GrantedUpstreams:
    session = call.live.session
    definition = get_definition(call.tool)
    caller = UpstreamCaller(session.principal, session.id, call.request.client, progress, definition=definition)
    return GrantedUpstreams(find(), call, caller)


def get_definition(tool: Tool) -> str:
    """Return the digest of the server's definition that the tool was built from."""
    run = tool.run
    return cast(str, run.args[3]) if isinstance(run, partial) and run.func is RELAY else ""


def is_tool_of(tool: Tool, server: str, name: str) -> bool:
    """True if this tool calls that tool of that server, and no other."""
    run = tool.run
    return isinstance(run, partial) and run.func is RELAY and run.args[:2] == (server, name)
