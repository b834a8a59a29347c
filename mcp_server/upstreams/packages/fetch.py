"""How does a server's package come to this machine? It is installed once, in the mount's own folder, and locked."""

import shutil
import time
from collections.abc import Mapping

import anyio.to_thread

from mcp_server.guards.processes.commands import CommandHost
from mcp_server.model.upstream_packages import MountPackage, PackageLock
from mcp_server.settings import INSTALLERS_NAME
from mcp_server.state.upstream_packages import compute_contents, compute_stamp, make_place
from mcp_server.upstreams.packages.installers import Installation, PackageNotFetched, install


async def fetch_package(
    host: CommandHost, package: MountPackage, variables: Mapping[str, str], env: Mapping[str, str]
) -> PackageLock:
    """Install what is asked for into a new folder beside what is there. `env`: the entry's own variables; of these, the
    package manager gets only those that are about it."""
    given = {**variables, **{name: value for name, value in env.items() if INSTALLERS_NAME.fullmatch(name)}}
    try:
        place = make_place(package)
    except OSError as wrong:
        raise PackageNotFetched(f"{wrong.filename} cannot be written ({wrong.strerror})") from None
    try:
        installed = await install(Installation(host, package.request, place, given))
        contents = await anyio.to_thread.run_sync(compute_contents, place)
        stamp = await anyio.to_thread.run_sync(compute_stamp, place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return PackageLock(
        packages=installed.packages,
        folder=place.name,
        interpreter=installed.interpreter,
        program=installed.program,
        contents=contents,
        stamp=stamp,
        fetched_at=time.time_ns(),
        scripts=installed.scripts,
    )
