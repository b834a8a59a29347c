"""Which parts reach the network? A port for tools and a proxy for sandboxed programs, each over an `Egress`."""

from collections.abc import Callable
from functools import partial

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.http import CallNetwork
from mcp_server.guards.network.proxy import EgressProxy
from mcp_server.model.destinations import Destinations, parse_destination
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect


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
