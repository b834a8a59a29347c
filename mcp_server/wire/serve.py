"""How long does the server run? Over stdio until the client leaves, over HTTP until it is told to stop."""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp.server.runner import serve_dual_era_loop

from mcp_server.model.menus import Menus
from mcp_server.wire.notifications import Notifier
from mcp_server.wire.server import MenuServer
from mcp_server.wire.stdio import open_stdio

if TYPE_CHECKING:
    from mcp_server.wire.http_access import Admission


async def serve_stdio(server: MenuServer) -> None:
    task = asyncio.current_task()
    assert task is not None
    set_signal_handler(task.cancel)
    with suppress(asyncio.CancelledError):
        async with open_stdio() as (reader, writer):
            options = server.create_initialization_options()
            await serve_dual_era_loop(server, reader, writer, lifespan_state={}, init_options=options)
    set_signal_handler(ignore_signal)


async def serve_net(
    server: MenuServer,
    get_menus: Callable[[], Menus],
    notices: Notifier,
    admission: "Admission",
    bound: socket.socket,
    announce: Callable[[], None],
) -> None:
    """`announce` is called once clients can connect and the server can be stopped."""
    from mcp_server.wire.http import build_application, serve_http

    def close_streams_at_end(end: Callable[[], None]) -> None:
        def close_and_end() -> None:
            # A listen stream that nobody ends keeps the server alive for ever.
            notices.close()
            end()

        set_signal_handler(close_and_end)
        announce()

    application = build_application(server, get_menus, admission.limits, lambda: True)
    await serve_http(application, admission, bound, close_streams_at_end)
    set_signal_handler(ignore_signal)


def set_signal_handler(deed: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, deed)


def ignore_signal() -> None:
    """A signal that arrives while the state is being written must not cut that short."""
