"""Is a package installed once, with a hash for everything, and started from there with nothing else asked?"""

import shlex
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from mcp_server.guards.jail import Jail
from mcp_server.guards.processes.commands import CommandHost, build_command_host
from mcp_server.guards.processes.upstream import UpstreamNotStarted
from mcp_server.guards.sandbox.access import HostPaths
from mcp_server.model.upstream_packages import MountPackage
from mcp_server.model.upstreams import Mount, StdioTarget
from mcp_server.policy.upstream_requests import find_request
from mcp_server.state.upstream_packages import PackageStore, put_lock
from mcp_server.upstreams.packages.fetch import fetch_package
from mcp_server.upstreams.packages.installers import PackageNotFetched
from mcp_server.upstreams.packages.start import check_package, find_started
from tests.upstreams.ground import VARIABLES
from tests.upstreams.registry import Registry, serve_registry

LINES = {
    "npm": "npx -y @acme/greeter --loud",
    "uv": "uvx acme-greeter --loud",
    "pip": "pipx run acme-greeter --loud",
}


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with serve_registry() as served:
        for version in ("1.0.0", "1.1.0"):
            served.publish_npm("@acme/greeter", version)
            served.publish_wheel("acme-greeter", version)
        yield served


@pytest.fixture
def host(tmp_path: Path, registry: Registry) -> CommandHost:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    registry.configure(tmp_path / "home")
    # The programs that are installed with the tests come last.
    search_path = f"{VARIABLES['PATH']}:{sysconfig.get_path('scripts')}"
    variables = {**VARIABLES, "PATH": search_path, "HOME": str(tmp_path / "home")}
    paths = HostPaths(tmp_path / "work", tmp_path / "home", (), search_path, variables)
    return build_command_host(paths, Jail(tmp_path / "work"))


def find(tmp_path: Path, line: str) -> MountPackage:
    request = find_request(shlex.split(line))
    assert request is not None
    return PackageStore(tmp_path / "keys").find("greeter", request)


def mount_of(package: MountPackage, line: str) -> Mount:
    return Mount("greeter", "greeter", StdioTarget(tuple(shlex.split(line))), package=package)


@pytest.mark.anyio
@pytest.mark.parametrize("installer", LINES)
async def test_what_is_fetched_is_locked_and_started(installer: str, host: CommandHost, tmp_path: Path) -> None:
    line = LINES[installer]
    try:
        package = find(tmp_path, line)
        with pytest.raises(UpstreamNotStarted, match="menugate upstreams approve greeter"):
            find_started(mount_of(package, line), StdioTarget(()))
        lock = await fetch_package(host, package, {}, {})
        assert [(one.name, one.version) for one in lock.packages] == [(package.request.name, "1.1.0")]
        assert all(one.integrity for one in lock.packages)
        put_lock(package, lock)
        package = find(tmp_path, line)
        assert package.lock == lock
        mount = mount_of(package, line)
        await check_package(mount)
        started = find_started(mount, StdioTarget(()))
        program = Path(started.argv[-2])
        assert started.argv[-1] == "--loud" and program.is_relative_to(package.folder / lock.folder)
        await assert_changes_are_noticed(mount, program)
    finally:
        await host.close()


async def assert_changes_are_noticed(mount: Mount, program: Path) -> None:
    text = program.read_text()
    program.touch()
    await check_package(mount)  # another date alone is no other content
    program.write_text(f"{text}\n")
    with pytest.raises(UpstreamNotStarted, match="menugate upstreams update greeter"):
        await check_package(mount)
    program.write_text(text)
    await check_package(mount)
    (program.parent / "planted").write_text("")
    with pytest.raises(UpstreamNotStarted):
        await check_package(mount)


FAULTS = {
    "npx -y @acme/nowhere": "npm",
    "npx -y @acme/greeter@9": "npm",
    "npx -y -p @acme/greeter other": "no program other",
    "uvx acme-nowhere": "uv",
    "uvx --from acme-greeter other": "no program other",
    "pipx run acme-nowhere": "python3",
}


@pytest.mark.anyio
@pytest.mark.parametrize("line", FAULTS)
async def test_what_cannot_be_fetched_leaves_nothing_behind(line: str, host: CommandHost, tmp_path: Path) -> None:
    package = find(tmp_path, line)
    try:
        with pytest.raises(PackageNotFetched, match=FAULTS[line]):
            await fetch_package(host, package, {}, {})
    finally:
        await host.close()
    assert list(package.folder.iterdir()) == []


@pytest.mark.anyio
async def test_an_install_script_does_not_run(host: CommandHost, registry: Registry, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    registry.publish_npm("@acme/scripted", "1.0.0", scripts={"install": f"touch {ran}"}, hasInstallScript=True)
    package = find(tmp_path, "npx @acme/scripted")
    try:
        with anyio.fail_after(120):
            lock = await fetch_package(host, package, {}, {})
    finally:
        await host.close()
    assert lock.scripts == ("@acme/scripted",)
    assert not ran.exists()
