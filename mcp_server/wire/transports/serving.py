"""How does the house stay open? Over stdio until the client leaves, over HTTP until somebody says stop."""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

from mcp.server.runner import serve_dual_era_loop
from starlette.types import ASGIApp

from mcp_server.model.menu import Menus
from mcp_server.wire.notices import Notices
from mcp_server.wire.server import MenuServer
from mcp_server.wire.transports.door import Door
from mcp_server.wire.transports.http import application, serve_http
from mcp_server.wire.transports.stdio import stdio


async def serve_stdio(server: MenuServer) -> None:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, task.cancel)
    with suppress(asyncio.CancelledError):
        async with stdio() as (reader, writer):
            options = server.create_initialization_options()
            await serve_dual_era_loop(server, reader, writer, lifespan_state={}, init_options=options)
    # A signal that comes while the state is being written down must not cut that short.
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, lambda: None)


async def serve_net(
    server: MenuServer, menus: Menus, notices: Notices, door: Callable[[ASGIApp], Door], bound: socket.socket
) -> None:
    await serve_http(application(server, menus, lambda: True), door, bound, notices.close)
