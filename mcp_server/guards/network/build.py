"""The one door to the network: for tools as a port, for programs in a sandbox as a proxy."""

from collections.abc import Callable
from functools import partial

from mcp_server.guards.network.egress import Door
from mcp_server.guards.network.granted import WorldWide
from mcp_server.guards.network.proxy import Proxy
from mcp_server.model.destinations import Destinations, destination
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect


def for_programs(allowed: Destinations) -> Proxy:
    """What commands are led to: the listed places and no other."""
    return Proxy(Door(allowed, allowed))


def for_tools(opened: Destinations) -> Callable[[Demand], WorldWide]:
    """Every public place, and of the others what the operator wrote down."""
    return partial(WorldWide, Door(None, opened))


def to_one(place: str, opened: Destinations) -> WorldWide:
    """One place that the operator named, and no other; what it asks for in its name is the operator's own wish."""
    only = destination(place)
    door = Door(Destinations((only,)), Destinations((only, *opened.every)))
    return WorldWide(door, Demand(Effect.DELEGATE, Profile.NORMAL))
