"""Are you told which package runs, whether it is kept, and why it is not?"""

import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_server.model.upstream_packages import Installer, LockedPackage, MountPackage, PackageLock, PackageRequest
from mcp_server.model.upstreams import HttpTarget, Mount, StdioTarget
from mcp_server.views.upstream_packages import describe_package, describe_unkept, list_package_changes

OWN, OTHER = LockedPackage("a", "1.0.0", "sha512-x"), LockedPackage("b", "2.0.0", "sha512-y")
LOCK = PackageLock((OWN, OTHER), "1", "node", "a.js", "c", "s", 10**18)
PACKAGE = MountPackage(PackageRequest(Installer.NPM, ("a",), "a"), Path("/kept"), LOCK)


def mount(line: str, package: MountPackage | None = None) -> Mount:
    return Mount("m", "m", StdioTarget(tuple(shlex.split(line))), package=package)


def test_what_is_kept_is_said() -> None:
    said = " ".join(describe_package(mount("npx a", PACKAGE)))
    assert "a 1.0.0 (npm) was fetched 2001-09-09" in said and "with 1 other package" in said
    assert "next start" not in said
    scripted = replace(PACKAGE, lock=replace(LOCK, scripts=("b",)))
    assert "`b` has an install script, which did not run." in " ".join(describe_package(mount("npx a", scripted)))


UNKEPT = {
    "npx a": "no folder for keys",
    "bunx a": "`bunx` fetches it by itself",
    "npx -c 'a | b'": "because of its option `-c`",
    "uvx --from . a": "comes from an address or folder",
    "docker run a": "`docker` fetches it by itself",
    "node a": "",
}


@pytest.mark.parametrize("line", UNKEPT)
def test_why_nothing_is_kept_is_said(line: str) -> None:
    said = describe_unkept(mount(line))
    assert UNKEPT[line] in said and bool(said) == bool(UNKEPT[line])
    assert describe_package(mount("node a")) == []
    assert describe_package(Mount("m", "m", HttpTarget("http://a"))) == []


def test_what_an_update_changes_is_listed() -> None:
    after = replace(LOCK, packages=(replace(OWN, version="1.1.0"), LockedPackage("c", "3", "sha512-z")))
    assert list_package_changes(LOCK, after) == ["a 1.0.0 → 1.1.0", "gone b", "new c"]
    assert list_package_changes(LOCK, LOCK) == list_package_changes(None, LOCK) == []
    many = replace(LOCK, packages=(OWN, *(LockedPackage(f"p{i:03}", "1", "x") for i in range(60))))
    assert list_package_changes(LOCK, many)[-1] == "and 21 more"
