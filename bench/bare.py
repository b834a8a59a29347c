"""What does the SDK alone cost? A low-level server with the same tools: no menu, no decision, no ledger."""

import argparse
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route


def build_server(tools: list[dict[str, Any]]) -> Server[Any]:
    protocol_tools = [types.Tool.model_validate(tool) for tool in tools]

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=protocol_tools)

    async def call_tool(_ctx: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="ok")])

    return Server(
        "bare",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda _name: None,  # else the SDK lists every tool before every call over HTTP
    )


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def serve_http(server: Server[Any], address: tuple[str, int]) -> None:
    import uvicorn

    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None, None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager))], lifespan=lifespan)
    # uvicorn's defaults, except that it prints no line per request: that would slow down this side only.
    uvicorn.run(app, host=address[0], port=address[1], log_level="warning")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bare", description=__doc__)
    parser.add_argument("--tools", type=Path, required=True, help="a JSON file with the tools as tools/list shows them")
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP instead of stdio")
    arguments = parser.parse_args()
    server = build_server(json.loads(arguments.tools.read_bytes()))
    if arguments.http:
        host, _, port = arguments.http.rpartition(":")
        serve_http(server, (host, int(port)))
    else:
        anyio.run(serve_stdio, server)


if __name__ == "__main__":
    main()
