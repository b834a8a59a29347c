"""Does a command at profile trusted get to the listed places through the proxy, and nowhere else by any other way?"""

import asyncio
import socket
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_server.guards.network.egress import Egress
from mcp_server.guards.network.proxy import EgressProxy
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.proxy_socket import PORT
from mcp_server.model.destinations import parse_destinations
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Demand, Effect
from tests.clients.served import PATIENCE
from tests.guards.network.site import site
from tests.guards.processes.conftest import box, work
from tests.guards.processes.ground import opened, sh

__all__ = ["box", "work"]
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def names(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"] if host == "good.example" else ["10.0.0.1"]


@asynccontextmanager
async def ground(work: Path, box: Sandbox, port: int) -> AsyncGenerator[tuple[CommandHost, EgressProxy]]:
    allowed = parse_destinations([f"good.example:{port}", f"127.0.0.1:{port}", f"inside.example:{port}"])
    proxy = EgressProxy(Egress(allowed, allowed, names))
    async with opened(work, box) as made:
        yield replace(made, proxy=proxy), proxy
        await asyncio.sleep(0)
    await proxy.close()


def through(target: str) -> str:
    """One request to the proxy, by nothing but bash."""
    return f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf 'GET {target} HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"


async def test_listed_places_are_reached_and_others_are_told_why(work: Path, box: Sandbox) -> None:
    async with site() as one, ground(work, box, one.port) as (made, _):
        said = await sh(made, through(f"http://good.example:{one.port}/"), Profile.TRUSTED)
        assert said.out.endswith(b"\r\n\r\nhi"), said
        for place in ("evil.example", "inside.example", "169.254.169.254"):
            said = await sh(made, through(f"http://{place}:{one.port}/"), Profile.TRUSTED)
            assert b" 403 Not in network.allow of menugate.yaml" in said.out, said
        assert one.connections == 1


async def test_programs_are_told_of_the_proxy(work: Path, box: Sandbox) -> None:
    async with site() as one, ground(work, box, one.port) as (made, _):
        said = await sh(made, "echo $http_proxy $HTTPS_PROXY $NO_PROXY", Profile.TRUSTED)
        assert said.out == f"http://127.0.0.1:{PORT} http://127.0.0.1:{PORT} localhost,127.0.0.1,::1\n".encode()
        said = await sh(made, "echo [$http_proxy$HTTPS_PROXY]", Profile.NORMAL)
        assert said.out == b"[]\n"


async def test_there_is_no_other_way_out(work: Path, box: Sandbox) -> None:
    async with site() as one, ground(work, box, one.port) as (made, _):
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.bind(("0.0.0.0", 0))
            udp.setblocking(False)
            ways = [f"127.0.0.1/{one.port}", f"{elsewhere()}/{one.port}", "1.1.1.1/80", "169.254.169.254/80"]
            for profile in (Profile.NORMAL, Profile.TRUSTED):
                for way in ways:
                    assert (await sh(made, f"exec 3<>/dev/tcp/{way}", profile)).code != 0, way
                for address in ("127.0.0.1", elsewhere()):
                    await sh(made, f"echo x > /dev/udp/{address}/{udp.getsockname()[1]}", profile)
            with pytest.raises(BlockingIOError):
                udp.recv(1)
        assert one.connections == 0


def elsewhere() -> str:
    """An address of this machine that is not its loopback, where it has one."""
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


@pytest.mark.parametrize(
    ("profile", "effect"),
    [(Profile.RESTRICTED, Effect.EXEC), (Profile.NORMAL, Effect.EXEC), (Profile.TRUSTED, Effect.READ_LOCAL)],
)
async def test_who_may_not_has_no_way_at_all(work: Path, box: Sandbox, profile: Profile, effect: Effect) -> None:
    async with site() as one, ground(work, box, one.port) as (made, _):
        said = await sh(made, through(f"http://good.example:{one.port}/"), profile, effect)
        assert said.code != 0
        assert one.connections == 0
        assert not made.build_call_processes(Demand(effect, Profile.NORMAL), Profile.NORMAL).network
        assert made.build_call_processes(Demand(effect, Profile.NORMAL), Profile.TRUSTED).network


async def test_a_way_out_ends_with_its_command(work: Path, box: Sandbox) -> None:
    async with site() as one, ground(work, box, one.port) as (made, proxy):
        for _ in range(3):
            await sh(made, "true", Profile.TRUSTED)
        held = asyncio.gather(
            *(sh(made, through(f"http://good.example:{one.port}/"), Profile.TRUSTED) for _ in range(4))
        )
        assert all(said.out.endswith(b"hi") for said in await held)
        async with asyncio.timeout(PATIENCE):
            while proxy.servers:
                await asyncio.sleep(0.01)


async def test_git_clones_through_it(work: Path, box: Sandbox, tmp_path: Path) -> None:
    repository = tmp_path / "beside" / "repo"
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(repository.parent))

        def log_message(self, format: str, *arguments: Any) -> None:
            asked.append(self.path)

    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(repository)]
    for words in (["init", "-q", str(repository)], [*git[1:], "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    subprocess.run([*git, "update-server-info"], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port
        try:
            async with ground(work, box, port) as (made, _):
                line = f"git clone -q http://good.example:{port}/repo/.git src/copy && git -C src/copy log --format=%s"
                said = await sh(made, line, Profile.TRUSTED)
                assert said.out == b"first\n", said
                said = await sh(made, f"git ls-remote http://evil.example:{port}/repo/.git", Profile.TRUSTED)
                assert b"403" in said.err, said
        finally:
            server.shutdown()
    assert asked
