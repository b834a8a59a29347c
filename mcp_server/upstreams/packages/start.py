"""What is started of a mount? What you wrote, or the package that is kept for it; nothing is fetched for that."""

import anyio.to_thread

from mcp_server.guards.processes.upstream import UpstreamNotStarted
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.state.upstream_packages import ContentsChanged, check_contents

OFFLINE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Python would write among the files of the package, which are to stay as they were fetched."""


def find_started(mount: Mount, target: StdioTarget) -> StdioTarget:
    """Find what is started in place of what you wrote, or raise `UpstreamNotStarted`."""
    package = mount.package
    if package is None:
        return target
    if package.lock is None:
        raise UpstreamNotStarted(
            f"its package is not on this machine yet; `menugate upstreams approve {mount.name}` fetches it"
        )
    return StdioTarget(package.argv, {**OFFLINE, **target.env}, target.folder)


async def check_package(mount: Mount) -> None:
    """Raise `UpstreamNotStarted` if anybody changed the files of its package."""
    if mount.package is None or mount.package.lock is None:
        return
    try:
        await anyio.to_thread.run_sync(check_contents, mount.package)
    except (ContentsChanged, OSError) as wrong:
        raise UpstreamNotStarted(f"{wrong}; `menugate upstreams update {mount.name}` fetches them again") from None
