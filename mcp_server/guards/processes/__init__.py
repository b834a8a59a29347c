"""The one door to every child process: shut in as the person's profile says, and gone when nobody needs it."""

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.choosing import Ladder, find_bubblewrap
from mcp_server.guards.processes.launching import Sandbox
from mcp_server.guards.processes.limits import Limits
from mcp_server.guards.processes.places import Watch
from mcp_server.guards.processes.reach import Ground
from mcp_server.guards.processes.starting import Granted, Nursery, Workshop

__all__ = ["Granted", "Ground", "Limits", "Nursery", "Sandbox", "Workshop", "workshop"]


def workshop(ground: Ground, jail: Jail, limits: Limits | None = None) -> Workshop:
    own = frozenset(inside for one in ground.private if (inside := ground.inside(one)))
    rungs = [one for one in (find_bubblewrap(ground.search_path),) if one is not None]
    ladder = Ladder(tuple(rungs))
    return Workshop(ground, jail, Watch(ground.workspace, own), limits or Limits(), Nursery(), ladder)
