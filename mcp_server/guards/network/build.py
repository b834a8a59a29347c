"""How is network access built? One `Egress` behind both: a port for tools, a proxy for sandboxed programs."""

from collections.abc import Callable
from functools import partial

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http import CallNetwork
from mcp_server.guards.network.proxy import EgressProxy
from mcp_server.model.destinations import Destinations, parse_destination
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect


def build_program_proxy(allowed: Destinations) -> EgressProxy:
    """What commands may reach: the listed places and no others."""
    return EgressProxy(Egress(allowed, allowed))


def build_tool_network(opened: Destinations) -> Callable[[Demand], CallNetwork]:
    """Every public place, and non-public ones only if the operator listed them."""
    return partial(CallNetwork, Egress(None, opened))


def build_single_place_network(place: str, opened: Destinations) -> CallNetwork:
    """Exactly one place, which the operator named; requests there count as the operator's own wish."""
    only = parse_destination(place)
    door = Egress(Destinations((only,)), Destinations((only, *opened.every)))
    return CallNetwork(door, Demand(Effect.DELEGATE, Profile.NORMAL))
