"""Who shares a running server? The sessions and processes that may, and nobody else."""

import json
import os
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.clients import warm
from tests.clients.clients import Held, held, over_sse, over_stdio, text
from tests.clients.served import command, environment, served, state_home
from tests.clients.waiting import async_becomes_true
from tests.guards.processes.test_child import asleep, gone, number
from tests.journeys.test_upstreams import SERVERS, approve, configure, connected, entry, wait_for_tools
from tests.sizes import scale

pytestmark = pytest.mark.anyio


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    return tmp_path


async def test_a_server_of_one_session_ends_with_it(ground: Path) -> None:
    mark = number()
    config = configure(ground, {"raw": entry("raw", "daemon", mark, serve="session")})
    approve(ground, "raw")
    with served(ground / "work", ground / "home", "--config", str(config)) as here:
        async with held(over_sse(here), "legacy") as client:
            await wait_for_tools(client, "raw", "raw_one")
            assert text(await client.call("raw_one")) == "forked"
            assert await async_becomes_true(lambda: len(asleep(mark)) == 2)
        assert await gone(mark)


async def test_a_server_that_starts_with_a_secret_uses_it(ground: Path) -> None:
    words = command("secret", "set", "CANARY", "--workspace", str(ground / "work"))
    warm.run(words, environment(ground / "home"), cwd=ground, input=b"canary-1", check=True)
    uses = state_home(ground / "home") / "secret-uses"
    async with connected(ground, "legacy", {"plain": entry("ordinary", env={"KEY": "${secret:CANARY}"})}) as client:
        shutil.rmtree(uses)  # the approval used it, too
        await wait_for_tools(client, "plain", "plain_echo")
        assert text(await client.call("plain_echo", text="hello")) == "hello"
        assert len(list(uses.iterdir())) == 1


@asynccontextmanager
async def hosts(folder: Path, number: int, servers: dict[str, Any]) -> AsyncGenerator[list[Held], None]:
    """Several hosts on one workspace, each with a menugate of its own, in which every server was approved."""
    config = configure(folder, servers)
    for name in servers:
        approve(folder, name)
    async with AsyncExitStack() as stack:
        started = over_stdio(folder / "work", folder / "home", "--config", str(config))
        yield [await stack.enter_async_context(held(started, "legacy")) for _ in range(number)]


def plain(folder: Path, name: str, how: str = "plain", **more: Any) -> dict[str, Any]:
    return entry("raw", how, str(folder / name), **more)


def find_running(folder: Path) -> list[int]:
    """The servers that run, by their last argument, which no other test's have."""
    found: list[int] = []
    for place in Path("/proc").iterdir():
        try:
            words = (place / "cmdline").read_bytes().split(b"\0") if place.name.isdigit() else []
        except OSError:
            continue
        if words[1:2] == [os.fsencode(SERVERS / "raw.py")] and b"".join(words[3:4]).startswith(os.fsencode(folder)):
            found.append(int(place.name))
    return found


def find_holder(folder: Path) -> int:
    """The process that holds the only shared server."""
    (lock,) = (state_home(folder / "home") / "instances").glob("*.lock")
    return json.loads(lock.read_text())["pid"]


def show(folder: Path, name: str) -> str:
    words = ("upstreams", "show", name, "--config", str(folder / "config.yaml"), "--workspace", str(folder / "work"))
    shown = warm.run(command(*words), environment(folder / "home"), text=True, check=True)
    return shown.stdout


async def call_everywhere(clients: list[Held], servers: dict[str, Any]) -> None:
    """Every host calls every server, at once."""

    async def work(client: Held) -> None:
        for name in servers:
            await wait_for_tools(client, name, f"{name}_two")
            assert text(await client.call(f"{name}_two")) == "fine"

    async with anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(work, client)


@pytest.mark.heavy
async def test_five_hosts_with_eight_servers_run_eight_programs(ground: Path) -> None:
    servers = {f"s{number}": plain(ground, f"s{number}") for number in range(scale(8, 2))}
    async with hosts(ground, scale(5, 2), servers) as clients:
        await call_everywhere(clients, servers)
        assert len(find_running(ground)) == len(servers)
    assert await async_becomes_true(lambda: not find_running(ground))
    assert not list((state_home(ground / "home") / "instances").iterdir())


