"""Which parts run child processes? Builds the one `CommandHost` that starts, sandboxes and ends them all."""

import sys
from pathlib import Path

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
    host_paths: HostPaths,
    jail: Jail,
    policy: SandboxPolicy = SandboxPolicy.PREFERRED,
    limits: ProcessLimits | None = None,
    proxy: Outlet | None = None,
) -> CommandHost:
    return CommandHost(
        host_paths,
        jail,
        PathWatch(host_paths.workspace, frozenset(host_paths.private_inside)),
        limits or ProcessLimits(),
        ChildRegistry(),
        SandboxChooser(find_sandboxes(host_paths.search_path, host_paths.workspace), policy),
        proxy,
    )


def find_sandboxes(search_path: str, workspace: Path) -> tuple[Sandbox, ...]:
    """List the sandboxes that could work on this system, best first."""
    bubblewrap = find_bubblewrap(search_path, workspace)
    candidates = [bubblewrap, Landlock() if sys.platform == "linux" else None, find_seatbelt()]
    return tuple(sandbox for sandbox in candidates if sandbox is not None)
