"""How is the operator's file replaced, so that it is never half written and never another file?

It is read and written through its folder's handle, and only if it is this account's own regular file. If anything
changed it since it was read, it stays as it is.
"""

import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from msgspec import Struct

from mcp_server.config.reader import LARGEST
from mcp_server.state.location import make_private_folder

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PRIVATE, PERMISSIONS = 0o600, 0o777
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class UnusableFile(Exception):
    """The file cannot be changed; the message says why, to the user."""


class OperatorFile(Struct, frozen=True):
    path: Path
    data: bytes | None
    """What it holds; None if there is no file yet."""
    mode: int = PRIVATE

    @property
    def text(self) -> str:
        return (self.data or b"").removeprefix(BYTE_ORDER_MARK).decode()


def read_operator_file(path: Path) -> OperatorFile:
    """Read the file; raise `UnusableFile` if it could not be replaced afterwards."""
    try:
        folder = os.open(path.parent, FOLDER)
    except FileNotFoundError:
        return OperatorFile(path, None)
    except OSError as error:
        raise _explain(path, error) from None
    try:
        return _read_in_folder(path, folder)
    finally:
        os.close(folder)


def _read_in_folder(path: Path, folder: int) -> OperatorFile:
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise UnusableFile(f"{path} is a link, and menugate does not write through links")
        if not stat.S_ISREG(found.st_mode):
            raise UnusableFile(f"{path} is not a regular file")
        number = os.open(path.name, READ, dir_fd=folder)
    except FileNotFoundError:
        return OperatorFile(path, None)
    except OSError as error:
        raise _explain(path, error) from None
    with os.fdopen(number, "rb") as stream:
        opened = os.fstat(number)
        if opened.st_uid != os.geteuid():
            raise UnusableFile(f"{path} belongs to another account")
        if not stat.S_ISREG(opened.st_mode) or (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
            raise UnusableFile(f"{path} is being replaced at this moment")
        data = stream.read(LARGEST + 1)
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UnusableFile(f"{path} is not UTF-8 text") from None
    return OperatorFile(path, data, stat.S_IMODE(opened.st_mode) & PERMISSIONS)


def replace_operator_file(file: OperatorFile, text: str) -> None:
    """Write the text in place of what was read, at once and durably; raise `UnusableFile` if that is not there."""
    mark = BYTE_ORDER_MARK if (file.data or b"").startswith(BYTE_ORDER_MARK) else b""
    try:
        make_private_folder(file.path.parent)
        with _lock_folder(file.path.parent) as folder:
            if _read_in_folder(file.path, folder) != file:
                raise UnusableFile(f"{file.path} was changed meanwhile")
            _replace_in_folder(file, mark + text.encode(), folder)
    except OSError as error:
        raise _explain(file.path, error) from None


def _replace_in_folder(file: OperatorFile, data: bytes, folder: int) -> None:
    name = file.path.name
    draft = f".{name}-{token_hex(8)}.tmp"
    number = os.open(draft, CREATE, PRIVATE, dir_fd=folder)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(number, file.mode)
            os.fsync(number)
        if file.data is None:
            # Unlike a rename, a link never replaces a file that somebody created meanwhile.
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        else:
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)


@contextmanager
def _lock_folder(path: Path) -> Generator[int]:
    """Open the folder and keep other menugate commands from writing in it."""
    folder = os.open(path, FOLDER)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(folder)


def _explain(path: Path, error: OSError) -> UnusableFile:
    return UnusableFile(f"{path} cannot be changed: {(error.strerror or 'no reason given').lower()}")
