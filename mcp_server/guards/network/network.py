"""How do tools and programs reach the network? The `Network` port of one call, and a proxy, each over an `Egress`."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct, field

from mcp_server.guards.network.egress import DestinationClosed, DestinationUnreached, Egress, Streams, close_writer
from mcp_server.guards.network.outgoing import SecretSearch
from mcp_server.guards.network.proxy import EgressProxy
from mcp_server.guards.network.route import WebRoute
from mcp_server.guards.refusals import build_not_granted_refusal
from mcp_server.model.destinations import Destinations, parse_destination
from mcp_server.model.network import Request, Response
from mcp_server.model.policy import Verdict
from mcp_server.model.posture import Profile
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.tools import Demand, Effect
from mcp_server.model.web_access import WebAccess
from mcp_server.policy.network import judge_host

if TYPE_CHECKING:
    from mcp_server.guards.network.http import HttpClient
    from mcp_server.guards.network.redirects import Hop

WEB_SETTING = "`web: allow:` in menugate.yaml"
MAX_HOSTS = 50
"""How many hosts the record of one call names."""
CLOSE_SECONDS = 2.0
READ_METHODS = frozenset({"GET", "HEAD"})
REMOTE_EFFECTS = frozenset(
    {Effect.BROWSER_ACT, Effect.REMOTE_WRITE, Effect.PRODUCTION_MUTATION, Effect.DELEGATE, Effect.SPEND}
)
"""Effects that include sending data, not just reading."""


class GrantedStream(Struct, frozen=True):
    """The `Stream` port over a connection made by `Egress`."""

    streams: Streams
    search: SecretSearch | None = None
    _tail: bytearray = field(default_factory=bytearray)
    """The end of what was written: a secret may be written in two halves."""

    async def read(self, most: int) -> bytes:
        return await self.streams[0].read(most)

    async def write(self, data: bytes) -> None:
        if self.search is not None:
            self._tail.extend(data)
            if self.search.is_in(bytes(self._tail)):
                raise build_secret_refusal()
            del self._tail[: -self.search.longest or None]
        self.streams[1].write(data)
        await self.streams[1].drain()

    async def close(self) -> None:
        await close_writer(self.streams[1])


@dataclass
class CallNetwork:
    """The `Network` port of one call, limited to what the call was granted."""

    egress: Egress
    demand: Demand
    route: WebRoute = dataclasses.field(default_factory=WebRoute)
    search: SecretSearch | None = None
    """Searches what is sent for secrets; None if nothing does."""
    hosts: dict[str, None] = dataclasses.field(default_factory=dict[str, None])
    """The hosts that the call turned to, in this order."""
    _client: "HttpClient | None" = None

    async def fetch(self, request: Request) -> Response:
        if request.method in READ_METHODS:
            self._require_granted(self.demand.effect in REMOTE_EFFECTS | {Effect.READ_REMOTE}, "read from the network")
        else:
            self._require_granted(self.demand.effect in REMOTE_EFFECTS, f"send `{request.method}` requests")
        try:
            return await self._open_client().fetch(request, self._check_hop)
        except (DestinationClosed, DestinationUnreached) as error:
            raise build_unreached_refusal(error) from None

    async def connect(self, host: str, port: int) -> GrantedStream:
        self._require_granted(self.demand.effect in REMOTE_EFFECTS, "open network connections")
        if self.route.proxy is not None:
            raise build_not_granted_refusal("Tools can only make HTTP requests, because the operator set a proxy.")
        try:
            self.egress.check_destination(host, port)
            self._note_host(host, port)
            return GrantedStream(await self.egress.connect(host, port), self.search)
        except (DestinationClosed, DestinationUnreached) as error:
            raise build_unreached_refusal(error) from None

    def _check_hop(self, hop: "Hop") -> None:
        self.egress.check_destination(hop.address.host, hop.address.port)
        if self.search is not None and self.search.is_in_request(hop.address, hop.request):
            raise build_secret_refusal()
        self._note_host(hop.address.host, hop.address.port)

    def _note_host(self, host: str, port: int) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if len(self.hosts) < MAX_HOSTS:
            self.hosts[place] = None

    async def close(self) -> None:
        """End the connections that were kept for more requests."""
        if self._client is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await self._client.close()

    def _open_client(self) -> "HttpClient":
        if self._client is None:
            from mcp_server.guards.network.http import HttpClient  # slow to load, and most servers never need it

            self._client = HttpClient(self.egress, self.route)
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


class ToolNetworks(Struct, frozen=True):
    """Builds the networks of calls. Above `restricted`, tools reach every public host that no list closes."""

    search: SecretSearch

    def build_network(
        self, demand: Demand, profile: Profile, web: WebAccess, named: Collection[tuple[str, int]]
    ) -> CallNetwork:
        """`named` are the hosts in the call's own arguments, which the rules have already judged."""
        judge = partial(judge_tool_host, web, profile, named)
        egress = Egress(None, web.allow, judge=judge, closed=web.deny, setting=WEB_SETTING)
        return CallNetwork(egress, demand, WebRoute(web.proxy, web.authorities), self.search)


def judge_tool_host(
    web: WebAccess, profile: Profile, named: Collection[tuple[str, int]], host: str, port: int
) -> DestinationClosed | None:
    verdict = judge_host(web, host, port)
    if verdict is Verdict.DENY:
        return DestinationClosed(f"The operator does not let tools reach `{host}:{port}`.", "Use another source.")
    if verdict is Verdict.ASK and (host, port) not in named:
        return DestinationClosed(
            f"Tools may reach `{host}:{port}` only with the user's approval.",
            "If the tool takes a URL, call it with this one, so that the user can be asked.",
        )
    if verdict is None and profile is Profile.RESTRICTED:
        return DestinationClosed(
            f"At profile `restricted`, tools reach only the hosts that the operator listed, and not `{host}:{port}`.",
            f"The user can add it to {WEB_SETTING}, or choose another profile.",
        )
    return None


def build_secret_refusal() -> Refusal:
    message = "The request contains a secret that menugate knows, so it was not sent."
    return Refusal(Problem(Code.NETWORK_REFUSED, message, "Leave the secret out of the URL, the headers and the body."))


def build_single_place_network(place: str, operator_list: Destinations) -> CallNetwork:
    """Reach exactly one place, which the operator named; that grants every request there."""
    destination = parse_destination(place)
    egress = Egress(Destinations((destination,)), Destinations((destination, *operator_list.every)))
    return CallNetwork(egress, Demand(Effect.DELEGATE, Profile.NORMAL))
