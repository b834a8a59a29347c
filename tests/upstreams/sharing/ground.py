"""Several processes of one account, as far as sharing can tell: each has its own links, hosts and children."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from mcp_server.model.destinations import Destinations
from mcp_server.model.upstreams import Mount, StdioTarget, UpstreamChange, WireResult
from mcp_server.upstreams.links import LinkOpener
from mcp_server.upstreams.servers import UpstreamServers
from mcp_server.upstreams.sharing.links import SharedLinks
from tests.upstreams.ground import OWNER, SERVERS, Ground, Recorder, build_host, script

TARGET = StdioTarget((sys.executable, str(SERVERS / "raw.py")))
BASE = replace(script("raw"), target=TARGET)


@asynccontextmanager
async def sharing(
    folder: Path, *mounts: Mount, keys: str | Path = "keys", home: Path | None = None, seconds: float = 5.0
) -> AsyncGenerator[Ground]:
    """One such process. `keys`: the folder of its keys."""
    (folder / keys).mkdir(mode=0o700, exist_ok=True)
    host, changes = build_host(folder, home), list[UpstreamChange]()
    links = SharedLinks(LinkOpener(host, folder / "logs", OWNER, Destinations()), folder / keys, Recorder(), seconds)
    servers = UpstreamServers(links.open_link, host.paths.workspace.as_uri(), OWNER, changes.append)
    servers.set_mounts(mounts)
    try:
        yield Ground(servers, host, folder / "logs", changes)
    finally:
        await servers.close()
        await host.close()


def count(*grounds: Ground) -> int:
    """How many servers run."""
    return sum(len(one.host.registry.children) for one in grounds)


def get_text(result: WireResult) -> str:
    return result["content"][-1]["text"]
