"""Does a running menugate follow changes to the mode files, and does a wrong one harm nothing?"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.clients.clients import ERAS, Held, held, over_http, over_stdio, text
from tests.clients.served import served
from tests.clients.waiting import async_becomes_true
from tests.journeys.test_upstream_reload import read_fault, rewrite, run, wait_for_answer
from tests.journeys.test_upstreams import MODE, configure, connected, entry, wait_for_tools

pytestmark = pytest.mark.anyio
MIXED = {**MODE, "tools": ["Read", "grep"]}


def write_mode(folder: Path, mode: dict[str, Any] | str, name: str = "mixed") -> None:
    """Write into the file itself, as many editors do."""
    (folder / "menus").mkdir(exist_ok=True)
    (folder / "menus" / f"{name}.yaml").write_text(mode if isinstance(mode, str) else json.dumps(mode))


@asynccontextmanager
async def mixed(folder: Path, era: str = "legacy", *flags: str) -> AsyncGenerator[Held, None]:
    write_mode(folder, MIXED)
    for name in ("work", "home"):
        (folder / name).mkdir()
    config = configure(folder, {}, menus=["menus"])
    async with held(over_stdio(folder / "work", folder / "home", "--config", str(config), *flags), era) as client:
        yield client


async def wait_for_names(client: Held, *names: str) -> None:
    async def are_listed() -> bool:
        return (await client.names())[-len(names) :] == list(names)

    with anyio.fail_after(30):
        while not await are_listed():
            await anyio.sleep(0.05)


async def wait_for_fault(folder: Path, words: str) -> None:
    with anyio.fail_after(30):
        while words not in await anyio.to_thread.run_sync(read_fault, folder):
            await anyio.sleep(0.05)


@pytest.mark.parametrize("era", ERAS)
async def test_a_mode_is_as_its_file_says(tmp_path: Path, era: str) -> None:
    async with mixed(tmp_path, era) as client:
        await client.call("menu_enter", mode="mixed")
        await wait_for_names(client, "Read", "grep")
        assert "WRONG_MODE" in text(await client.call("glob", pattern="*"))
        told = len(client.told)
        write_mode(tmp_path, {**MIXED, "tools": ["Read", "glob"]})
        # A client that asks by itself is not told of what it knows.
        assert era != "legacy" or await async_becomes_true(lambda: len(client.told) > told)
        await wait_for_names(client, "Read", "glob")
        assert "WRONG_MODE" not in text(await client.call("glob", pattern="*"))
        assert "WRONG_MODE" in text(await client.call("grep", pattern="x"))
        write_mode(tmp_path, {**MIXED, "name": "second", "title": "Second", "when": "to be second"}, "second")
        await wait_for_answer(client, "menu_enter", lambda said: "UNKNOWN_MODE" not in said, mode="second")
        (tmp_path / "menus" / "second.yaml").unlink()
        said = await wait_for_answer(client, "grep", lambda said: "WRONG_MODE" in said, pattern="x")
        assert "The mode `second` that it was in is gone, because the user changed the configuration" in said
        assert "grep" not in await client.names()


WRONG = {
    "no yaml": ("name: [", "mixed.yaml"),
    "a missing text": (json.dumps({key: value for key, value in MIXED.items() if key != "role"}), "role"),
    "an unknown tool": (json.dumps({**MIXED, "tools": ["Reed"]}), "Read"),
    "an unknown server": (json.dumps({**MIXED, "tools": ["nobody:*"]}), "nobody"),
    "the name of another mode": (json.dumps({**MIXED, "name": "git"}), "already a mode `git`"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_mode_keeps_all_of_them_as_they_were(tmp_path: Path, wrong: str) -> None:
    text_of_file, says = WRONG[wrong]
    async with mixed(tmp_path) as client:
        await client.call("menu_enter", mode="mixed")
        write_mode(tmp_path, text_of_file)
        await wait_for_fault(tmp_path, says)
        assert (await client.names())[-2:] == ["Read", "grep"]
        doctor = await anyio.to_thread.run_sync(run, tmp_path, "doctor", "--config", str(tmp_path / "config.yaml"))
        assert doctor.returncode == 1, doctor.stdout
        # The rest of the configuration goes on, and so does the file once it is right.
        rewrite(tmp_path, {}, menus=["menus"], rules={"deny": ["grep"]})
        await wait_for_names(client, "Read")
        write_mode(tmp_path, {**MIXED, "tools": ["Read", "glob"]})
        await wait_for_names(client, "Read", "glob")
        assert not await anyio.to_thread.run_sync(read_fault, tmp_path)


async def test_the_mode_of_a_server_that_has_only_one_stays(tmp_path: Path) -> None:
    async with mixed(tmp_path, "legacy", "--mode", "mixed") as client:
        (tmp_path / "menus" / "mixed.yaml").unlink()
        await wait_for_fault(tmp_path, "no mode `mixed` any more")
        assert {"Read", "grep"} <= set(await client.names())


async def test_a_server_goes_together_with_the_modes_that_name_it(tmp_path: Path) -> None:
    plain = entry("ordinary")
    write_mode(tmp_path, {**MODE, "tools": ["Read", "plain:echo"]})
    async with connected(tmp_path, "legacy", {"plain": plain}, menus=["menus"]) as client:
        await wait_for_tools(client, "mixed", "plain_echo")
        write_mode(tmp_path, {**MODE, "tools": ["Read", "plain:add"]})
        await wait_for_names(client, "Read", "plain_add")
        assert (await client.call("plain_add", a=1, b=2)).structured_content == {"sum": 3}
        rewrite(tmp_path, {}, menus=["menus"])
        await wait_for_fault(tmp_path, "the mode `mixed` names the server `plain`")
        assert (await client.call("plain_add", a=1, b=2)).structured_content == {"sum": 3}
        write_mode(tmp_path, MIXED)
        await wait_for_names(client, "Read", "grep")
        assert "UNKNOWN_TOOL" in text(await client.call("plain_add", a=1, b=2))
        assert not await anyio.to_thread.run_sync(read_fault, tmp_path)


async def test_a_new_mode_has_an_address_of_its_own(tmp_path: Path) -> None:
    write_mode(tmp_path, MIXED)
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    config = configure(tmp_path, {}, menus=["menus"])
    with served(tmp_path / "work", tmp_path / "home", "--config", str(config)) as here:
        async with held(over_http(here), "legacy") as client:
            write_mode(tmp_path, {**MIXED, "name": "second", "title": "Second", "when": "to be second"}, "second")
            await wait_for_answer(client, "menu_enter", lambda said: "UNKNOWN_MODE" not in said, mode="second")
        async with held(over_http(here, "/second"), "legacy") as client:
            assert (await client.names())[-2:] == ["Read", "grep"]
