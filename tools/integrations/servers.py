"""How does a model use the other servers without their modes? It lists them, and what it calls passes the same gate."""

from typing import Any, cast

from mcp_server.model.context import Context
from mcp_server.model.results import Code, Ending, Problem
from tools.integrations.definitions import McpToolArguments

EXAMPLES = {
    "list_tools": '{"command": "list_tools", "server": "time"}',
    "call_tool": '{"command": "call_tool", "server": "time", "options": {"tool": "now", "arguments": {}}}',
    "read_resource": '{"command": "read_resource", "server": "notes", "options": {"uri": "memo://today"}}',
}


async def use_servers(ctx: Context, args: McpToolArguments) -> Ending:
    command, server, options = args["command"], args.get("server", ""), args.get("options", {})
    if command == "list_servers":
        return ctx.navigator.list_servers()
    if not server:
        return _explain(command, "this command needs the name of a `server`.")
    if command == "list_tools":
        return ctx.navigator.list_server_tools(server)
    if command == "call_tool":
        return await _call_tool(ctx, server, options)
    uri = options.get("uri")
    if not isinstance(uri, str) or not uri:
        return _explain(command, "`options` names no `uri`.")
    found = ctx.navigator.find_server_resource(server, uri)
    return found if isinstance(found, Problem) else await ctx.call_tool(*found)


async def _call_tool(ctx: Context, server: str, options: dict[str, Any]) -> Ending:
    tool, given = options.get("tool"), options.get("arguments", {})
    if not isinstance(tool, str) or not tool:
        return _explain("call_tool", "`options` names no `tool`.")
    if not isinstance(given, dict):
        return _explain("call_tool", "`arguments` in `options` is not an object.")
    found = ctx.navigator.find_server_tool(server, tool)
    return found if isinstance(found, Problem) else await ctx.call_tool(found, cast(dict[str, Any], given))


def _explain(command: str, message: str) -> Problem:
    return Problem(Code.INVALID_ARGUMENTS, message, f"Call it like this: {EXAMPLES[command]}")
