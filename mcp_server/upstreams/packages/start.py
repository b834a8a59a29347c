"""What is started of a mount? What you wrote, or the package that is kept for it; nothing is fetched for that."""

import anyio.to_thread

from mcp_server.guards.processes.upstream import UpstreamNotStarted
from mcp_server.guards.processes.walls import MountWalls
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.state.location import make_private_folder
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


def find_walls(mount: Mount) -> MountWalls | None:
    """Find the sandbox that the entry demands, or raise `UpstreamNotStarted`; None if it demands none."""
    sandbox, package = mount.sandbox, mount.package
    if sandbox is None:
        return None
    if sandbox.own is None:
        raise UpstreamNotStarted("its entry demands a sandbox, and this account has no folder for what it would keep")
    try:
        make_private_folder(sandbox.own)
    except OSError as wrong:
        raise UpstreamNotStarted(f"{sandbox.own} cannot be written ({wrong.strerror})") from None
    kept = str(package.folder / package.lock.folder) if package and package.lock else ""
    return MountWalls(
        own=sandbox.own,
        write=sandbox.write,
        hosts=parse_destinations(sandbox.network) if sandbox.network else None,
        home=sandbox.home,
        shown=(kept,) if kept else (),
    )


async def check_package(mount: Mount) -> None:
    """Raise `UpstreamNotStarted` if anybody changed the files of its package."""
    if mount.package is None or mount.package.lock is None:
        return
    try:
        await anyio.to_thread.run_sync(check_contents, mount.package)
    except (ContentsChanged, OSError) as wrong:
        raise UpstreamNotStarted(f"{wrong}; `menugate upstreams update {mount.name}` fetches them again") from None
