"""How much is at this path, and how much of it could git bring back?"""

import os
import stat
import time
from contextlib import suppress
from typing import NamedTuple

from mcp_server.guards.git_index import Tracking, find_entries
from mcp_server.guards.jail import Jail, join_path
from mcp_server.guards.refusals import describe_file_kind
from mcp_server.model.results import Refusal

MAX_ENTRIES = 50_000
MAX_SECONDS = 0.5
"""The person waits for the question."""
GIT = ".git"


class PathSize(NamedTuple):
    path: str
    """The real path below the workspace; of a link, its own."""
    kind: str
    """`file`, `folder`, `link`, `missing`, or what else it is."""
    size: int = 0
    """Of a file, in bytes."""
    files: int = 0
    """In a folder and below it: everything but folders."""
    whole: bool = True
    """False if there are more, or some could not be counted."""
    has_repository: bool = False
    """A repository of its own is in it, and would be gone with its history."""
    tracking: Tracking = Tracking.UNKNOWN
    tracked: int = 0
    """How many of its files the repository around it tracks."""


def measure_path(jail: Jail, path: str, follow: bool, top: bool = False) -> PathSize | None:
    """Measure what is there; None if it may not be opened. `follow`: a link stands for what it leads to. `top`: also
    measure the workspace itself."""
    with suppress(Refusal, OSError), jail.open_deepest(path, follow, reading=True) as (place, missing):
        if missing:
            return PathSize(join_path(place.path, missing), "missing")
        if place.path == "." and not top:
            return None
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        git = find_entries(jail, place.path, inside=top)
        tracking, tracked = (git, 0) if isinstance(git, Tracking) else git.count_files()
        if stat.S_ISDIR(found.st_mode):
            files, whole, has_repository = _count_files(jail, place.path)
            has_repository = has_repository or (not isinstance(git, Tracking) and git.has_submodule)
            return PathSize(place.path, "folder", 0, files, whole, has_repository, tracking, tracked)
        kind = "file" if stat.S_ISREG(found.st_mode) else describe_file_kind(found.st_mode).removeprefix("a ")
        return PathSize(place.path, kind, found.st_size, tracking=tracking, tracked=tracked)
    return None


def _count_files(jail: Jail, path: str) -> tuple[int, bool, bool]:
    """Count without following a link. Return the files, whether these are all, and whether a repository is there."""
    files, entries, until, failed = 0, 0, time.monotonic() + MAX_SECONDS, list[OSError]()
    has_repository = False
    folder = jail.open_folder(path, exact=True)
    try:
        for _, folders, names, here in os.fwalk(".", dir_fd=folder, onerror=failed.append):
            # A link to a folder is listed among the folders.
            files += len(names) + sum(_is_link(name, here) for name in folders)
            entries += len(names) + len(folders)
            has_repository = has_repository or GIT in folders or GIT in names
            if entries > MAX_ENTRIES or time.monotonic() > until:
                return files, False, has_repository
    finally:
        os.close(folder)
    return files, not failed, has_repository


def _is_link(name: str, folder: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False