@pytest.mark.heavy
async def test_when_the_holder_is_killed_the_next_call_works_at_once(ground: Path) -> None:
    servers = {"raw": plain(ground, "raw")}
    async with hosts(ground, 3, servers) as clients:
        await call_everywhere(clients, servers)
        for left in (2, 1):
            os.kill(find_holder(ground), signal.SIGKILL)
            working: list[Held] = []

            async def call(client: Held, working: list[Held] = working) -> None:
                with anyio.move_on_after(3), suppress(MCPError):  # one of them is the one that was killed
                    if text(await client.call("raw_two")) == "fine":
                        working.append(client)

            async with anyio.create_task_group() as tasks:
                for client in clients:
                    tasks.start_soon(call, client)
            assert len(working) == left
            clients = working
            assert await async_becomes_true(lambda: len(find_running(ground)) == 1)


@pytest.mark.heavy
async def test_a_holder_that_is_stopped_holds_nobody_up(ground: Path) -> None:
    servers = {"raw": plain(ground, "raw")}
    async with hosts(ground, 2, servers) as clients:
        await call_everywhere(clients, servers)
        holder = find_holder(ground)
        assert f"process {holder}, in {ground / 'work'}" in show(ground, "raw")
        os.kill(holder, signal.SIGSTOP)
        try:
            with anyio.fail_after(25):
                async with anyio.create_task_group() as tasks:

                    async def call(client: Held) -> None:
                        assert text(await client.call("raw_two")) == "fine"
                        with anyio.fail_after(3):
                            assert text(await client.call("raw_two")) == "fine"
                        tasks.cancel_scope.cancel()  # the other one is stopped itself

                    for client in clients:
                        tasks.start_soon(call, client)
        finally:
            os.kill(holder, signal.SIGCONT)
        await call_everywhere(clients, servers)


async def test_nothing_runs_after_the_idle_time(ground: Path) -> None:
    servers = {"raw": plain(ground, "raw", idle=1)}
    async with hosts(ground, 2, servers) as clients:
        await call_everywhere(clients, servers)
        assert await async_becomes_true(lambda: not find_running(ground))
        await call_everywhere(clients, servers)
        assert len(find_running(ground)) == 1


async def test_after_a_change_the_processes_share_the_server_as_it_is_now(ground: Path) -> None:
    servers = {"raw": plain(ground, "raw")}
    async with hosts(ground, 2, servers) as clients:
        await call_everywhere(clients, servers)
        (before,) = find_running(ground)
        configure(ground, {"raw": {**servers["raw"], "idle": 300}})
        assert await async_becomes_true(lambda: before not in find_running(ground))
        await call_everywhere(clients, servers)
        assert len(find_running(ground)) == 1


async def test_a_secret_of_one_server_is_nowhere_near_another(ground: Path) -> None:
    canary = "canary-0f3b7e55"
    words = command("secret", "set", "CANARY", "--workspace", str(ground / "work"))
    warm.run(words, environment(ground / "home"), cwd=ground, input=canary.encode(), check=True)
    servers = {
        "keeps": plain(ground, "keeps", "environment", env={"KEY": "${secret:CANARY}"}),
        "other": plain(ground, "other", "environment"),
        "broken": plain(ground, "broken", "crash"),
    }
    seen: list[str] = []
    async with hosts(ground, 2, servers) as clients:
        await call_everywhere(clients, servers)
        for client in clients:
            for name in servers:
                await wait_for_tools(client, name, f"{name}_one")
                seen.append(text(await client.call(f"{name}_one")))
        assert any('"KEY"' in one for one in seen) and not [one for one in seen if canary in one]
        having = [pid for pid in find_running(ground) if canary.encode() in Path(f"/proc/{pid}/environ").read_bytes()]
        assert len(having) == 1
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        assert not [line for line in lines if canary.encode() in line]
    stored = state_home(ground / "home") / "secrets"
    written = [path for path in ground.rglob("*") if path.is_file() and not path.is_relative_to(stored)]
    assert not [path for path in written if canary.encode() in path.read_bytes()]
