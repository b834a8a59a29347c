"""Which processes use one instance? Those of one account that would start the very same server."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.upstreams import ProtocolEra, Serve
from tests.upstreams.ground import caller, script
from tests.upstreams.sharing.ground import BASE, TARGET, count, get_text, sharing

pytestmark = pytest.mark.anyio


async def test_processes_share_one_instance(tmp_path: Path, era: ProtocolEra) -> None:
    mount = script("ordinary", era=era)
    async with AsyncExitStack() as stack:
        grounds = [await stack.enter_async_context(sharing(tmp_path, mount)) for _ in range(5)]
        results = dict[int, str]()

        async def call(number: int) -> None:
            result = await grounds[number].servers.call_tool("ordinary", "echo", {"text": str(number)}, caller())
            results[number] = get_text(result)

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)
        assert results == {number: str(number) for number in range(5)}
        assert count(*grounds) == 1
        for ground in grounds:
            catalogue = await ground.servers.get_catalogue("ordinary", caller())
            assert len(catalogue.tools) == 8 and catalogue.server["name"] == "ordinary"
            assert catalogue.instructions == "Be ordinary."


OTHERS = {
    "arguments": {"target": replace(TARGET, argv=(*TARGET.argv, "x"))},
    "a variable": {"target": replace(TARGET, env={"KEY": "1"})},
    "the folder": {"target": replace(TARGET, folder="/")},
    "another entry": {"name": "other", "slug": "other"},
    "roots": {"roots": True},
    "one session": {"serve": Serve.SESSION},
    "everybody": {"serve": Serve.ALL},
    "era": {"era": ProtocolEra.LEGACY},
}


@pytest.mark.parametrize("how", OTHERS.values(), ids=OTHERS)
async def test_different_definitions_share_nothing(tmp_path: Path, how: dict[str, Any]) -> None:
    other = replace(BASE, **how)
    async with sharing(tmp_path, BASE) as one, sharing(tmp_path, other) as two, sharing(tmp_path, other) as three:
        for ground, mount in ((one, BASE), (two, other), (three, other)):
            await ground.servers.call_tool(mount.name, "two", {}, caller())
        assert count(one, two, three) == (3 if other.serve is Serve.SESSION else 2)


async def test_other_people_and_other_accounts_share_nothing(tmp_path: Path) -> None:
    async with sharing(tmp_path, BASE) as one, sharing(tmp_path, BASE) as two, sharing(tmp_path, BASE, keys="k2") as it:
        for ground in (one, two, it):
            await ground.servers.call_tool("raw", "two", {}, caller())
        assert (count(one, two), count(it)) == (1, 1)
        for ground in (one, two):
            await ground.servers.call_tool("raw", "two", {}, caller(principal="guest"))
        assert count(one, two) == 3


async def test_two_workspaces_share_only_what_does_not_depend_on_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "work").mkdir(parents=True)
    (tmp_path / "b" / "work").mkdir(parents=True)
    # The same HOME, as both belong to one account.
    mounts = [
        replace(BASE, name="here", slug="here"),
        replace(BASE, name="fixed", slug="fixed", target=replace(TARGET, folder="/")),
        replace(BASE, name="told", slug="told", target=replace(TARGET, folder="/"), roots=True),
    ]
    keys = tmp_path / "keys"
    async with (
        sharing(tmp_path / "a", *mounts, keys=keys, home=tmp_path) as one,
        sharing(tmp_path / "b", *mounts, keys=keys, home=tmp_path) as other,
    ):
        for mount, expected in zip(mounts, (2, 3, 5), strict=True):
            for ground in (one, other):
                await ground.servers.call_tool(mount.name, "two", {}, caller())
            assert count(one, other) == expected
