"""Does a mounted server in a sandbox reach what its entry says, and nothing else? In every sandbox there is."""

import json
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from mcp_server.guards.processes.choose import SandboxChooser
from mcp_server.guards.processes.commands import CommandHost
from mcp_server.guards.sandbox.launch import Sandbox
from mcp_server.guards.sandbox.protected import PathWatch
from mcp_server.model.destinations import Destinations
from mcp_server.model.processes import ProcessLimits
from mcp_server.model.results import Refusal
from mcp_server.model.upstream_packages import Installer, LockedPackage, PackageLock, PackageRequest
from mcp_server.model.upstreams import Mount, MountSandbox, StdioTarget
from mcp_server.state.upstream_packages import (
    PackageStore,
    compute_contents,
    compute_stamp,
    make_place,
    put_lock,
)
from mcp_server.upstreams.links import LinkOpener, build_upstreams
from tests.guards.processes.ground import shop
from tests.upstreams.ground import OWNER, caller
from tests.upstreams.registry import DEEDS, PYTHON

Ask: TypeAlias = Callable[[str, str], Any]
NAME = "deeds"
UNREACHED: tuple[Any, ...] = ("No such file or directory", "Permission denied", "Read-only file system", [])


def mount(work: Path, **sandbox: Any) -> Mount:
    """A server whose package and own folder lie beside the keys, which no sandbox shows."""
    store = PackageStore(work.parent / "keys")
    package = store.find(NAME, PackageRequest(Installer.UV, (NAME,), NAME))
    if package.lock is None:
        place = make_place(package)
        (place / "server.py").write_text(PYTHON.format(offered=repr(list(DEEDS)), name=NAME, version="1.0"))
        read = compute_contents(place), compute_stamp(place)
        packages = (LockedPackage(NAME, "1.0", "sha256:0"),)
        package = put_lock(package, PackageLock(packages, place.name, sys.executable, "server.py", *read, 0))
    walls = MountSandbox(**sandbox, own=store.find_home(NAME, NAME))
    return Mount(NAME, NAME, StdioTarget(("uvx", NAME)), package=package, sandbox=walls, start_seconds=60.0)


def build_host(work: Path, box: Sandbox | None) -> CommandHost:
    made = shop(work, box, ProcessLimits())
    keys = work.parent / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "ledger.key").write_text("what-is-here")
    return replace(
        made, paths=replace(made.paths, private=(work / ".menugate", keys)), watch=PathWatch(work, frozenset())
    )


@asynccontextmanager
async def running(host: CommandHost, server: Mount) -> AsyncGenerator[Any]:
    opener = LinkOpener(host, host.paths.workspace.parent / "logs", OWNER, Destinations())
    servers = build_upstreams(opener, host.paths.workspace, lambda _: None)
    servers.set_mounts([server])

    async def ask(deed: str, what: object) -> Any:
        result = await servers.call_tool(NAME, deed, {"what": str(what)}, caller())
        return json.loads(result["content"][0]["text"])

    try:
        yield ask
    finally:
        await servers.close()
        await host.close()


@pytest.mark.anyio
async def test_a_server_keeps_to_its_own_folder(box: Sandbox, work: Path) -> None:
    host, server = build_host(work, box), mount(work)
    assert server.sandbox is not None and server.sandbox.own is not None and server.package is not None
    own, keys = server.sandbox.own, work.parent / "keys"
    async with running(host, server) as ask:
        assert await ask("variable", "HOME") == str(own)
        assert await ask("write", own / "kept") == "written"
        assert await ask("look", work / "src") == ["a.py"]
        for place in (work / "src" / "new", work / "src" / "a.py", work.parent / "beside" / "x", keys / "x"):
            assert await ask("write", place) in UNREACHED, place
        lock = server.package.lock
        assert lock is not None
        assert await ask("write", server.package.folder / lock.folder / "server.py") in UNREACHED
        assert "ledger.key" not in await ask("look", keys)
        assert await ask("look", work.parent / "home" / ".ssh") in UNREACHED
        for secret in (work / ".env", work / "keys" / "id_rsa", work / ".menugate" / "state.db", keys / "ledger.key"):
            assert await ask("read", secret) in (*UNREACHED, ""), secret
        assert await ask("read", work / "src" / "a.py") == "what-is-here\n"
    assert (own / "kept").read_text() == "x"
    assert (work / "src" / "a.py").read_text() == "what-is-here\n"


@pytest.mark.anyio
async def test_what_the_entry_allows_is_reached(box: Sandbox, work: Path) -> None:
    beside = work.parent / "beside"
    host, server = build_host(work, box), mount(work, write=("src", str(beside)), home=True)
    async with running(host, server) as ask:
        assert await ask("write", work / "src" / "new") == "written"
        assert await ask("write", beside / "new") == "written"
        assert await ask("write", work / "new") in UNREACHED
        assert await ask("look", work.parent / "home" / ".ssh") == ["id"]
        assert await ask("write", work.parent / "home" / ".ssh" / "id") in UNREACHED
        assert await ask("variable", "HOME") == str(work.parent / "home")


@pytest.mark.anyio
async def test_guarded_places_stay_closed_in_an_open_workspace(box: Sandbox, work: Path) -> None:
    host, server = build_host(work, box), mount(work, write=(".",))
    async with running(host, server) as ask:
        assert await ask("write", work / "src" / "new") == "written"
        for place in (".git/hooks/x", ".git/config", ".mcp.json", ".vscode/tasks.json"):
            assert await ask("write", work / place) in UNREACHED, place


@pytest.mark.anyio
async def test_only_named_hosts_are_reached(box: Sandbox, work: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        async with running(build_host(work, box), mount(work)) as ask:
            assert await ask("reach", address) != "reached"
            assert await ask("variable", "HTTPS_PROXY") is None
        async with running(build_host(work, box), mount(work, network=(address,))) as ask:
            assert await ask("reach", address) != "reached", "only through the proxy"
            proxy = await ask("variable", "HTTPS_PROXY")
            assert await ask("reach", proxy.removeprefix("http://")) == "reached"


@pytest.mark.anyio
@pytest.mark.parametrize("folder", ["nowhere", "..", "/"])
async def test_a_folder_that_leaves_no_sandbox_is_refused(folder: str, box: Sandbox, work: Path) -> None:
    async with running(build_host(work, box), mount(work, write=(folder,))) as ask:
        with pytest.raises(Refusal, match=r"does not exist|no sandbox is left"):
            await ask("look", "/")


@pytest.mark.anyio
async def test_without_a_sandbox_nothing_starts(work: Path) -> None:
    host = replace(build_host(work, None), chooser=SandboxChooser(()))
    async with running(host, mount(work)) as ask:
        with pytest.raises(Refusal, match="demands a sandbox, and none works here"):
            await ask("look", "/")
