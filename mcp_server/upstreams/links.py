"""How is a mount reached? As a program that we start, or at an address."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.model.destinations import Destinations
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.upstreams.logs import UpstreamLog
from mcp_server.upstreams.messages import Link
from mcp_server.upstreams.stdio import open_stdio_link


@dataclass(frozen=True)
class LinkOpener:
    """Connects to mounts on behalf of principals."""

    host: CommandHost
    logs: Path
    """The folder with a log per mount."""
    owner: str
    """The principal who runs this server, and who configured the mounts."""
    operator_list: Destinations
    """What the network guard lets others reach although it is not public."""
    redact: Callable[[str], str] = str

    def open_link(self, mount: Mount, principal: str) -> AbstractAsyncContextManager[Link]:
        target = mount.target
        if isinstance(target, StdioTarget):
            return open_stdio_link(self.host, target, self.open_log(mount))
        from mcp_server.upstreams.http import build_mount_egress, open_http_link  # slow to load

        return open_http_link(target, build_mount_egress(target, self.operator_list, principal == self.owner))

    def open_log(self, mount: Mount) -> UpstreamLog:
        return UpstreamLog(self.logs / f"{mount.slug}.log", self.redact)
