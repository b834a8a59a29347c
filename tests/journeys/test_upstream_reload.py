"""Does a running menugate follow changes to the servers in its file, and does a wrong file harm nothing?"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.clients import warm
from tests.clients.clients import Held, text
from tests.clients.served import command, environment
from tests.clients.waiting import async_becomes_true
from tests.journeys.test_upstreams import approve, connected, entry, wait_for_tools

pytestmark = pytest.mark.anyio
PLAIN = entry("schemas", tools={"echo": {"effect": "read-local"}})


def rewrite(folder: Path, servers: dict[str, Any] | str, **more: Any) -> None:
    """Write the file as an editor does that replaces it."""
    said = servers if isinstance(servers, str) else json.dumps({"mcpServers": servers, "profile": "trusted", **more})
    (folder / "new.yaml").write_text(said)
    (folder / "new.yaml").replace(folder / "config.yaml")


def run(folder: Path, *words: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    return warm.run(command(*words), environment(folder / "home"), cwd=folder / "work", input=given, text=True)


async def wait_for_answer(client: Held, tool: str, holds: Callable[[str], bool], **arguments: Any) -> str:
    with anyio.fail_after(60):
        while not holds(said := text(await client.call(tool, **arguments))):
            await anyio.sleep(0.05)
    return said


async def test_servers_are_added_and_removed_while_it_runs(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {}) as client:
        assert "UNKNOWN_MODE" in text(await client.call("menu_enter", mode="plain"))
        rewrite(tmp_path, {"plain": PLAIN})
        await wait_for_tools(client, "plain", "`menugate upstreams approve plain`")
        await anyio.to_thread.run_sync(approve, tmp_path, "plain")
        await wait_for_tools(client, "plain", "plain_echo")
        assert text(await client.call("plain_echo", text="hello")) == "hello"
        told = len(client.told)
        rewrite(tmp_path, {})
        said = await wait_for_answer(client, "plain_echo", lambda said: "UNKNOWN_TOOL" in said, text="x")
        assert "The mode `plain` that it was in is gone, because the user changed the configuration" in said
        assert "The mode `plain`" in text(await client.call("menu_list"))
        assert await async_becomes_true(lambda: len(client.told) > told), "the client hears that its list changed"
        assert "plain_echo" not in await client.names()
        rewrite(tmp_path, {"plain": PLAIN})
        said = await wait_for_answer(client, "plain_echo", lambda said: "UNKNOWN_TOOL" not in said, text="back")
        assert said == "back", "it is still approved"


async def test_a_server_pinned_to_the_mode_of_a_mount_follows_changes(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {"plain": PLAIN}, pinned="plain") as client:
        await wait_for_answer(client, "plain_echo", lambda said: said == "hello", text="hello")
        rewrite(tmp_path, {"plain": PLAIN}, rules={"deny": ["plain:echo"]})
        await wait_for_answer(client, "plain_echo", lambda said: "RULE_DENIED" in said, text="hello")
        rewrite(tmp_path, {})
        # Without its mode it could do nothing, so what it had stays in force.
        with anyio.fail_after(30):
            while "no mode `plain` any more" not in await anyio.to_thread.run_sync(read_fault, tmp_path):
                await anyio.sleep(0.05)
        await wait_for_answer(client, "plain_echo", lambda said: "RULE_DENIED" in said, text="hello")


async def test_a_server_that_is_started_differently_is_not_offered(tmp_path: Path) -> None:
    async with connected(tmp_path, "2026-07-28", {"plain": PLAIN}) as client:
        await wait_for_tools(client, "plain", "plain_echo")
        rewrite(tmp_path, {"plain": entry("ordinary")})
        await wait_for_tools(client, "plain", "`menugate upstreams approve plain`")
        assert "UNKNOWN_TOOL" in text(await client.call("plain_echo", text="x"))
        rewrite(tmp_path, {"plain": {**PLAIN, "disabled": True}})
        with anyio.fail_after(60):
            while "UNKNOWN_MODE" not in text(await client.call("menu_enter", mode="plain")):
                await anyio.sleep(0.05)


WRONG = {
    "no yaml": "mcpServers: {plain: [",
    "an unknown key": json.dumps({"mcpServers": {}, "mcpservers": {}}),
    "a fault in the entry": json.dumps({"mcpServers": {"plain": {**PLAIN, "comand": "x"}}, "profile": "trusted"}),
    "a program that is not there": json.dumps({"mcpServers": {"plain": {"command": "nowhere"}}, "profile": "trusted"}),
    "two servers of one name": json.dumps(
        {"mcpServers": {"plain": PLAIN}, "workspaces": {"WORK": {"mcpServers": {"plain": PLAIN}}}, "profile": "trusted"}
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_file_keeps_the_servers_as_they_were(tmp_path: Path, wrong: str) -> None:
    async with connected(tmp_path, "legacy", {"plain": PLAIN}) as client:
        await wait_for_tools(client, "plain", "plain_echo")
        rewrite(tmp_path, WRONG[wrong].replace("WORK", os.path.realpath(tmp_path / "work")))
        with anyio.fail_after(60):
            while not (fault := await anyio.to_thread.run_sync(read_fault, tmp_path)):
                await anyio.sleep(0.05)
        assert "config.yaml" in fault
        assert text(await client.call("plain_echo", text="hello")) == "hello"
        doctor = await anyio.to_thread.run_sync(run, tmp_path, "doctor", "--config", str(tmp_path / "config.yaml"))
        assert doctor.returncode == 1, doctor.stdout


def read_fault(folder: Path) -> str:
    servers = list((folder / "work" / ".menugate" / "servers").glob("*.json"))
    faults = [json.loads(path.read_text())["fault"] for path in servers]
    return "".join(faults)


async def test_one_wrong_entry_harms_no_other(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {"plain": PLAIN}) as client:
        await wait_for_tools(client, "plain", "plain_echo")
        rewrite(tmp_path, {"plain": {"command": "nowhere"}, "other": PLAIN, "worse": {"url": "none"}})
        await wait_for_tools(client, "other", "`menugate upstreams approve other`")
        await wait_for_tools(client, "plain", "plain_echo")


async def test_a_mode_that_names_a_server_keeps_it(tmp_path: Path) -> None:
    mode = {"title": "Mixed", "role": "You mix.", "goal": "Mix.", "offers": "Two.", "when": "to mix", "remember": "No."}
    (tmp_path / "menus").mkdir()
    (tmp_path / "menus" / "mixed.yaml").write_text(json.dumps({"name": "mixed", **mode, "tools": ["Read", "plain:*"]}))
    async with connected(tmp_path, "legacy", {"plain": PLAIN}, menus=["menus"]) as client:
        await wait_for_tools(client, "mixed", "plain_echo")
        rewrite(tmp_path, {}, menus=["menus"])
        with anyio.fail_after(60):
            while not (fault := await anyio.to_thread.run_sync(read_fault, tmp_path)):
                await anyio.sleep(0.05)
        assert "the mode `mixed` names the server `plain`" in fault
        assert text(await client.call("plain_echo", text="hello")) == "hello"


async def test_a_new_value_of_a_secret_starts_its_server_again(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    assert run(tmp_path, "secret", "set", "WHERE", given="canary-first-one").returncode == 0
    servers = {"plain": {**PLAIN, "env": {"WHERE": "${secret:WHERE}"}, "result": {"max_chars": 1000}}}
    async with connected(tmp_path, "legacy", servers) as client:
        await wait_for_tools(client, "plain", "plain_where")
        before = text(await client.call("plain_where"))
        assert "canary" not in before and "plain_where" not in before
        pid = await anyio.to_thread.run_sync(find_children, "schemas.py")
        assert run(tmp_path, "secret", "set", "WHERE", given="canary-second-one").returncode == 0
        with anyio.fail_after(60):
            while pid & await anyio.to_thread.run_sync(find_children, "schemas.py"):
                await anyio.sleep(0.05)
        said = text(await client.call("plain_where"))
        assert "canary" not in said, "the new value is masked as well"
        assert await anyio.to_thread.run_sync(find_children, "schemas.py") - pid
        assert run(tmp_path, "secret", "remove", "WHERE").returncode == 0
        await wait_for_answer(client, "plain_where", lambda said: "UNKNOWN_TOOL" in said)


def find_children(script: str) -> set[int]:
    """The processes of this test that run the script with the variable."""
    found = set[int]()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"WHERE=canary" in path.read_bytes() and script in (path.parent / "cmdline").read_text():
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found
