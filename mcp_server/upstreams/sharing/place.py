"""Where do the processes of an account meet? In a folder beside its keys, with a lock and a socket for each instance.

The lock says who holds the instance: the system releases it when that process dies, however it dies. Only who has the
lock may put up the socket.
"""

import asyncio
import fcntl
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from mcp_server.state.account import GROUP_AND_OTHERS
from mcp_server.state.location import make_private_folder

FOLDER = "instances"
MAX_PATH_BYTES = 100
"""What every system allows for the path of a socket."""
DESCRIPTORS = Path("/proc/self/fd")
BACKLOG = 64
MAX_NOTE_BYTES = 4096
SOL_LOCAL, LOCAL_PEERCRED = 0, 1
"""As macOS numbers them."""


class MeetingPlace(Struct, frozen=True):
    folder: Path
    digest: str

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.digest}.lock"

    def prepare(self) -> None:
        """Make the folder; raise `OSError` if others could look or write into it."""
        make_private_folder(self.folder)
        found = self.folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & GROUP_AND_OTHERS:
            raise PermissionError(1, "it is not this account's alone", str(self.folder))

    def try_to_hold(self, note: Mapping[str, str]) -> "InstanceHold | None":
        """Become the holder, unless another process is. `note`: about us, for you. Raises `OSError`."""
        file = self._lock(note)
        if file is None:
            return None
        try:
            remove_leftovers(self.folder)
            return InstanceHold(self, file, self._listen())
        except BaseException:
            os.close(file)
            raise

    def _lock(self, note: Mapping[str, str]) -> int | None:
        while True:
            file = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                if not _take_lock(file):
                    os.close(file)
                    return None
                if _is_at(file, self.lock):
                    os.ftruncate(file, 0)
                    os.write(file, json.dumps({"pid": os.getpid(), **note}).encode())
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # its last holder removed it just now

    async def connect(self) -> socket.socket:
        """Connect to the holder's socket, or raise `OSError`."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
        try:
            made.setblocking(False)
            with self._open_address() as address:
                made.connect(address)
            if not is_same_account(made):
                raise PermissionError(1, "another account listens there", str(self.folder))
        except BaseException:
            made.close()
            raise
        return made

    @contextmanager
    def _open_address(self) -> Generator[str, None, None]:
        """Yield a path that is short enough for a socket, however long the folder's is."""
        name = f"{self.digest}.sock"
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            address = str(DESCRIPTORS / str(folder) / name) if DESCRIPTORS.is_dir() else str(self.folder / name)
            if len(os.fsencode(address)) > MAX_PATH_BYTES:
                raise OSError(36, "its path is too long for a socket", address)
            yield address
        finally:
            os.close(folder)

    def _listen(self) -> socket.socket:
        """Put up the socket; only for the holder."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
        try:
            made.setblocking(False)
            self.remove_socket()
            with self._open_address() as address:
                made.bind(address)
            (self.folder / f"{self.digest}.sock").chmod(0o600)
            made.listen(BACKLOG)
        except BaseException:
            made.close()
            raise
        return made

    def remove_socket(self) -> None:
        with suppress(FileNotFoundError):
            (self.folder / f"{self.digest}.sock").unlink()


class InstanceHold(Struct, frozen=True):
    """This process holds the instance until it releases it, or dies."""

    place: MeetingPlace
    file: int
    listening: socket.socket

    def release(self) -> None:
        self.listening.close()
        with suppress(OSError):
            self.place.remove_socket()
        with suppress(OSError):
            self.place.lock.unlink()
        os.close(self.file)


class InstanceHolder(Struct, frozen=True):
    """A process that runs a server for others as well."""

    pid: int
    server: str
    """The name of its entry."""
    workspace: str = ""
    """Where that process works."""


def load_holders(keys: Path) -> list[InstanceHolder]:
    """Load who runs a shared server now."""
    found: list[InstanceHolder] = []
    for path in sorted((keys / FOLDER).glob("*.lock")):
        with suppress(OSError, ValueError, TypeError, KeyError):
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                # Shared, so that two processes that look at the same time do not take each other for a holder.
                if not _take_lock(file, fcntl.LOCK_SH):
                    fields = json.loads(os.read(file, MAX_NOTE_BYTES))
                    found.append(InstanceHolder(int(fields["pid"]), str(fields["server"]), str(fields["workspace"])))
            finally:
                os.close(file)
    return found


def remove_leftovers(folder: Path) -> None:
    """Remove what processes left behind that were killed."""
    for path in folder.glob("*.lock"):
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if _take_lock(file) and _is_at(file, path):
                    path.with_suffix(".sock").unlink(missing_ok=True)
                    path.unlink()
            finally:
                os.close(file)


def _take_lock(file: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: int, path: Path) -> bool:
    """Is the open file still the one with this name?"""
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


def is_same_account(made: socket.socket) -> bool:
    """Does the process at the other end run as our account? True if the system cannot tell: the key still decides."""
    uid = _read_peer_uid(made)
    return uid is None or uid == os.geteuid()


def _read_peer_uid(made: socket.socket) -> int | None:
    if sys.platform.startswith("linux"):
        return struct.unpack("3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))[1]
    if sys.platform == "darwin":
        return struct.unpack_from("2I", made.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, 76))[1]
    return None


async def accept(listening: socket.socket) -> socket.socket:
    made, _ = await asyncio.get_running_loop().sock_accept(listening)
    made.setblocking(False)
    return made
