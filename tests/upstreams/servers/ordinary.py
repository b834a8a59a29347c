"""An ordinary server, made with the SDK's low-level server, which speaks both eras over stdio."""

import json
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_dual_era_loop
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

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


def build_server() -> Server[Any]:
    server = OrdinaryServer(
        "ordinary",
        version="1.2",
        instructions="Be ordinary.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, ignore)
    return server


async def ignore(ctx: object, params: object) -> None:
    return None


class OrdinaryServer(Server[Any]):
    def create_initialization_options(self, *_: Any, **__: Any) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(True, True, True))


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def build_app(server: Server[Any]) -> Starlette:
    sessions, sse = StreamableHTTPSessionManager(app=server), SseServerTransport("/messages/")

    class SseEndpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async with sse.connect_sse(scope, receive, send) as (reading, writing):
                options = server.create_initialization_options()
                await serve_dual_era_loop(server, reading, writing, lifespan_state={}, init_options=options)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None, None]:
        async with sessions.run():
            yield

    routes = [
        Route("/mcp", StreamableHTTPASGIApp(sessions)),
        Route("/sse", SseEndpoint(), methods=["GET"]),
        Mount("/messages/", app=sse.handle_post_message),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def serve_http(server: Server[Any], port: int) -> None:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        print(listening.getsockname()[1], flush=True)
        # Where servers run for long, something starts them again when they crash.
        while (child := os.fork()) != 0:
            os.waitpid(child, 0)
        config = uvicorn.Config(build_app(server), log_level="critical", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


def serve(server: Server[Any]) -> None:
    """Serve over HTTP if the first word is a port, else over stdio."""
    if len(sys.argv) > 1:
        serve_http(server, int(sys.argv[1]))
    else:
        anyio.run(serve_stdio, server)


if __name__ == "__main__":
    serve(build_server())
