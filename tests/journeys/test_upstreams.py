"""Can a client use other servers through menugate, with the same gate and menus as its own tools?"""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.clients import warm
from tests.clients.clients import Held, held, over_stdio, text
from tests.clients.served import PATIENCE, command, environment

SERVERS = Path(__file__).parents[1] / "upstreams" / "servers"
ERAS = ("legacy", "2026-07-28")
pytestmark = pytest.mark.anyio


def entry(script: str, *args: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVERS / f"{script}.py"), *args], **more}


def configure(folder: Path, servers: dict[str, Any], **more: Any) -> Path:
    file = folder / "config.yaml"
    file.write_text(json.dumps({"mcpServers": servers, "profile": "trusted", **more}))
    return file


def approve(folder: Path, name: str) -> None:
    """Approve what the server offers now, as the user does in a script."""
    words = ("upstreams", "approve", name, "--config", str(folder / "config.yaml"), "--workspace", str(folder / "work"))

    run_command(folder, *words, "--digest", json.loads(run_command(folder, *words, "--json"))["digest"])


def run_command(folder: Path, *words: str, given: str = "") -> str:
    """Run menugate as the user would, and return what it prints."""
    stdin = subprocess.PIPE if given else subprocess.DEVNULL
    pipes: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = warm.start(command(*words), environment(folder / "home"), cwd=folder, text=True, **pipes)
    says, faults = done.communicate(given or None, timeout=PATIENCE)
    assert done.returncode == 0, faults
    return says


@asynccontextmanager
async def connected(
    folder: Path, era: str, servers: dict[str, Any], approved: bool = True, pinned: str = "", **more: Any
) -> AsyncGenerator[Held, None]:
    work, home = folder / "work", folder / "home"
    work.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    config = configure(folder, servers, **more)
    for name in (name for name, entry in servers.items() if approved and entry["command"] == sys.executable):
        approve(folder, name)
    flags = ("--mode", pinned) if pinned else ()
    async with held(over_stdio(work, home, "--config", str(config), *flags), era) as client:
        yield client


async def wait_for_tools(client: Held, mode: str, *tools: str) -> None:
    """Wait until the server has said what it offers, which takes its own start."""
    with anyio.fail_after(60):
        while True:
            menu = text(await client.call("menu_enter", mode=mode))
            if all(tool in menu for tool in tools):
                return
            await anyio.sleep(0.1)


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_without_a_menu_gets_a_mode_of_its_own(tmp_path: Path, era: str) -> None:
    servers = {"plain": entry("ordinary"), "broken": {"command": "no-such-program"}}
    async with connected(tmp_path, era, servers) as client:
        await wait_for_tools(client, "plain", "plain_echo")
        assert "plain_echo" in await client.names()
        assert text(await client.call("plain_echo", text="hello")) == "hello"
        failed = await client.call("plain_fail")
        assert failed.is_error and text(failed) == "it failed"
        assert (await client.call("plain_add", a=1, b=2)).structured_content == {"sum": 3}
        carried = await client.call("menu_call", tool="plain_echo", arguments={"text": "again"})
        assert text(carried) == "again"
        assert "UNKNOWN_TOOL" in text(await client.call("plain_nothing"))
    # Now its tools are known before it is started.
    async with connected(tmp_path, era, {"plain": entry("ordinary")}) as client:
        assert "plain_echo" in text(await client.call("menu_enter", mode="plain"))


MODE = {
    "name": "mixed",
    "title": "Mixed",
    "role": "You mix.",
    "goal": "It is mixed.",
    "offers": "Tools of two kinds.",
    "when": "to mix things",
    "remember": "Be brief.",
    "tools": ["Read", "plain:ec*", "plain:add"],
}


async def test_a_mode_mixes_our_own_tools_with_those_of_servers(tmp_path: Path) -> None:
    (tmp_path / "menus").mkdir()
    (tmp_path / "menus" / "mixed.yaml").write_text(json.dumps(MODE))
    async with connected(tmp_path, "legacy", {"plain": entry("ordinary")}, menus=["menus"]) as client:
        await wait_for_tools(client, "mixed", "plain_echo")
        assert (await client.names())[-3:] == ["Read", "plain_echo", "plain_add"]
        assert "WRONG_MODE" in text(await client.call("plain_fail"))


@pytest.mark.parametrize("era", ERAS)
async def test_a_mode_can_be_everywhere(tmp_path: Path, era: str) -> None:
    (tmp_path / "menus").mkdir()
    (tmp_path / "menus" / "mixed.yaml").write_text(json.dumps({**MODE, "everywhere": True}))
    async with connected(tmp_path, era, {"plain": entry("ordinary")}, menus=["menus"]) as client:
        names = await client.names()
        assert {"Read", "plain_echo", "plain_add"} <= set(names) and "plain_fail" not in names
        assert text(await client.call("plain_echo", text="hello")) == "hello"
        assert "WRONG_MODE" in text(await client.call("plain_fail"))
        await client.call("menu_enter", mode="git")
        assert "plain_echo" in await client.names() and (await client.names()).count("Read") == 1
    async with connected(tmp_path, era, {"plain": entry("ordinary")}, menus=["menus"], pinned="git") as client:
        assert "plain_echo" not in await client.names()
        assert "WRONG_MODE" in text(await client.call("plain_echo", text="hello"))


