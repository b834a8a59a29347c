"""How is a file put in place or taken away without overwriting or losing anything?"""

import errno
import os
import platform
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.refusals import build_path_refusal

Spot: TypeAlias = tuple[int, str]
"""An open folder and a name in it."""

RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
NOREPLACE = 1
EXCLUSIVE = 4
"""macOS's name for the same flag."""
UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP})
"""How kernels, file systems and seccomp filters report that they do not support the call."""
SCRATCH = ".menugate-scratch-"
LEFT_OVER = 3600.0
"""Seconds after which nobody can still be using such a folder."""
KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")
Approved: TypeAlias = Callable[[str], None] | None
"""Checks what lies at this path now and raises `Refusal` if it is not what the person was shown; None if nobody was
asked."""
HELD = ".menugate-held-"


def rename_without_overwriting(source: Spot, target: Spot) -> None:
    """Rename, and fail if the target exists: in one step, or in two where the system call is missing."""
    call = _load_exclusive_rename()
    if call is None:
        return rename_in_two_steps(source, target)
    try:
        call(source, target)
    except OSError as error:
        if error.errno not in UNKNOWN:
            raise
        rename_in_two_steps(source, target)


def rename_in_two_steps(source: Spot, target: Spot) -> None:
    """Claim the name first, which fails if it is taken, then put the thing there."""
    (here, old), (there, new) = source, target
    if stat.S_ISDIR(os.stat(old, dir_fd=here, follow_symlinks=False).st_mode):
        os.mkdir(new, 0o700, dir_fd=there)
        try:
            os.rename(old, new, src_dir_fd=here, dst_dir_fd=there)
        except BaseException:
            with suppress(OSError):
                os.rmdir(new, dir_fd=there)
            raise
        return
    os.link(old, new, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
    os.unlink(old, dir_fd=here)


@cache
def _load_exclusive_rename() -> Callable[[Spot, Spot], None] | None:
    # Imported here because loading ctypes costs milliseconds, which a start without file calls need not pay.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        call, first, flag = libc.renameatx_np, (), EXCLUSIVE
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    elif number := RENAMEAT2.get(platform.machine()):
        call, first, flag = libc.syscall, (number,), NOREPLACE
        call.restype = ctypes.c_long
        call.argtypes = (*(ctypes.c_long,) * 2, ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p, ctypes.c_long)
    else:
        return None

    def rename(source: Spot, target: Spot) -> None:
        (here, old), (there, new) = source, target
        if call(*first, here, os.fsencode(old), there, os.fsencode(new), flag) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return rename


def write_draft(folder: int, data: bytes, replaced: os.stat_result | None, mode: int | None) -> str:
    """Write the bytes to a new file beside the target, synced to disk; return its name."""
    name = f".{secrets.token_hex(8)}.tmp"
    # 0666 lets the person's umask decide about a new file; the draft of a replacement starts private.
    file = os.open(
        name,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o666 if replaced is None and mode is None else 0o600,
        dir_fd=folder,
    )
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            # Never setuid or setgid: those rights were trusted to the old content.
            if replaced is not None:
                with suppress(PermissionError):
                    os.fchown(file, replaced.st_uid, replaced.st_gid)
                os.fchmod(file, stat.S_IMODE(replaced.st_mode if mode is None else mode) & 0o777)
            elif mode is not None:
                os.fchmod(file, mode & 0o777)
            os.fsync(file)
    except BaseException:
        discard_draft(folder, name)
        raise
    return name


def copy_file_attributes(old: int, folder: int, name: str) -> None:
    """Copy what the person attached to the old file (tags, access lists) to the new one."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        new = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            for attribute in os.listxattr(old):
                if attribute.startswith(KEPT_ATTRIBUTES):
                    os.setxattr(new, attribute, os.getxattr(old, attribute))
        finally:
            os.close(new)


def discard_draft(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def sync_folder(folder: int) -> None:
    """Make the new name survive a power cut. If the disk cannot promise that, the file is still there."""
    with suppress(OSError):
        opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def open_scratch_folder(jail: Jail, below: str) -> Generator[str, None, None]:
    """Create a scratch folder and remove it with all its contents. Also removes what earlier servers left behind."""
    name = SCRATCH + secrets.token_hex(4)
    _remove_old_scratch_folders(jail, below)
    with jail.open_place(f"{below}/{name}", follow=False) as place:
        os.mkdir(name, mode=0o700, dir_fd=place.folder)
        try:
            yield place.path
        finally:
            # Removes links inside it without following them.
            shutil.rmtree(name, ignore_errors=True, dir_fd=place.folder)


def _remove_old_scratch_folders(jail: Jail, below: str) -> None:
    folder = jail.open_folder(below)
    try:
        with os.scandir(folder) as entries:
            left = [entry for entry in entries if entry.name.startswith(SCRATCH)]
        for entry in left:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > LEFT_OVER:
                shutil.rmtree(entry.name, ignore_errors=True, dir_fd=folder)
    finally:
        os.close(folder)


class Trash:
    """A folder of menugate's own that keeps deleted things under their old paths, so that the person can restore
    them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def move_to_trash(self, jail: Jail, place: JailPath) -> str:
        """Move a file, a link or an empty folder here; return its new path."""
        target = self.folder / secrets.token_hex(6) / place.path
        target.parent.mkdir(parents=True, mode=0o700)
        try:
            os.rename(place.name, target, src_dir_fd=place.folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            move_by_copying(jail, place, target)
        return str(target)


def move_by_copying(jail: Jail, place: JailPath, target: Path) -> None:
    """Move between file systems: complete on the other side before it is removed from this one."""
    found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        target.mkdir(mode=0o700)
        os.rmdir(place.name, dir_fd=place.folder)
        return
    if stat.S_ISLNK(found.st_mode):
        target.symlink_to(os.readlink(place.name, dir_fd=place.folder))
    else:
        with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
            os.fsync(copy.fileno())
    os.unlink(place.name, dir_fd=place.folder)


@contextmanager
def move_aside(place: JailPath, approved: Approved) -> Generator[JailPath, None, None]:
    """Rename the thing within its folder for as long as it is handled. If that fails, it gets its name back."""
    if approved is None:
        yield place
        return
    apart = replace(place, name=HELD + secrets.token_hex(16))
    rename_without_overwriting((place.folder, place.name), (apart.folder, apart.name))
    path = place.path.removesuffix(place.name) + apart.name
    try:
        approved(path)
        yield apart
    except BaseException:
        _put_back(apart, place, path)
        raise


def _put_back(apart: JailPath, place: JailPath, path: str) -> None:
    try:
        rename_without_overwriting((apart.folder, apart.name), (place.folder, place.name))
    except FileNotFoundError:
        return
    except OSError as error:
        message = f"`{place.path}` was not what the user was shown, and something else took its name meanwhile."
        raise build_path_refusal(message, f"What was there is `{path}` now; move it to where it belongs.") from error


def put_in_place(apart: JailPath, there: JailPath, approved: Approved) -> None:
    """Move it to its new place; move it back if someone who knew the held name swapped it first."""
    rename_without_overwriting((apart.folder, apart.name), (there.folder, there.name))
    if approved is None:
        return
    try:
        approved(there.path)
    except BaseException:
        # Overwrite whatever took the held name, which belongs to nobody: the unapproved thing must not stay here.
        os.rename(there.name, apart.name, src_dir_fd=there.folder, dst_dir_fd=apart.folder)
        raise
