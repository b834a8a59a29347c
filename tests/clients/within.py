"""The house in this process, for tests that look at what the SDK hands us: over streams in memory and over HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from mcp_server.app import App
from mcp_server.compose import build_app
from mcp_server.model.tool_packs import Pack
from mcp_server.settings import read_settings
from mcp_server.wire.http import build_application, open_listening_socket
from mcp_server.wire.http_access import HttpLimits
from mcp_server.wire.server import MenuServer
from tests.clients.clients import MODERN
from tests.clients.pipe import META
from tests.clients.served import PATIENCE, Served, environment


@asynccontextmanager
async def house(workspace: Path, home: Path, *packs: Pack, **flags: str) -> AsyncGenerator[App]:
    given = {"workspace": str(workspace), "http": "127.0.0.1:0", **flags}
    built = build_app(read_settings(given, environment(home)), packs)
    async with built.open_for_use():
        yield built


@asynccontextmanager
async def over_http(one: App) -> AsyncGenerator[Served]:
    """Without our door in front: whoever asks is the person whose process this is."""
    bound = open_listening_socket("127.0.0.1", 0)
    app = build_application(one.server, lambda: one.core.current_policy.policy.menus, HttpLimits(), lambda: True)
    config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield Served(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", "", one.settings.workspace, None)
    finally:
        server.should_exit = True
        await running


class Wire:
    """One connection, message by message, as they leave the server."""

    def __init__(self, server: MenuServer, version: str) -> None:
        self._server = server
        self._version = version
        self._numbers = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Wire"]:
        self._send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        outgoing, self._receive = anyio.create_memory_object_stream[SessionMessage](16)
        options = self._server.create_initialization_options()
        serving = serve_dual_era_loop(self._server, incoming, outgoing, lifespan_state={}, init_options=options)
        running = asyncio.create_task(serving)
        try:
            if self._version != MODERN:
                who = {"name": "opencode", "version": "1"}
                about = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": who}
                await self.ask("initialize", about)
                await self._put(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
            yield self
        finally:
            self._send.close()
            await running
            self._receive.close()

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> JSONRPCMessage:
        self._numbers += 1
        body = dict(params or {}) | ({"_meta": META} if self._version == MODERN else {})
        await self._put(JSONRPCRequest(jsonrpc="2.0", id=self._numbers, method=method, params=body))
        with anyio.fail_after(PATIENCE):
            while isinstance(message := (await self._receive.receive()).message, JSONRPCNotification):
                pass
        return message

    async def _put(self, message: JSONRPCMessage) -> None:
        await self._send.send(SessionMessage(message))
