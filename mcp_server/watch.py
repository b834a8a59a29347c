"""Has anything in these folders changed? Linux reports changes (inotify), so that not every call has to check.

A change is known before its writer's next request is handled: the kernel has queued the event by then, and the event
loop reads events before it judges a call that arrived with them. On other systems, and behind links, the files are
checked every time."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Modified, attributes, closed after writing, moved from and to, created, deleted, and the folder itself deleted or
moved."""
ONLY_FOLDERS = 0x01000000
MOST_BYTES = 1 << 16


class FileWatch:
    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._file = -1
        self._known: frozenset[tuple[str, int, int]] = frozenset()

    def watch_paths(self, paths: Iterable[str]) -> bool:
        """Watch these paths instead of any earlier ones. Return False if that is not possible."""
        try:
            folders = frozenset(_find_watched_folders(paths))
            if folders != self._known:
                self.stop_watching()
                self._file = _open_event_file(name for name, _, _ in folders)
                asyncio.get_running_loop().add_reader(self._file, self._read_events)
                self._known = folders
        except (OSError, AttributeError):
            return False
        return True

    def stop_watching(self) -> None:
        if self._file != -1:
            asyncio.get_running_loop().remove_reader(self._file)
            os.close(self._file)
            self._file, self._known = -1, frozenset()

    def _read_events(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._file, MOST_BYTES)
        self._changed()


def _find_watched_folders(paths: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the folders whose events show a change to one of these paths, each with its device and inode, which differ
    for another folder of the same name."""
    for path in paths:
        if os.path.realpath(path) != path:
            raise OSError("a link's target changes in another folder")
        watched = Path(path)
        parent = next(folder for folder in watched.parents if folder.is_dir())
        for folder in (parent, watched) if watched.is_dir() else (parent,):
            status = folder.stat()
            yield str(folder), status.st_dev, status.st_ino


def _open_event_file(folders: Iterable[str]) -> int:
    """Open a file that becomes readable when something changes in one of these folders."""
    if sys.platform != "linux":
        raise OSError("only Linux has it")
    import ctypes  # a megabyte that no command at the terminal needs

    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if file < 0:
        raise OSError(ctypes.get_errno(), "cannot open a file for change events")
    for folder in folders:
        if libc.inotify_add_watch(file, os.fsencode(folder), CHANGES | ONLY_FOLDERS) < 0:
            os.close(file)
            raise OSError(ctypes.get_errno(), "too many folders are watched", folder)
    return int(file)
