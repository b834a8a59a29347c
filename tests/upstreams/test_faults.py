"""Does a server that misbehaves harm nothing but itself? One at a time, beside a healthy one."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.model.results import Refusal
from mcp_server.model.upstreams import UpstreamChange
from mcp_server.upstreams.servers import UpstreamServers
from tests.sizes import FULL
from tests.upstreams.ground import caller, grounded, script
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.anyio
ROWS: list[dict[str, Any]] = load_yaml((Path(__file__).parents[1] / "tables" / "upstream_faults.yaml").read_text())
CALL_SECONDS = 8.0
TICK = 0.005


@dataclass
class Watch:
    """How late the loop was, and how long healthy calls took, in seconds."""

    lags: list[float] = field(default_factory=list[float])
    calls: list[float] = field(default_factory=list[float])

    def describe(self) -> str:
        return f"lag p99 {share(self.lags, 0.99) * 1000:.0f} ms, calls p99 {share(self.calls, 0.99) * 1000:.0f} ms"


def share(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)] if values else 0.0


@asynccontextmanager
async def watched(servers: UpstreamServers) -> AsyncGenerator[Watch, None]:
    watch = Watch()

    async def tick() -> None:
        while True:
            due = time.monotonic() + TICK
            await anyio.sleep(TICK)
            watch.lags.append(time.monotonic() - due)

    async def call() -> None:
        while True:
            began = time.monotonic()
            await servers.call_tool("healthy", "two", {}, caller(session="healthy"))
            watch.calls.append(time.monotonic() - began)
            await anyio.sleep(TICK)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        tasks.start_soon(call)
        yield watch
        tasks.cancel_scope.cancel()


async def outcome(servers: UpstreamServers, tool: str) -> tuple[str, str]:
    """The code and what is said; no code for a result."""
    try:
        result = await servers.call_tool("raw", tool, {}, caller())
    except Refusal as refused:
        return refused.problem.code, refused.problem.message
    return "", result["content"][0]["text"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["how"])
async def test_a_server_harms_only_itself(tmp_path: Path, row: Mapping[str, Any]) -> None:
    seconds = 2.0 if row.get("code") == "TIMEOUT" else row.get("seconds", CALL_SECONDS)
    healthy = script("raw", "", called="healthy")
    bad = script("raw", row["how"], start_seconds=2.0 if row["how"] == "hang_at_start" else 20.0, call_seconds=seconds)
    async with grounded(tmp_path, healthy, bad) as ground:
        servers = ground.servers
        await servers.get_catalogue("healthy", caller())
        async with watched(servers) as watch:
            code, says = await outcome(servers, "one")
            assert (code, row["says"] in says) == (row.get("code", ""), True), says[:200]
            again, said = await outcome(servers, "two")
            assert row["next"] == (again or said), said[:200]
        assert watch.calls, "the healthy server answered nothing"
        if not row.get("code"):
            found = await servers.get_catalogue("raw", caller())
            assert len(found.tools) == row.get("tools", len(found.tools)) and (found.tools or "tools" in row)


async def test_a_list_is_never_empty_after_a_reconnect(tmp_path: Path) -> None:
    mount = script("raw", "empty_on_reconnect", str(tmp_path / "count"), idle_seconds=0.0)
    async with grounded(tmp_path, mount) as ground:
        for _ in range(3):
            assert len((await ground.servers.get_catalogue("raw", caller())).tools) == 2
            await outcome(ground.servers, "one")


@pytest.mark.heavy
async def test_a_flood_of_changes_is_read_at_most_four_times_a_second(tmp_path: Path) -> None:
    mount = script("raw", "list_changed", str(tmp_path / "count"))
    async with grounded(tmp_path, mount) as ground:
        began = time.monotonic()
        while time.monotonic() < began + 1.5:
            await outcome(ground.servers, "one")
        passed = time.monotonic() - began
        await anyio.sleep(0.3)
        reads = (tmp_path / "count.lists").read_text().count(".")
        assert 3 <= reads <= 4 * passed + 4
        assert UpstreamChange("raw", "catalogue") in ground.changes


HARMFUL = ["endless_line", "huge_line", "big", "notices", "stderr", "list_changed", "crash", "hang"]


@pytest.mark.heavy
@pytest.mark.parametrize("how", HARMFUL)
async def test_the_loop_and_the_memory_hold(tmp_path: Path, how: str) -> None:
    """At full size only: beside other tests the clock says nothing."""
    bad = script("raw", how, call_seconds=10.0)
    async with grounded(tmp_path, script("raw", "", called="healthy"), bad) as ground:
        await ground.servers.get_catalogue("healthy", caller())
        async with watched(ground.servers) as calm:
            await anyio.sleep(1.0)
        Path("/proc/self/clear_refs").write_text("5")  # forget the highest memory so far
        before = read_peak_memory()
        async with watched(ground.servers) as busy:
            await outcome(ground.servers, "one")
            await anyio.sleep(1.0)
        assert read_peak_memory() - before < 32 << 10
        if FULL:
            assert share(busy.lags, 0.99) < 0.05, busy.describe()
            # A floor, below which the difference is the clock's.
            assert share(busy.calls, 0.99) < max(2 * share(calm.calls, 0.99), 0.01), (calm.describe(), busy.describe())


def read_peak_memory() -> int:
    """In kilobytes."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
