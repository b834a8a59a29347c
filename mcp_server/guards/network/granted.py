"""What may this call do with the network? The door, held to what the call was granted."""

from dataclasses import dataclass

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress, Streams
from mcp_server.guards.network.proxy import closed
from mcp_server.guards.refusals import not_granted
from mcp_server.model.network import Request, Response
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Demand, Effect

READING = frozenset({"GET", "HEAD"})
REACHING = frozenset(
    {Effect.BROWSER_ACT, Effect.REMOTE_WRITE, Effect.PRODUCTION_MUTATION, Effect.DELEGATE, Effect.SPEND}
)
"""Effects that say of themselves that they do more out there than read."""


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """The `Stream` port over a connection that came through the door."""

    streams: Streams

    async def read(self, most: int) -> bytes:
        return await self.streams[0].read(most)

    async def write(self, data: bytes) -> None:
        self.streams[1].write(data)
        await self.streams[1].drain()

    async def close(self) -> None:
        await closed(self.streams[1])


@dataclass(frozen=True, slots=True)
class CallNetwork:
    """The `Network` port. Without a grant it reaches nobody."""

    door: Egress
    demand: Demand

    async def fetch(self, request: Request) -> Response:
        if request.method in READING:
            self._may(self.demand.effect in REACHING | {Effect.READ_REMOTE}, "reading from the network")
        else:
            self._may(self.demand.effect in REACHING, f"sending `{request.method}` over the network")
        from mcp_server.guards.network import http

        try:
            return await http.fetch(self.door, request)
        except (DestinationClosed, DestinationUnreached) as refused:
            raise told(refused) from None

    async def connect(self, host: str, port: int) -> OpenConnection:
        self._may(self.demand.effect in REACHING, "a connection over the network")
        try:
            return OpenConnection(await self.door.connect(host, port))
        except (DestinationClosed, DestinationUnreached) as refused:
            raise told(refused) from None

    def _may(self, granted: bool, what: str) -> None:
        if not granted:
            raise not_granted(f"This call was not granted {what}.")


def told(refused: DestinationClosed | DestinationUnreached) -> Refusal:
    if isinstance(refused, DestinationClosed):
        return Refusal(Problem(Code.NETWORK_REFUSED, str(refused), refused.way_out))
    return Refusal(Problem(Code.TOOL_FAILED, str(refused), "Check the name, or ask again later."))
