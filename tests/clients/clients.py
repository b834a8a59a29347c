"""Real SDK clients, by era and transport, that keep what they were told."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult, Implementation, TextContent

from tests.clients import warm_stdio
from tests.clients.served import PATIENCE, Served, command, environment

MODERN = "2026-07-28"
ERAS = ("legacy", MODERN)


@dataclass
class Held:
    """A client and the notices it got."""

    client: Client
    told: list[str] = field(default_factory=list[str])

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(name, arguments)


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def structured(result: CallToolResult) -> dict[str, Any]:
    assert result.structured_content is not None
    return result.structured_content


@asynccontextmanager
async def held(target: Any, era: str, name: str = "opencode", **callbacks: Any) -> AsyncGenerator[Held, None]:
    told: list[str] = []

    async def listen(message: Any) -> None:
        method = getattr(message, "method", None)
        if method is not None:
            told.append(method)

    if isinstance(target, StdioServerParameters):
        target = warm_stdio.connect(target)
    who = Implementation(name=name, version="1")
    async with Client(
        target,
        mode=era,
        client_info=who,
        message_handler=listen,
        cache=None,
        read_timeout_seconds=PATIENCE,
        **callbacks,
    ) as client:
        yield Held(client, told)


def over_stdio(workspace: Path, home: Path, *flags: str) -> StdioServerParameters:
    started = command("serve", "--workspace", str(workspace), *flags)
    return StdioServerParameters(command=started[0], args=started[1:], env=environment(home), cwd=home)


@asynccontextmanager
async def over_http(served: Served, path: str = "") -> AsyncGenerator[Any, None]:
    async with (
        create_mcp_http_client(headers=served.headers) as http,
        streamable_http_client(served.url + path, http_client=http) as streams,
    ):
        yield streams


def over_sse(served: Served, named: Callable[[str], None] | None = None) -> Any:
    """`named` is told the id of the session once there is one."""
    return sse_client(served.url.removesuffix("/mcp") + "/sse", headers=served.headers, on_session_created=named)
