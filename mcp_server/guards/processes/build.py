"""The one door to every child process: shut in as the person's profile says, and gone when nobody needs it."""

import sys

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.choose import Ladder, find_bubblewrap
from mcp_server.guards.processes.commands import Nursery, Workshop
from mcp_server.guards.sandbox.access import Ground
from mcp_server.guards.sandbox.landlock import Landlock
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import Watch
from mcp_server.guards.sandbox.proxy_socket import Outlet
from mcp_server.guards.sandbox.seatbelt import find_seatbelt
from mcp_server.model.processes import Limits, Sandboxing


def workshop(
    ground: Ground,
    jail: Jail,
    want: Sandboxing = Sandboxing.PREFERRED,
    limits: Limits | None = None,
    outlet: Outlet | None = None,
) -> Workshop:
    own = frozenset(inside for one in ground.private if (inside := ground.inside(one)))
    watch = Watch(ground.workspace, own)
    return Workshop(ground, jail, watch, limits or Limits(), Nursery(), Ladder(rungs(ground.search_path), want), outlet)


def rungs(search_path: str) -> tuple[Sandbox, ...]:
    """The sandboxes there could be on this system, the best first."""
    found = [find_bubblewrap(search_path), Landlock() if sys.platform == "linux" else None, find_seatbelt()]
    return tuple(one for one in found if one is not None)
