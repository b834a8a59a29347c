"""Which folder does this relative path lead to? Opens it without leaving the root, via the kernel or step by step.

Both ways behave the same: a relative link is followed while it stays beneath the root, an absolute link never, and `..`
stops at the root. Both raise `OSError`, with EXDEV for a path that would leave. Never check a path first and open it
afterwards: an attacker who swaps a link in between wins that race once in a few hundred tries.
"""

import errno
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

Resolve: TypeAlias = Callable[[int, str], tuple[int, str]]
"""Takes an open folder and a path below it; returns that folder, open, and its real path below the first (`.` for
itself)."""

FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
MOST_LINKS = 40

OPENAT2 = 437
"""The number is the same on all machines; those not in `MACHINES` use `open_by_steps`."""
MACHINES = ("x86_64", "aarch64")
NO_MAGICLINKS = 0x02
BENEATH = 0x08
TRIES = 64
"""The kernel answers EAGAIN if a folder was moved during the lookup. If that happens every time, the open is
refused."""


def choose_resolver() -> Resolve:
    """Prefer the kernel's way, but only after trying it: seccomp filters misreport what is missing."""
    return open_by_kernel if can_kernel_resolve() else open_by_steps


@cache
def can_kernel_resolve() -> bool:
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        return False
    top = os.open("/", FOLDER)
    try:
        folder, path = open_by_kernel(top, ".")
        os.close(folder)
        try:
            os.close(open_by_kernel(top, "..")[0])
        except OSError as error:
            return path == "." and error.errno == errno.EXDEV
        return False
    except OSError:
        return False
    finally:
        os.close(top)


def open_by_kernel(root: int, path: str) -> tuple[int, str]:
    for _ in range(TRIES):
        try:
            folder = _openat2(root, os.fsencode(path))
            break
        except BlockingIOError:
            continue
    else:
        raise OSError(errno.EXDEV, "moved away while it was opened")
    try:
        return folder, _find_real_path(root, folder)
    except BaseException:
        os.close(folder)
        raise


def _find_real_path(root: int, folder: int) -> str:
    if os.fstat(folder).st_nlink == 0:
        raise FileNotFoundError(errno.ENOENT, "taken away while it was opened")
    # Asked at every opening, and a `Path` costs as much again.
    top = os.readlink(f"/proc/self/fd/{root}").rstrip("/")  # noqa: PTH115
    here = os.readlink(f"/proc/self/fd/{folder}").rstrip("/")  # noqa: PTH115
    if here == top:
        return "."
    if not here.startswith(top + "/"):
        raise OSError(errno.EXDEV, "outside")
    return here[len(top) + 1 :]


def _openat2(root: int, path: bytes) -> int:
    call, how = _load_system_call()
    folder: int = call(OPENAT2, root, path, how, len(how))
    if folder < 0:
        raise _get_last_error()
    return folder


@cache
def _load_system_call() -> tuple[Callable[..., int], Any]:
    # Imported here because loading ctypes costs milliseconds, which a start without file calls need not pay.
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    how = b"".join(number.to_bytes(8, sys.byteorder) for number in (FOLDER, 0, BENEATH | NO_MAGICLINKS))
    return call, how


def _get_last_error() -> OSError:
    import ctypes

    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def open_by_steps(root: int, path: str) -> tuple[int, str]:
    folders = [os.open(".", FOLDER, dir_fd=root)]
    names: list[str] = []
    todo = path.split("/")[::-1]
    links = 0
    try:
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                _step_up(folders, names)
            elif (target := _step_down(folders, names, name)) is not None:
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                todo.extend(target.split("/")[::-1])
        return folders.pop(), "/".join(names) or "."
    finally:
        for folder in folders:
            os.close(folder)


def _step_up(folders: list[int], names: list[str]) -> None:
    # Go back along the folders held open, not through the folder's own `..`: that changes when the folder is moved.
    if not names:
        raise OSError(errno.EXDEV, "outside")
    names.pop()
    os.close(folders.pop())


def _step_down(folders: list[int], names: list[str], name: str) -> str | None:
    """Descend by one name; if the name is a link, return its target instead."""
    try:
        folders.append(os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folders[-1]))
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        target = read_link_target(folders[-1], name)
        if target is None:
            raise
        return target
    names.append(name)
    return None


def read_link_target(folder: int, name: str) -> str | None:
    """Return the link's target, or None if the name is not a link. An absolute link raises: it leaves by definition."""
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    if target.startswith("/"):
        raise OSError(errno.EXDEV, "an absolute link")
    return target
