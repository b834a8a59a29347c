"""What does the SDK cost alone? A low-level server of the same tools: no menu, no decision, no ledger."""

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


def build(tools: list[dict[str, Any]]) -> Server[Any]:
    listed = [types.Tool.model_validate(tool) for tool in tools]

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_ctx: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="ok")])

    return Server(
        "bare",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda _name: None,  # else the SDK lists every tool before every call over HTTP
    )


async def over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def over_http(server: Server[Any], address: tuple[str, int]) -> None:
    import uvicorn

    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None, None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager))], lifespan=lifespan)
    # As uvicorn comes, but for the line per request on the terminal: that would slow this side alone.
    uvicorn.run(app, host=address[0], port=address[1], log_level="warning")


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench.bare", description=__doc__)
    options.add_argument("--tools", type=Path, required=True, help="a JSON file: the tools as tools/list shows them")
    options.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP there instead of the standard streams")
    chosen = options.parse_args()
    server = build(json.loads(chosen.tools.read_bytes()))
    if chosen.http:
        host, _, port = chosen.http.rpartition(":")
        over_http(server, (host, int(port)))
    else:
        anyio.run(over_stdio, server)


if __name__ == "__main__":
    main()
