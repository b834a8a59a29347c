"""Is a kept package what it was when it was fetched, and is nothing outside of its folder ever started?"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.upstream_packages import Installer, LockedPackage, MountPackage, PackageLock, PackageRequest
from mcp_server.state.upstream_packages import (
    LOCK,
    NEXT,
    ContentsChanged,
    PackageStore,
    check_contents,
    compute_contents,
    compute_stamp,
    load_lock,
    make_place,
    put_lock,
    remove_package,
)

REQUEST = PackageRequest(Installer.NPM, ("a",), "a")


def install(package: MountPackage, version: str = "1") -> PackageLock:
    place = make_place(package)
    (place / "in").mkdir()
    (place / "in" / "run.js").write_text(version)
    (place / "link").symlink_to("in/run.js")
    packages = (LockedPackage("a", version, "sha512-x"), LockedPackage("b", "2", "sha512-y"))
    read = compute_contents(place), compute_stamp(place)
    return PackageLock(packages, place.name, "node", "in/run.js", *read, fetched_at=5, scripts=("b",))


def fill(tmp_path: Path) -> MountPackage:
    package = PackageStore(tmp_path).find("sums", REQUEST)
    assert package.lock is None
    return put_lock(package, install(package))


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    package = fill(tmp_path)
    assert PackageStore(tmp_path).find("sums", REQUEST) == package
    assert PackageStore(tmp_path).find("other", REQUEST).lock is None
    assert package.argv[0] == "node" and package.argv[1].startswith(str(tmp_path))
    assert package.folder.stat().st_mode & 0o077 == 0
    assert remove_package(package) and not package.folder.exists()
    assert not remove_package(package)


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a program elsewhere": lambda fields: {**fields, "program": "../../bin/sh"},
    "an absolute program": lambda fields: {**fields, "program": "/bin/sh"},
    "a folder elsewhere": lambda fields: {**fields, "folder": "../x"},
    "no program": lambda fields: {**fields, "program": ""},
    "no packages": lambda fields: {**fields, "packages": []},
    "half a package": lambda fields: {**fields, "packages": [["a"]]},
    "a key less": lambda fields: {key: fields[key] for key in fields if key != "contents"},
    "a list": lambda fields: [fields],
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_lock_counts_as_none(damage: str, tmp_path: Path) -> None:
    path = fill(tmp_path).folder / LOCK
    path.write_text(json.dumps(DAMAGES[damage](json.loads(path.read_text()))))
    assert load_lock(path) is None
    path.write_text("{")
    assert load_lock(path) is None
    path.unlink()
    path.symlink_to(tmp_path / "x")
    assert load_lock(path) is None


CHANGES: dict[str, Callable[[Path], object]] = {
    "other content": lambda place: (place / "in" / "run.js").write_text("2"),
    "a new file": lambda place: (place / "new").write_text(""),
    "a new folder": lambda place: (place / "new").mkdir(),
    "a file less": lambda place: (place / "in" / "run.js").unlink(),
    "another name": lambda place: (place / "in" / "run.js").rename(place / "in" / "ran.js"),
    "executable": lambda place: (place / "in" / "run.js").chmod(0o755),
    "another link": lambda place: ((place / "link").unlink(), (place / "link").symlink_to("/etc/passwd")),
    "a link for a file": lambda place: (
        (place / "in" / "run.js").unlink(),
        (place / "in" / "run.js").symlink_to("/etc/passwd"),
    ),
    "nothing left": lambda place: [path.unlink() for path in (place / "link", place / "in" / "run.js")],
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(change: str, tmp_path: Path) -> None:
    package = fill(tmp_path)
    assert package.lock is not None
    place = package.folder / package.lock.folder
    check_contents(package)
    status = (place / "in" / "run.js").stat()
    CHANGES[change](place)
    if change == "other content":  # nobody notices the dates, but for the one that nobody can set
        os.utime(place / "in" / "run.js", ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ContentsChanged):
        check_contents(package)


def test_a_server_may_remember_something_among_its_files(tmp_path: Path) -> None:
    package = fill(tmp_path)
    assert package.lock is not None
    kept = package.folder / package.lock.folder / "in" / "memory.jsonl"
    kept.write_text("{}")
    check_contents(package)
    kept.chmod(0o755)
    with pytest.raises(ContentsChanged):
        check_contents(package)


def test_the_version_before_stays_until_the_one_after_the_next(tmp_path: Path) -> None:
    package = fill(tmp_path)
    first = package.lock
    assert first is not None
    second = install(package, "2")
    put_lock(package, second, NEXT)
    third = install(package, "3")
    put_lock(package, third, NEXT)
    assert {path.name for path in package.folder.iterdir()} == {first.folder, third.folder, LOCK, NEXT}
    package = put_lock(package, third)
    assert {path.name for path in package.folder.iterdir()} == {first.folder, third.folder, LOCK}
    assert package.lock == third and third.digest != first.digest
    fourth = install(package, "4")
    put_lock(package, fourth)
    assert {path.name for path in package.folder.iterdir()} == {third.folder, fourth.folder, LOCK}
