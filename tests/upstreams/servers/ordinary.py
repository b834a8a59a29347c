"""An ordinary server, made with the SDK's low-level server, which speaks both eras over stdio."""

import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

TOOLS = ["echo", "add", "fail", "slow", "progress", "ask", "log", "change"]
BUS = InMemorySubscriptionBus()


async def list_tools(ctx: object, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    page = [types.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS[start : start + 4]]
    return types.ListToolsResult(tools=page, next_cursor=str(start + 4) if start + 4 < len(TOOLS) else None)


async def call_tool(
    ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
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
        case "ask":
            return await ask(ctx, params)
        case "log":
            note = types.LoggingMessageNotificationParams(level="info", data="logged")
            await ctx.session.send_notification(types.LoggingMessageNotification(params=note), ctx.request_id)
            text = "done"
        case "change":
            TOOLS.append("new")
            await BUS.publish(ToolsListChanged())
            await BUS.publish(ResourceUpdated("memo://notes"))
            await ctx.session.send_tool_list_changed()
            text = "changed"
        case _:
            raise ValueError(params.name)
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def ask(
    ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Ask in the way of the era, and answer with what came back."""
    mode = str((params.arguments or {}).get("mode", "form"))
    if mode == "url":
        question = types.ElicitRequest(
            params=types.ElicitRequestURLParams(message="Log in", url="https://a.example/in", elicitation_id="e1")
        )
    else:
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        question = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Which colour?", requested_schema=schema)
        )
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if params.input_responses is None:
            return types.InputRequiredResult(input_requests={"q": question}, request_state="state of the server")
        answer = params.input_responses["q"].model_dump(mode="json", exclude_none=True)
        answer["state"] = params.request_state
    else:
        metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
        reply = await ctx.session.send_request(question, types.ElicitResult, metadata=metadata)
        answer = reply.model_dump(mode="json", exclude_none=True)
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(answer))])


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
        on_subscriptions_listen=ListenHandler(BUS),
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options(NotificationOptions(True, True, True)))


anyio.run(main)
