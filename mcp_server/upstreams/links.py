"""How is a mount reached? As a program that we start, or at an address."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from msgspec import Struct

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.model.destinations import Destinations
from mcp_server.model.upstreams import Mount, StdioTarget, UpstreamChange
from mcp_server.upstreams.logs import UpstreamLog
from mcp_server.upstreams.messages import Link
from mcp_server.upstreams.servers import UpstreamServers
from mcp_server.upstreams.stdio import open_stdio_link


def build_upstreams(
    opener: "LinkOpener", workspace: Path, on_change: Callable[[UpstreamChange], None]
) -> UpstreamServers:
    """Build the port over all mounts; `set_mounts` says which they are. Close it before the guards."""
    return UpstreamServers(opener.open_link, workspace.as_uri(), opener.owner, on_change, opener.redact)


class LinkOpener(Struct, frozen=True):
    """Connects to mounts on behalf of principals."""

    host: CommandHost
    logs: Path
    """The folder with a log per mount."""
    owner: str
    """The principal who runs this server, and who configured the mounts."""
    operator_list: Destinations
    """What the network guard lets others reach although it is not public."""
    redact: Callable[[str], str] = str
    note_use: Callable[[Mount], None] = lambda _: None
    """Notes that the secrets of a mount are used."""

    def open_link(self, mount: Mount, principal: str) -> AbstractAsyncContextManager[Link]:
        target = mount.target
        if mount.secrets:
            self.note_use(mount)
        if isinstance(target, StdioTarget):
            return open_stdio_link(self.host, mount, target, self.open_log(mount))
        from mcp_server.upstreams.http import build_mount_egress, open_http_link  # slow to load

        return open_http_link(target, build_mount_egress(target, self.operator_list, principal == self.owner))

    def open_log(self, mount: Mount) -> UpstreamLog:
        return UpstreamLog(self.logs / f"{mount.slug}.log", self.redact)
