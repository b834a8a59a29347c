"""A server whose tools have schemas, and which offers one more after a call. `bad` adds tools that no host takes."""

import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

ECHO = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ADD = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
NOTHING = {"type": "object"}
BAD: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"$ref": "https://example.org/x.json"}}},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
]
grown: list[types.Tool] = []


async def list_tools(ctx: object, params: object) -> types.ListToolsResult:
    tools = [
        types.Tool(name="echo", description="Says it back.", input_schema=ECHO),
        types.Tool(name="add", description="Adds.", input_schema=ADD),
        types.Tool(name="where", description="Says where.", input_schema=NOTHING),
        types.Tool(name="grow", description="Grows.", input_schema=NOTHING),
    ]
    bad = [types.Tool(name=f"bad{number}", input_schema=schema) for number, schema in enumerate(BAD)]
    return types.ListToolsResult(tools=[*tools, *grown, *(bad if "bad" in sys.argv else [])])


async def call_tool(ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
    given = params.arguments or {}
    match params.name:
        case "echo":
            text = given["text"]
        case "add":
            return types.CallToolResult(content=[], structured_content={"sum": given["a"] + given["b"]})
        case "grow":
            grown.append(types.Tool(name="grown", description="Has grown.", input_schema=NOTHING))
            await ctx.session.send_tool_list_changed()
            text = "growing"
        case _:
            text = os.environ.get("WHERE", params.name)
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def main() -> None:
    server = Server("schemas", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(reading, writing, options)


anyio.run(main)
