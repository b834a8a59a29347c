"""Which packages of servers behind menugate are kept on this machine? A folder for each mount beside your keys.

In it, `lock.json` says what is installed, and where: an update is installed in a folder beside the old one, and takes
its place as a whole. `next.json` is an update that you have not accepted yet.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.model.parts import asdict
from mcp_server.model.upstream_packages import LockedPackage, MountPackage, PackageLock, PackageRequest
from mcp_server.state.location import make_private_folder, write_private_file

FOLDER = "servers"
LOCK, NEXT = "lock.json", "next.json"
MAX_LOCK_BYTES = 8 << 20
CHUNK_BYTES = 1 << 20
DATA = (".jsonl", ".log", ".db", ".sqlite", ".sqlite3", ".db-wal", ".db-shm", ".db-journal")
"""Some servers keep what they remember among their own files. No interpreter runs files with these names."""


class ContentsChanged(Exception):
    """What is installed is not what was fetched; the message names a place."""


class PackageStore(Struct, frozen=True):
    """The packages of this account."""

    secrets: Path

    def find(self, mount: str, request: PackageRequest) -> MountPackage:
        """Find a mount's folder, and what is kept there."""
        name = hashlib.sha256(json.dumps([mount, request.digest]).encode("utf-8", "surrogatepass")).hexdigest()
        folder = self.secrets / FOLDER / name[:32]
        return MountPackage(request, folder, load_lock(folder / LOCK))

    def find_home(self, mount: str, program: str) -> Path:
        """Find where a server in a sandbox keeps its own files. They stay when its package changes."""
        name = hashlib.sha256(json.dumps(["home", mount, program]).encode("utf-8", "surrogatepass")).hexdigest()
        return self.secrets / FOLDER / name[:32]


def load_lock(path: Path) -> PackageLock | None:
    """Load a lock; None if it is missing or damaged."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as stream:
            fields = cast(dict[str, Any], json.loads(stream.read(MAX_LOCK_BYTES)))
        lock = _parse_lock(fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    # Nothing outside the mount's folder is ever started.
    return lock if is_inside(lock.folder) and is_inside(lock.program) and lock.packages else None


def _parse_lock(fields: Mapping[str, Any]) -> PackageLock:
    names = ("folder", "interpreter", "program", "contents", "stamp")
    return PackageLock(
        packages=tuple(LockedPackage(*map(str, one)) for one in fields["packages"]),
        scripts=tuple(map(str, fields["scripts"])),
        fetched_at=int(fields["fetched_at"]),
        **{name: str(fields[name]) for name in names},
    )


def is_inside(path: str) -> bool:
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def make_place(package: MountPackage) -> Path:
    """Make a new folder to install into."""
    make_private_folder(package.folder)
    place = package.folder / token_hex(6)
    place.mkdir(mode=0o700)
    return place


def put_lock(package: MountPackage, lock: PackageLock, name: str = LOCK) -> MountPackage:
    """Write down what is installed, and remove what is neither in use nor waits for your answer."""
    fields: Mapping[str, Any] = {
        **asdict(lock),
        "packages": [[one.name, one.version, one.integrity] for one in lock.packages],
    }
    write_private_file(package.folder / name, json.dumps(fields) + "\n", durable=True)
    if name == LOCK:
        drop_next(package)
        # Other processes may still run the version before.
        remove_places(package, {lock.folder, *([package.lock.folder] if package.lock else [])})
        return replace(package, lock=lock)
    kept = load_lock(package.folder / LOCK)
    remove_places(package, {lock.folder, *([kept.folder] if kept else [])})
    return package


def drop_next(package: MountPackage) -> None:
    (package.folder / NEXT).unlink(missing_ok=True)


def remove_places(package: MountPackage, kept: Collection[str]) -> None:
    with suppress(OSError):
        for entry in list(os.scandir(package.folder)):
            if entry.is_dir(follow_symlinks=False) and entry.name not in kept and is_place(entry.name):
                shutil.rmtree(entry.path, ignore_errors=True)


def remove_place(package: MountPackage, name: str) -> None:
    shutil.rmtree(package.folder / name, ignore_errors=True)


def is_place(name: str) -> bool:
    return len(name) == 12 and all(char in "0123456789abcdef" for char in name)


def remove_package(package: MountPackage) -> bool:
    """Remove everything that is kept for a mount; False if there was nothing."""
    there = package.folder.is_dir()
    shutil.rmtree(package.folder, ignore_errors=True)
    return there


def check_contents(package: MountPackage) -> None:
    """Raise `ContentsChanged` unless every file is as it was fetched. Takes long only if something was written."""
    assert package.lock is not None
    place = package.folder / package.lock.folder
    if compute_stamp(place) != package.lock.stamp and compute_contents(place) != package.lock.contents:
        raise ContentsChanged(f"the files in {place} are not those that were fetched")


def compute_contents(place: Path) -> str:
    """Digest every file, link and folder with its name."""
    digest = hashlib.sha256()
    for name, path, status in list_entries(place):
        digest.update(json.dumps([name, stat.S_IFMT(status.st_mode), status.st_mode & 0o111]).encode())
        if stat.S_ISLNK(status.st_mode):
            digest.update(os.fsencode(os.readlink(path)))  # noqa: PTH115  # a path may be no text
        elif stat.S_ISREG(status.st_mode):
            digest.update(read_digest(path))
    return digest.hexdigest()


def compute_stamp(place: Path) -> str:
    """Digest the dates and sizes of everything. Nobody can set the date of a change (`ctime`) at will."""
    digest = hashlib.sha256()
    for name, _, one in list_entries(place):
        digest.update(
            json.dumps([name, one.st_mode, one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino]).encode()
        )
    return digest.hexdigest()


def list_entries(place: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield everything below a folder, in one order."""
    todo = [str(place)]
    while todo:
        folder = todo.pop()
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(DATA) and stat.S_ISREG(status.st_mode) and not status.st_mode & 0o111:
                    continue
                yield os.path.relpath(entry.path, place), entry.path, status
                if stat.S_ISDIR(status.st_mode):
                    todo.append(entry.path)


def read_digest(path: str) -> bytes:
    digest = hashlib.sha256()
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()
