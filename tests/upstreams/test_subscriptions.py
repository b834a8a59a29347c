"""Do changes that a server announces by itself arrive, in both eras, and again after it was started again?"""

from pathlib import Path

import pytest

from mcp_server.model.upstreams import Mount, ProtocolEra, UpstreamChange
from tests.clients.waiting import async_becomes_true
from tests.upstreams.ground import caller, grounded, script

pytestmark = pytest.mark.anyio
LISTED = UpstreamChange("ordinary", "catalogue")


async def test_a_changed_list_is_read_again(tmp_path: Path, ordinary: Mount) -> None:
    async with grounded(tmp_path, ordinary) as ground:
        servers = ground.servers

        async def count() -> int:
            return len((await servers.get_catalogue("ordinary", caller())).tools)

        listed = await count()
        # The server may not listen yet, and forgets what nobody listens to.
        for _ in range(50):
            before = ground.changes.count(LISTED)
            await servers.call_tool("ordinary", "change", {}, caller())
            if await async_becomes_true(lambda before=before: ground.changes.count(LISTED) > before):
                break
        assert await count() > listed


@pytest.mark.parametrize("how", ["legacy", "modern"])
async def test_a_watched_resource_is_announced_until_nobody_watches(tmp_path: Path, how: str) -> None:
    mount = script("raw", "subscribe") if how == "legacy" else script("ordinary", era=ProtocolEra.MODERN)
    wanted = UpstreamChange(mount.name, "resource", "memo://notes", "owner")
    async with grounded(tmp_path, mount) as ground:
        await ground.servers.subscribe(mount.name, "memo://notes", caller())
        if how == "modern":
            await ground.servers.call_tool("ordinary", "change", {}, caller())
        assert await async_becomes_true(lambda: wanted in ground.changes)
        await ground.servers.unsubscribe(mount.name, "memo://notes", caller())
        ground.changes.clear()
        await ground.servers.call_tool(mount.name, "one" if how == "legacy" else "change", {}, caller())
        assert wanted not in ground.changes
