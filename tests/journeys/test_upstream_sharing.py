"""Who shares a running server? The sessions and processes that may, and nobody else."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.clients import held, over_sse, text
from tests.clients.served import command, environment, served, state_home
from tests.clients.waiting import async_becomes_true
from tests.guards.processes.test_child import asleep, gone, number
from tests.journeys.test_upstreams import approve, configure, connected, entry, wait_for_tools

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
    subprocess.run(words, env=environment(ground / "home"), cwd=ground, input=b"canary-1", check=True)
    uses = state_home(ground / "home") / "secret-uses"
    async with connected(ground, "legacy", {"plain": entry("ordinary", env={"KEY": "${secret:CANARY}"})}) as client:
        shutil.rmtree(uses)  # the approval used it, too
        await wait_for_tools(client, "plain", "plain_echo")
        assert text(await client.call("plain_echo", text="hello")) == "hello"
        assert len(list(uses.iterdir())) == 1
