"""How does a client reach the resources and prompts of a server? Through the gate, as it reaches tools."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from msgspec import Struct

from mcp_server.calls.live_sessions import LiveSession
from mcp_server.calls.policy import CurrentPolicy
from mcp_server.calls.posture import CurrentPostures
from mcp_server.model.context import Client, Context
from mcp_server.model.results import Code, Ending, Refusal, Relayed
from mcp_server.model.tools import Arguments
from mcp_server.model.upstreams import MountBinding, UpstreamCaller, Upstreams, WireResult
from mcp_server.policy.upstream_offers import (
    OfferRoute,
    find_prompt,
    find_resource,
    find_template,
    get_definition,
    is_allowed,
    is_offered,
    list_offers,
)
from mcp_server.policy.upstream_uris import prefix_block

PROMPT_META = "menugate/prompt"
"""Under this, what a prompt has besides its messages' contents passes through the pipeline."""
MAX_KEPT_LINKS, MAX_KEPT_CALLERS = 2_000, 100


async def relay_resource(server: str, binding: MountBinding, context: Context, arguments: Arguments) -> Ending:
    result = await context.upstreams.read_resource(server, str(arguments["uri"]))
    blocks = [{"type": "resource", "resource": part} for part in _read_objects(server, result, "contents")]
    return Relayed(tuple(prefix_block(binding.uri_prefix, block) for block in blocks))


async def relay_prompt(server: str, binding: MountBinding, context: Context, arguments: Arguments) -> Ending:
    given = cast(Mapping[str, str], arguments.get("arguments", {}))
    result = await context.upstreams.get_prompt(server, str(arguments["name"]), given)
    messages = _read_objects(server, result, "messages")
    contents = [one.get("content") for one in messages]
    if not all(isinstance(one, Mapping) for one in contents):
        raise build_fault(server)
    about = {"roles": [one.get("role") for one in messages], "description": result.get("description")}
    blocks = tuple(prefix_block(binding.uri_prefix, cast(Mapping[str, Any], one)) for one in contents)
    return Relayed(blocks, extra={PROMPT_META: about})


def _read_objects(server: str, result: WireResult, key: str) -> list[Mapping[str, Any]]:
    found: Any = result.get(key)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in cast(list[Any], found)):
        raise build_fault(server)
    return cast(list[Mapping[str, Any]], found)


def build_fault(server: str) -> Refusal:
    way_out = "Try another way; the same request would fail again."
    return Refusal.because(Code.UPSTREAM_FAULT, f"the server `{server}` sent something that is not MCP.", way_out)


@dataclass
class KnownLinks:
    """The addresses that servers have named in results: their clients may read them, although no list has them."""

    _by_caller: "OrderedDict[tuple[str, str], OrderedDict[str, None]]" = field(
        default_factory=lambda: OrderedDict[tuple[str, str], OrderedDict[str, None]]()
    )

    def add(self, principal: str, server: str, uris: Iterable[str]) -> None:
        kept = self._by_caller.setdefault((principal, server), OrderedDict[str, None]())
        self._by_caller.move_to_end((principal, server))
        for uri in uris:
            kept[uri] = None
            kept.move_to_end(uri)
        while len(kept) > MAX_KEPT_LINKS:
            kept.popitem(last=False)
        while len(self._by_caller) > MAX_KEPT_CALLERS:
            self._by_caller.popitem(last=False)

    def has(self, principal: str, server: str, uri: str) -> bool:
        return uri in self._by_caller.get((principal, server), ())


class ServerOffers(Struct, frozen=True):
    """What clients can see, follow and complete of the resources and prompts of servers."""

    find: Callable[[], Upstreams | None]
    current_policy: CurrentPolicy
    postures: CurrentPostures
    redact_value: Callable[[Any], Any]

    @property
    def exist(self) -> bool:
        return any(not tool.is_listed for tool in self.current_policy.policy.tools.values())

    async def list_all(self, kind: str, live: LiveSession) -> list[Mapping[str, Any]]:
        if not self.exist:
            return []
        posture = await self.postures.get_for_display(live.session.principal)
        return list(list_offers(kind, live.session, posture, self.current_policy.policy))

    def find_resource(self, uri: str) -> OfferRoute | None:
        return find_resource(uri, self.current_policy.policy)

    def find_prompt(self, name: str) -> OfferRoute | None:
        return find_prompt(name, self.current_policy.policy)

    async def follow(self, uri: str, live: LiveSession, client: Client) -> bool:
        """Have the server watch a resource. False if no server has it, or if it may not be read from here."""
        route = await self._find_allowed(self.find_resource(uri), live)
        servers = self.find()
        if route is None or servers is None or not is_offered(route.tool, route.arguments["uri"]):
            return False
        await servers.subscribe(get_server(route), route.arguments["uri"], build_caller(live, client, route))
        return True

    async def unfollow(self, uri: str, live: LiveSession, client: Client) -> None:
        route, servers = self.find_resource(uri), self.find()
        if route is not None and servers is not None:
            await servers.unsubscribe(get_server(route), route.arguments["uri"], build_caller(live, client))

    async def complete(
        self, ref: Mapping[str, Any], more: Mapping[str, Any], live: LiveSession, client: Client
    ) -> Mapping[str, Any] | None:
        """Return a server's suggestions. `more`: the other parameters of the request. None if no server has this."""
        policy = self.current_policy.policy
        found = find_template(str(ref["uri"]), policy) if "uri" in ref else find_prompt(str(ref.get("name")), policy)
        route, servers = await self._find_allowed(found, live), self.find()
        if route is None or servers is None:
            return None
        params = {**more, "ref": {"type": ref.get("type"), **route.arguments}}
        result = await servers.complete(get_server(route), params, build_caller(live, client, route))
        return self.redact_value(result.get("completion"))

    async def _find_allowed(self, route: OfferRoute | None, live: LiveSession) -> OfferRoute | None:
        posture = await self.postures.get_for_display(live.session.principal)
        allowed = route is not None and is_allowed(route, live.session, posture, self.current_policy.policy)
        return route if allowed else None


def get_server(route: OfferRoute) -> str:
    return (route.tool.written or "").partition(":")[0]


def build_caller(live: LiveSession, client: Client, route: OfferRoute | None = None) -> UpstreamCaller:
    """`route`: what was judged, if the server is to do something for it."""
    session, definition = live.session, get_definition(route.tool) if route else ""
    return UpstreamCaller(session.principal, session.id, client, definition=definition, lasting=not live.passing)
