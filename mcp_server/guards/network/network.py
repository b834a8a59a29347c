"""How do tools and programs reach the network? The `Network` port of one call, and a proxy, each over an `Egress`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress, Streams, close_writer
from mcp_server.guards.network.proxy import EgressProxy
from mcp_server.guards.refusals import build_not_granted_refusal
from mcp_server.model.destinations import Destinations, parse_destination
from mcp_server.model.network import Request, Response
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Demand, Effect

if TYPE_CHECKING:
    from mcp_server.guards.network.http import HttpClient

CLOSE_SECONDS = 2.0
READ_METHODS = frozenset({"GET", "HEAD"})
REMOTE_EFFECTS = frozenset(
    {Effect.BROWSER_ACT, Effect.REMOTE_WRITE, Effect.PRODUCTION_MUTATION, Effect.DELEGATE, Effect.SPEND}
)
"""Effects that include sending data, not just reading."""


@dataclass(frozen=True, slots=True)
class GrantedStream:
    """The `Stream` port over a connection made by `Egress`."""

    streams: Streams

    async def read(self, most: int) -> bytes:
        return await self.streams[0].read(most)

    async def write(self, data: bytes) -> None:
        self.streams[1].write(data)
        await self.streams[1].drain()

    async def close(self) -> None:
        await close_writer(self.streams[1])


@dataclass
class CallNetwork:
    """The `Network` port of one call, limited to what the call was granted."""

    egress: Egress
    demand: Demand
    _client: "HttpClient | None" = None

    async def fetch(self, request: Request) -> Response:
        if request.method in READ_METHODS:
            self._require_granted(self.demand.effect in REMOTE_EFFECTS | {Effect.READ_REMOTE}, "read from the network")
        else:
            self._require_granted(self.demand.effect in REMOTE_EFFECTS, f"send `{request.method}` requests")
        try:
            return await self._open_client().fetch(request)
        except (DestinationClosed, DestinationUnreached) as error:
            raise build_unreached_refusal(error) from None

    async def connect(self, host: str, port: int) -> GrantedStream:
        self._require_granted(self.demand.effect in REMOTE_EFFECTS, "open network connections")
        try:
            return GrantedStream(await self.egress.connect(host, port))
        except (DestinationClosed, DestinationUnreached) as error:
            raise build_unreached_refusal(error) from None

    async def close(self) -> None:
        """End the connections that were kept for more requests."""
        if self._client is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await self._client.close()

    def _open_client(self) -> "HttpClient":
        if self._client is None:
            from mcp_server.guards.network.http import HttpClient  # slow to load, and most servers never need it

            self._client = HttpClient(self.egress)
        return self._client

    def _require_granted(self, granted: bool, action: str) -> None:
        if not granted:
            raise build_not_granted_refusal(f"This call may not {action}.")


def build_unreached_refusal(error: DestinationClosed | DestinationUnreached) -> Refusal:
    if isinstance(error, DestinationClosed):
        return Refusal(Problem(Code.NETWORK_REFUSED, str(error), error.way_out))
    return Refusal(Problem(Code.TOOL_FAILED, str(error), "Check the name, or try again later."))


def build_program_proxy(allowed: Destinations) -> EgressProxy:
    """Commands reach only the listed destinations."""
    return EgressProxy(Egress(allowed, allowed))


def build_tool_network(operator_list: Destinations) -> Callable[[Demand], CallNetwork]:
    """Tools reach every public destination, and others only if the operator listed them."""
    return partial(CallNetwork, Egress(None, operator_list))


def build_single_place_network(place: str, operator_list: Destinations) -> CallNetwork:
    """Reach exactly one place, which the operator named; that grants every request there."""
    destination = parse_destination(place)
    egress = Egress(Destinations((destination,)), Destinations((destination, *operator_list.every)))
    return CallNetwork(egress, Demand(Effect.DELEGATE, Profile.NORMAL))