async def test_rules_apply_to_the_tools_of_servers(tmp_path: Path) -> None:
    rules = {"deny": ["plain:add", 'plain:echo(text eq "no")'], "ask": ["plain:wh*"]}
    shape = {"echo": {"effect": "read-local"}}
    servers = {"plain": entry("schemas", tools=shape)}
    async with connected(tmp_path, "legacy", servers, rules=rules) as client:
        await wait_for_tools(client, "plain", "plain_echo")
        assert "plain_add" not in await client.names()
        assert "RULE_DENIED" in text(await client.call("plain_add", a=1, b=2))
        assert "RULE_DENIED" in text(await client.call("plain_echo", text="no"))
        assert text(await client.call("menu_read", tool="plain_echo", arguments={"text": "yes"})) == "yes"
        assert "INVALID_ARGUMENTS" in text(await client.call("plain_echo", text=5))


async def test_a_profile_below_trusted_hides_what_nobody_knows(tmp_path: Path) -> None:
    shape = {"echo": {"effect": "read-local"}}
    servers = {"plain": entry("schemas", tools=shape)}
    async with connected(tmp_path, "legacy", servers, profile="normal") as client:
        await wait_for_tools(client, "plain", "plain_echo")
        names = await client.names()
        assert "plain_echo" in names and "plain_add" not in names
        assert "PROFILE_TOO_LOW" in text(await client.call("plain_add", a=1, b=2))


async def test_fixed_arguments_are_added_and_cannot_be_given(tmp_path: Path) -> None:
    servers = {"plain": entry("schemas", tools={"add": {"fix": {"a": 40}}})}
    async with connected(tmp_path, "legacy", servers) as client:
        await wait_for_tools(client, "plain", "plain_add")
        tools = {tool.name: tool for tool in (await client.client.list_tools()).tools}
        assert set(tools["plain_add"].input_schema["properties"]) == {"b"}
        assert (await client.call("plain_add", b=2)).structured_content == {"sum": 42}
        assert "INVALID_ARGUMENTS" in text(await client.call("plain_add", a=1, b=2))


async def test_names_stay_without_a_prefix(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {"plain": entry("schemas", prefix=False)}) as client:
        await wait_for_tools(client, "plain", "echo")
        assert text(await client.call("echo", text="hello")) == "hello"


async def test_a_changing_catalogue_changes_the_list_and_says_so(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {"plain": entry("schemas", era="legacy", changes="allow-new")}) as client:
        await wait_for_tools(client, "plain", "plain_grow")
        assert "plain_grown" not in await client.names()
        before = len(client.told)
        await client.call("plain_grow")
        with anyio.fail_after(30):
            while len(client.told) == before:
                await anyio.sleep(0.05)
        assert "plain_grown" in await client.names()
        assert text(await client.call("plain_grown")) == "grown"


async def test_a_bad_tool_harms_no_other(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {"plain": entry("schemas", "bad")}) as client:
        await wait_for_tools(client, "plain", "plain_echo")
        names = await client.names()
        assert not [name for name in names if "bad" in name]


async def test_a_rule_that_cannot_be_applied_bars_its_tool(tmp_path: Path) -> None:
    rules = {"deny": ['plain:echo(nothing eq "x")']}
    async with connected(tmp_path, "legacy", {"plain": entry("schemas")}, rules=rules) as client:
        await wait_for_tools(client, "plain", "plain_add")
        assert "UNKNOWN_TOOL" in text(await client.call("plain_echo", text="hello"))


@pytest.mark.parametrize("era", ERAS)
async def test_nothing_of_a_server_is_offered_before_the_user_approves_it(tmp_path: Path, era: str) -> None:
    servers = {"plain": entry("ordinary")}
    async with connected(tmp_path, era, servers, approved=False) as client:
        await wait_for_tools(client, "plain", "`menugate upstreams approve plain`")
        assert not [name for name in await client.names() if name.startswith("plain_")]
        assert "UNKNOWN_TOOL" in text(await client.call("plain_echo", text="hello"))
        carried = await client.call("menu_call", tool="plain_echo", arguments={"text": "hello"})
        assert "UNKNOWN_TOOL" in text(carried)
        approve(tmp_path, "plain")
        await wait_for_tools(client, "plain", "plain_echo")
        assert text(await client.call("plain_echo", text="hello")) == "hello"


async def test_a_tool_that_is_new_since_the_approval_is_not_offered(tmp_path: Path) -> None:
    async with connected(tmp_path, "legacy", {"plain": entry("schemas", era="legacy")}) as client:
        await wait_for_tools(client, "plain", "plain_grow")
        await client.call("plain_grow")
        assert "UNKNOWN_TOOL" in text(await client.call("plain_grown"))
        assert "plain_grown" not in await client.names()
