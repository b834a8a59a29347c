"""Who is calling, in which protocol era, over which transport? Read from one request, once.

Only this file touches the SDK's private connection. That is the one hook to something that lives as long as a legacy
connection, and a contract test holds it (`tests/wire/test_server.py`).
"""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types import CLIENT_INFO_META_KEY
from msgspec import Struct
from starlette.requests import Request

from mcp_server.model.posture import Surface
from mcp_server.wire.revisions import REVISIONS, RevisionFeatures, guess_features

Context: TypeAlias = ServerRequestContext[Any, Any]


class Caller(Struct, frozen=True):
    version: str
    protocol: RevisionFeatures
    """What that revision can do."""
    transport: str
    """`stdio`, `http` or `sse`."""
    page: bool
    """It came from a browser, which names the page it acts for. `HttpAccess` lets in only the pages that may."""
    client: str
    """The name the client gives itself: for display and the table of hosts, never for policy."""
    principal: str
    pinned: str | None
    """The mode of the endpoint that was called, from its path."""
    ready: bool
    """Past the handshake, or in the era that has none."""

    @property
    def is_remembered(self) -> bool:
        """True if the connection outlives a request. HTTP without sessions has no such connection."""
        return self.protocol.connects or self.transport == "stdio"


def identify_caller(ctx: Context, owner: str) -> Caller:
    """`owner` is the principal of a caller that needs no token: the person who runs this process."""
    protocol = REVISIONS.get(ctx.protocol_version) or guess_features(ctx.protocol_version)
    request: Request | None = ctx.request
    token = get_access_token()
    transport = "stdio"
    if request is not None:
        transport = "sse" if request.scope["path"].startswith("/messages") else "http"
    return Caller(
        version=ctx.protocol_version,
        protocol=protocol,
        transport=transport,
        page=request is not None and "origin" in request.headers,
        client=_get_client_name(ctx),
        principal=token.client_id if token else owner,
        pinned=request.path_params.get("mode") if request is not None else None,
        ready=not protocol.connects or get_connection(ctx).initialize_accepted,
    )


def get_connection(ctx: Context) -> Connection:
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]  # the SDK has no public way to it


def keep_for_connection(
    ctx: Context, name: str, make: Callable[[], Any], forget: Callable[[Any], None] | None = None
) -> Any:
    """Return a value that lives as long as this legacy connection; `forget` is called with it at the end."""
    link = get_connection(ctx)
    value = link.state.get(name)
    if value is None:
        value = link.state[name] = make()
        if forget is not None:
            link.exit_stack.callback(forget, value)
    return value


def _get_client_name(ctx: Context) -> str:
    if (params := ctx.session.client_params) is not None:
        return params.client_info.name
    return _get_client_info(ctx, "name")


def get_client_version(ctx: Context) -> str:
    if (params := ctx.session.client_params) is not None:
        return params.client_info.version
    return _get_client_info(ctx, "version")


def _get_client_info(ctx: Context, field: str) -> str:
    """A modern client may leave out the typed pair and still say what it is."""
    info: Any = (ctx.meta or {}).get(CLIENT_INFO_META_KEY)
    return str(cast(dict[str, Any], info).get(field, "")) if isinstance(info, dict) else ""


# How is the person connected, as far as a call shows? Recorded with every call; what may run never depends on it.

COMMAND = "cli"
"""The transport of `menugate call`."""


def observe_surface(transport: str, *, terminal: bool = False, page: bool = False, asks: bool = False) -> Surface:
    """`terminal`: the command was typed at one. `page`: it came from a browser. `asks`: the client can ask the
    person."""
    if transport == COMMAND:
        return Surface.TUI if terminal else Surface.HEADLESS
    if page:
        return Surface.WEB
    return Surface.RPC if asks else Surface.HEADLESS
