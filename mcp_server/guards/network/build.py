"""The one door to the network: for tools as a port, for programs in a sandbox as a proxy."""

from collections.abc import Callable
from functools import partial

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http import CallNetwork
from mcp_server.guards.network.proxy import EgressProxy
from mcp_server.model.destinations import Destinations, parse_destination
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect


def build_program_proxy(allowed: Destinations) -> EgressProxy:
    """What commands are led to: the listed places and no other."""
    return EgressProxy(Egress(allowed, allowed))


def build_tool_network(opened: Destinations) -> Callable[[Demand], CallNetwork]:
    """Every public place, and of the others what the operator wrote down."""
    return partial(CallNetwork, Egress(None, opened))


def build_single_place_network(place: str, opened: Destinations) -> CallNetwork:
    """One place that the operator named, and no other; what it asks for in its name is the operator's own wish."""
    only = parse_destination(place)
    door = Egress(Destinations((only,)), Destinations((only, *opened.every)))
    return CallNetwork(door, Demand(Effect.DELEGATE, Profile.NORMAL))
