"""An ordinary server, made with the SDK's low-level server, which speaks both eras over stdio."""

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = ("echo", "add", "fail", "slow", "progress", "where")


async def list_tools(ctx: object, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    page = [types.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS[start : start + 4]]
    return types.ListToolsResult(tools=page, next_cursor=str(start + 4) if start + 4 < len(TOOLS) else None)


async def call_tool(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    given = params.arguments or {}
    match params.name:
        case "echo":
            text = str(given.get("text", ""))
        case "add":
            return types.CallToolResult(content=[], structured_content={"sum": given["a"] + given["b"]})
        case "fail":
            return types.CallToolResult(content=[types.TextContent(text="it failed")], is_error=True)
        case "slow":
            try:
                await anyio.sleep(600)
            except BaseException:
                print("cancelled", file=sys.stderr, flush=True)
                raise
            text = "late"
        case "progress":
            for done in range(3):
                await ctx.session.report_progress(done + 1, 3, f"step {done + 1}")
            text = "done"
        case _:
            raise ValueError(params.name)
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def list_resources(ctx: object, params: object) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(name="notes", uri="memo://notes")])


async def read_resource(ctx: object, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="noted")])


async def main() -> None:
    server = Server(
        "ordinary",
        version="1.2",
        instructions="Be ordinary.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
