"""What is served over HTTP? `/mcp` in both eras, `/mcp/<mode>`, `/sse` for older clients, and an orderly shutdown."""

import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.runner import serve_loop
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_server.model.menus import Menus
from mcp_server.wire.http_access import LONGEST_BODY, Admission, HttpAccess, HttpLimits
from mcp_server.wire.http_limits import make_bounded_protocol
from mcp_server.wire.server import MenuServer

IDLE_SECONDS = 1800.0
GRACE_SECONDS = 2
SDK_CHECKS_OFF = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""`HttpAccess` compares Host and Origin exactly; the SDK's comparison accepts prefixes."""


@dataclass
class SseEndpoint:
    """The older transport: one long response carries all messages of the server, and each client message is a POST."""

    server: MenuServer
    transport: SseServerTransport
    max_streams: int
    open: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.open >= self.max_streams:
            await PlainTextResponse("too many streams are open", 503)(scope, receive, send)
            return
        self.open += 1
        try:
            async with self.transport.connect_sse(scope, receive, send) as (reader, writer):
                # Not `server.run`: it would enter the server's lifespan once per stream.
                options = self.server.create_initialization_options()
                await serve_loop(self.server, reader, writer, lifespan_state={}, init_options=options)
        finally:
            self.open -= 1


GetMenus: TypeAlias = Callable[[], Menus]
"""Returns those that are in force now."""


def build_application(server: MenuServer, menus: GetMenus, limits: HttpLimits, ready: Callable[[], bool]) -> Starlette:
    manager = StreamableHTTPSessionManager(
        app=server,
        security_settings=SDK_CHECKS_OFF,
        max_sessions=limits.sessions,
        session_idle_timeout=IDLE_SECONDS,
        max_request_body_size=LONGEST_BODY,
    )
    sse = SseServerTransport("/messages/", security_settings=SDK_CHECKS_OFF, max_request_body_size=LONGEST_BODY)
    endpoint = StreamableHTTPASGIApp(manager)

    async def serve_mode(scope: Scope, receive: Receive, send: Send) -> None:
        if menus().by_name.get(scope["path_params"]["mode"]) is None:
            names = ", ".join(f"/mcp/{mode.name}" for mode in menus())
            await PlainTextResponse(f"there is no such mode; the modes are {names}", 404)(scope, receive, send)
            return
        await endpoint(scope, receive, send)

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def readiness(_request: Request) -> JSONResponse:
        return JSONResponse({"ready": ready()}, 200 if ready() else 503)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None, None]:
        async with manager.run():
            yield

    return Starlette(
        routes=[
            Route("/mcp", endpoint),
            Route("/mcp/{mode}", Asgi(serve_mode)),
            Route("/sse", SseEndpoint(server, sse, limits.sse), methods=["GET"]),
            Mount("/messages/", app=sse.handle_post_message),
            Route("/healthz", health, methods=["GET"]),
            Route("/readyz", readiness, methods=["GET"]),
        ],
        lifespan=lifespan,
    )


class Asgi(Struct, frozen=True):
    """Wraps an ASGI function, which Starlette would otherwise take for a request handler."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Bind a socket. Without an explicit protocol number, asyncio leaves Nagle's delay on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    # From now on connections queue until the server accepts them.
    bound.listen(1024)
    bound.set_inheritable(False)
    return bound


class Endable(uvicorn.Server):
    """Stops only when `end` is called. Signals are handled elsewhere, because they end more than this server.

    By default uvicorn catches signals and raises them again after it has stopped, which would kill the process before
    the state is written.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def end(self) -> None:
        self.should_exit = True


async def serve_http(
    app: Starlette, admission: Admission, bound: socket.socket, started: Callable[[Callable[[], None]], None]
) -> None:
    """`started` is called with the function that ends the server."""
    access = HttpAccess(AuthContextMiddleware(app), admission)
    config = uvicorn.Config(
        access,
        http=make_bounded_protocol(admission.limits),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # There is no proxy in front, so forwarded headers are not trusted.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
    server = Endable(config)

    def end() -> None:
        server.end()
        access.end()

    started(end)
    await server.serve(sockets=[bound])


def build_local_hosts(host: str, port: int) -> frozenset[str]:
    """Build the Host headers that a loopback server accepts: its own names with its own port."""
    names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    return frozenset(f"{name}:{port}" for name in names)
