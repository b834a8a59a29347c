"""How is a file put in place or removed without overwriting or losing anything?"""

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
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.refusals import build_path_refusal

Spot: TypeAlias = tuple[int, str]
"""An open folder and a name in it."""

RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
RENAME_NOREPLACE, RENAME_EXCL = 1, 4
"""On Linux, and on macOS."""
RENAME_EXCHANGE = 2
"""On both."""
UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP})
"""How kernels, file systems and seccomp filters report that they do not support the call."""
SCRATCH_PREFIX = ".menugate-scratch-"
SCRATCH_MAX_AGE_SECONDS = 3600.0
"""No call runs this long, so nobody still uses an older scratch folder."""
KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access")
ApprovalCheck: TypeAlias = Callable[[str], None] | None
"""Raises `Refusal` if what is at this path now is not what the user approved; None if the user was not asked."""
ASIDE_PREFIX = ".menugate-held-"


def rename_without_overwriting(source: Spot, target: Spot) -> None:
    """Rename, and fail if the target exists: in one step, or in two if the system call is missing."""
    if not _rename(source, target, RENAME_EXCL if sys.platform == "darwin" else RENAME_NOREPLACE):
        rename_in_two_steps(source, target)


def _rename(source: Spot, target: Spot, flag: int) -> bool:
    """Rename with a flag; False if this system, or this disk, does not know it."""
    rename = _load_rename()
    if rename is None:
        return False
    try:
        rename(source, target, flag)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return False
    return True


def replace_exactly(draft: Spot, target: Spot, replaced: os.stat_result) -> bool:
    """Put the draft in the target's place. If something else than what should be replaced is there by then, put that
    back and return False. The old file is then gone, or the draft."""
    if not _rename(draft, target, RENAME_EXCHANGE):
        if not _is_unchanged(target, replaced):
            return False
        os.rename(draft[1], target[1], src_dir_fd=draft[0], dst_dir_fd=target[0])
        return True
    same = _is_unchanged(draft, replaced)
    if not same:
        _rename(draft, target, RENAME_EXCHANGE)
    discard_draft(*draft)
    return same


def _is_unchanged(spot: Spot, before: os.stat_result) -> bool:
    now = os.stat(spot[1], dir_fd=spot[0], follow_symlinks=False)
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) == (
        *(before.st_dev, before.st_ino),
        *(before.st_size, before.st_mtime_ns),
    )


def rename_in_two_steps(source: Spot, target: Spot) -> None:
    """Claim the new name first, which fails if it is taken, then rename."""
    (old_folder, old), (new_folder, new) = source, target
    if stat.S_ISDIR(os.stat(old, dir_fd=old_folder, follow_symlinks=False).st_mode):
        os.mkdir(new, 0o700, dir_fd=new_folder)
        try:
            os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        except BaseException:
            with suppress(OSError):
                os.rmdir(new, dir_fd=new_folder)
            raise
        return
    os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
    os.unlink(old, dir_fd=old_folder)


@cache
def _load_rename() -> Callable[[Spot, Spot, int], None] | None:
    # Imported here because loading ctypes costs milliseconds, which a start without file calls need not pay.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        call, leading_arguments = libc.renameatx_np, ()
        call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    elif number := RENAMEAT2.get(platform.machine()):
        call, leading_arguments = libc.syscall, (number,)
        call.restype = ctypes.c_long
        call.argtypes = (*(ctypes.c_long,) * 2, ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p, ctypes.c_long)
    else:
        return None

    def rename(source: Spot, target: Spot, flag: int) -> None:
        (old_folder, old), (new_folder, new) = source, target
        if call(*leading_arguments, old_folder, os.fsencode(old), new_folder, os.fsencode(new), flag) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return rename


def write_draft(folder: int, data: bytes, replaced: os.stat_result | None, mode: int | None) -> str:
    """Write the bytes to a new file beside the target and sync it to disk; return its name."""
    name = f".{secrets.token_hex(8)}.tmp"
    # 0666 lets the umask decide about a new file; the draft of a replacement starts private.
    file = os.open(
        name,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        0o666 if replaced is None and mode is None else 0o600,
        dir_fd=folder,
    )
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            # Never setuid or setgid: those bits were meant for the old content.
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
    """Copy tags and access lists from the old file to the new one."""
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
    """Make the new name survive a power cut. A disk that cannot promise that still has the file."""
    with suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def open_scratch_folder(jail: Jail, below: str) -> Generator[str, None, None]:
    """Create a scratch folder and remove it afterwards, along with any that earlier servers left behind."""
    name = SCRATCH_PREFIX + secrets.token_hex(4)
    _remove_old_scratch_folders(jail, below)
    with jail.open_place(f"{below}/{name}", follow=False) as place:
        os.mkdir(name, mode=0o700, dir_fd=place.folder)
        try:
            yield place.path
        finally:
            # `rmtree` removes links inside it without following them.
            shutil.rmtree(name, ignore_errors=True, dir_fd=place.folder)


def _remove_old_scratch_folders(jail: Jail, below: str) -> None:
    folder = jail.open_folder(below)
    try:
        with os.scandir(folder) as entries:
            scratch_entries = [entry for entry in entries if entry.name.startswith(SCRATCH_PREFIX)]
        for entry in scratch_entries:
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > SCRATCH_MAX_AGE_SECONDS:
                shutil.rmtree(entry.name, ignore_errors=True, dir_fd=folder)
    finally:
        os.close(folder)


class Trash:
    """Keeps deleted files under their old paths in a folder of menugate's own, so that the user can restore them."""

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
    """Move between file systems: the copy is complete before the original is removed."""
    stats = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    if stat.S_ISDIR(stats.st_mode):
        target.mkdir(mode=0o700)
        os.rmdir(place.name, dir_fd=place.folder)
        return
    if stat.S_ISLNK(stats.st_mode):
        target.symlink_to(os.readlink(place.name, dir_fd=place.folder))
    else:
        with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(stats.st_mode) & 0o777)
            os.fsync(copy.fileno())
    os.unlink(place.name, dir_fd=place.folder)


@contextmanager
def move_aside(place: JailPath, check: ApprovalCheck) -> Generator[JailPath, None, None]:
    """Rename the file within its folder while it is checked and used, so that nobody swaps it. If that fails, it gets
    its name back."""
    if check is None:
        yield place
        return
    aside = replace(place, name=ASIDE_PREFIX + secrets.token_hex(16))
    rename_without_overwriting((place.folder, place.name), (aside.folder, aside.name))
    path = place.path.removesuffix(place.name) + aside.name
    try:
        check(path)
        yield aside
    except BaseException:
        _put_back(aside, place, path)
        raise


def _put_back(aside: JailPath, place: JailPath, path: str) -> None:
    try:
        rename_without_overwriting((aside.folder, aside.name), (place.folder, place.name))
    except FileNotFoundError:
        return
    except OSError as error:
        message = f"`{place.path}` was not what the user was shown, and another file has taken its place since."
        raise build_path_refusal(message, f"The earlier one is now at `{path}`; move it where it belongs.") from error


def put_in_place(aside: JailPath, target: JailPath, check: ApprovalCheck) -> None:
    """Move it from its temporary name to the target; move it back if somebody guessed that name and swapped it."""
    rename_without_overwriting((aside.folder, aside.name), (target.folder, target.name))
    if check is None:
        return
    try:
        check(target.path)
    except BaseException:
        # Overwrite whatever has taken the temporary name, which is ours: what was not approved must not stay here.
        os.rename(target.name, aside.name, src_dir_fd=target.folder, dst_dir_fd=aside.folder)
        raise
