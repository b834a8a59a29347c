"""How does a call reach another server's tool, and what comes back? Through the call's own port, as it was sent."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_server.calls.upstream_client import ServerClient
from mcp_server.calls.upstream_offers import KnownLinks
from mcp_server.guards.redaction import Redactor
from mcp_server.model.context import Context, Progress
from mcp_server.model.results import Code, Ending, Problem, Refusal, Relayed
from mcp_server.model.tools import Arguments, LazyFunction, Tool
from mcp_server.model.upstreams import MountBinding, ResultTrim, UpstreamCaller, Upstreams, WireResult
from mcp_server.policy.upstream_offers import GET_PROMPT, READ_RESOURCE, get_definition, is_offered, is_withheld
from mcp_server.policy.upstream_tools import RELAY
from mcp_server.policy.upstream_trim import trim_result
from mcp_server.policy.upstream_uris import list_uris, prefix_block, prefix_meta

if TYPE_CHECKING:
    from mcp_server.calls.request import ResolvedCall

STAMP = "io.modelcontextprotocol/serverInfo"
"""What the newest revision writes into every result about the server at hand, which for clients is menugate."""
NO_SERVERS = Problem(Code.NOT_GRANTED, "this tool may not reach other servers.", "Call their tools by name instead.")


async def relay_call(
    server: str, tool: str, trim: ResultTrim, binding: MountBinding, context: Context, arguments: Arguments
) -> Ending:
    result = await context.upstreams.call_tool(server, tool, arguments)
    relayed = trim_result(read_result(server, result), trim)
    context.upstreams.note_links(server, list_uris(relayed.blocks))
    blocks = tuple(prefix_block(binding.uri_prefix, block) for block in relayed.blocks)
    return replace(relayed, blocks=blocks, extra=prefix_meta(binding.uri_prefix, relayed.extra))


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


class GrantedUpstreams(Struct, frozen=True):
    """What one call may ask of other servers: nothing but the tool that was decided about."""

    upstreams: Upstreams | None
    call: "ResolvedCall"
    caller: UpstreamCaller
    links: KnownLinks = field(default_factory=KnownLinks)

    async def call_tool(self, server: str, tool: str, arguments: Arguments) -> WireResult:
        if self.upstreams is None or not is_tool_of(self.call.tool, server, tool):
            raise Refusal(NO_SERVERS)
        return await self.upstreams.call_tool(server, tool, arguments, self.caller)

    async def read_resource(self, server: str, uri: str) -> WireResult:
        tool = self.call.tool
        if self.upstreams is None or not _passes(tool, READ_RESOURCE, server) or self.call.arguments.get("uri") != uri:
            raise Refusal(NO_SERVERS)
        linked = self.links.has(self.caller.principal, server, uri) and not is_withheld(tool, uri)
        if not (linked or is_offered(tool, uri)):
            message = f"the server `{server}` has no resource at that address that the user approved."
            raise Refusal(Problem(Code.NOT_FOUND, message, "Read one that is listed, or that a result names."))
        return await self.upstreams.read_resource(server, uri, self.caller)

    async def get_prompt(self, server: str, prompt: str, arguments: Mapping[str, str]) -> WireResult:
        asked = self.call.arguments
        same = (asked.get("name"), asked.get("arguments", {})) == (prompt, arguments)
        if self.upstreams is None or not _passes(self.call.tool, GET_PROMPT, server) or not same:
            raise Refusal(NO_SERVERS)
        return await self.upstreams.get_prompt(server, prompt, arguments, self.caller)

    def note_links(self, server: str, uris: Iterable[str]) -> None:
        self.links.add(self.caller.principal, server, uris)


def build_upstream_grants(
    find: Callable[[], Upstreams | None], redactor: Redactor
) -> Callable[["ResolvedCall", Progress], GrantedUpstreams]:
    return partial(grant_upstreams, find, redactor, KnownLinks())


def grant_upstreams(
    find: Callable[[], Upstreams | None],
    redactor: Redactor,
    links: KnownLinks,
    call: "ResolvedCall",
    progress: Progress,
) -> GrantedUpstreams:
    session, request = call.live.session, call.request
    server = (call.tool.written or "").partition(":")[0]
    client, meta = ServerClient(request.client, server, redactor), request.collect_meta()
    lasting, definition = not call.live.passing, get_definition(call.tool)
    caller = UpstreamCaller(session.principal, session.id, client, progress, meta, definition, lasting)
    return GrantedUpstreams(find(), call, caller, links)


def _passes(tool: Tool, run: LazyFunction, server: str) -> bool:
    """True if this is what the resources, or the prompts, of that server pass through."""
    runs = tool.run
    return isinstance(runs, partial) and runs.func is run and runs.args[:1] == (server,)


def is_tool_of(tool: Tool, server: str, name: str) -> bool:
    """True if this tool calls that tool of that server, and no other."""
    run = tool.run
    return isinstance(run, partial) and run.func is RELAY and run.args[:2] == (server, name)
