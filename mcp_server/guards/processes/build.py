"""How are child processes built? One `CommandHost` starts, sandboxes and ends them all."""

import sys

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.choose import SandboxChooser, find_bubblewrap
from mcp_server.guards.processes.commands import ChildRegistry, CommandHost
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.guards.sandbox.landlock import Landlock
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.guards.sandbox.proxy_socket import Outlet
from mcp_server.guards.sandbox.seatbelt import find_seatbelt
from mcp_server.model.processes import ProcessLimits, SandboxPolicy


def build_command_host(
    ground: HostPaths,
    jail: Jail,
    want: SandboxPolicy = SandboxPolicy.PREFERRED,
    limits: ProcessLimits | None = None,
    outlet: Outlet | None = None,
) -> CommandHost:
    own = frozenset(inside for one in ground.private if (inside := ground.to_workspace_path(one)))
    watch = PathWatch(ground.workspace, own)
    return CommandHost(
        ground,
        jail,
        watch,
        limits or ProcessLimits(),
        ChildRegistry(),
        SandboxChooser(find_sandboxes(ground.search_path), want),
        outlet,
    )


def find_sandboxes(search_path: str) -> tuple[Sandbox, ...]:
    """List the sandboxes that could work on this system, best first."""
    found = [find_bubblewrap(search_path), Landlock() if sys.platform == "linux" else None, find_seatbelt()]
    return tuple(one for one in found if one is not None)
