"""How much would be lost here? Counted now, and for no longer than somebody waits for a question."""

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from mcp_server.guards.git_index import SUBMODULE, IndexEntry, TrackedFiles, Tracking, find_entries
from mcp_server.guards.jail import Jail, join_path
from mcp_server.guards.path_sizes import MAX_SECONDS, PathSize, measure_path
from mcp_server.model.results import Refusal
from mcp_server.model.tools import Loss, LossKind

UNKNOWN, UNCOUNTED = "unknown", "uncounted"
"""What a path is called where nobody knows which one it is, or where the time was up."""
IN_FOLDER = frozenset(("deletes in", "deletes some in", "overwrites in"))
BY_GIT = frozenset(("cleans", "cleans all", "discards", "resets"))
MAX_HASHED_BYTES = 16 << 20


class MeasuredLoss(NamedTuple):
    loss: Loss
    size: PathSize


def measure_loss(jail: Jail, loss: Loss) -> MeasuredLoss | None:
    """None if nothing would be lost, or if the path may not be looked at."""
    path = _resolve_upwards(jail, loss.path) if ".." in loss.path.split("/") else loss.path
    if not loss.known or path is None:
        return MeasuredLoss(loss, PathSize(loss.path, UNKNOWN))
    loss = loss._replace(path=path)
    if loss.does in BY_GIT:
        size = _measure_for_git(jail, loss)
    else:
        size = measure_path(jail, loss.path, follows_links(loss.does, loss.path), top=loss.does in IN_FOLDER)
    return MeasuredLoss(loss, size) if size is not None and _is_lost(jail, loss, size) else None


def _resolve_upwards(jail: Jail, path: str) -> str | None:
    """Return the path without its `..`; None if a link or a missing folder in front of one may lead elsewhere."""
    here = "." if not path.startswith("/") else ".."
    for name in path.split("/"):
        if name != "..":
            here = join_path(here, name)
            continue
        folder = measure_path(jail, here, follow=False) if here != "." else None
        if folder is None or folder.kind != "folder" or folder.path != here:
            return None
        here = here.rpartition("/")[0] or "."
    return here + ("/" if path.endswith("/") and here != "." else "")


def follows_links(does: LossKind, path: str) -> bool:
    return does in ("overwrites", *IN_FOLDER) or path.endswith("/")


def _is_lost(jail: Jail, loss: Loss, size: PathSize) -> bool:
    match loss.does:
        case "deletes":
            return size.kind != "missing" or loss.doubt != "folder"
        case "unlinks":
            return size.kind != "folder" and (size.kind != "missing" or loss.doubt != "folder")
        case "removes":
            return size.kind == "folder" and size.files == 0
        case "overwrites":
            # A new file overwrites nothing.
            return size.kind == "file"
        case "replaces":
            behind = measure_path(jail, loss.path, follow=True) if size.kind == "link" else None
            return size.kind in ("file", "link") and (behind is None or behind.kind != "folder")
        case "relinks":
            return size.kind in ("file", "link")
        case "deletes in" | "deletes some in" | "overwrites in":
            return size.kind == "folder" and size.files > 0
        case "cleans" | "cleans all" | "discards":
            return size.files > 0 or not size.whole
        case "resets":
            return True


def _measure_for_git(jail: Jail, loss: Loss) -> PathSize | None:
    """Count the files that git would change or delete at the path and below it."""
    with suppress(Refusal, OSError):
        path = jail.to_relative(loss.path)
        if loss.does == "resets":
            around = find_entries(jail, path, inside=True)
            path = around.top if isinstance(around, TrackedFiles) else path
        is_folder = (jail.root / path).is_dir()
        found = find_entries(jail, path, inside=is_folder)
        if isinstance(found, Tracking):
            return PathSize(path, "folder", whole=False, tracking=found) if found is Tracking.UNKNOWN else None
        if loss.does in ("discards", "resets"):
            files, whole = _count_changed(jail, found)
            return PathSize(path, "folder", 0, files, whole, tracking=Tracking.TRACKED, tracked=files)
        here = measure_path(jail, path, follow=False, top=True)
        if here is None or here.kind != "folder":
            return here if here is not None and here.kind == "file" and not found.entries else None
        there = sum(one.mode != SUBMODULE and _is_there(jail, found, one) for one in found.entries)
        own = _count_own_files(jail, found.top) if path == found.top else 0
        return here._replace(files=max(here.files - there - own, 0), tracking=Tracking.UNTRACKED, tracked=0)
    return None


def _is_there(jail: Jail, found: TrackedFiles, entry: IndexEntry) -> bool:
    with suppress(OSError, ValueError):
        os.lstat(jail.root / join_path(found.top, os.fsdecode(entry.path)))
        return True
    return False


def _count_own_files(jail: Jail, top: str) -> int:
    """Count the files of git's own folder, which it does not clean."""
    own = measure_path(jail, join_path(top, ".git"), follow=False)
    return 0 if own is None or own.kind == "missing" else max(own.files, own.kind == "file")


def _count_changed(jail: Jail, found: TrackedFiles) -> tuple[int, bool]:
    """Count the tracked files that differ from what git has of them; a file that is gone has nothing to lose."""
    changed, until = 0, time.monotonic() + MAX_SECONDS
    for entry in found.entries:
        if time.monotonic() > until:
            return changed, False
        changed += entry.mode != SUBMODULE and any(find_differences(jail, found, entry))
    return changed, True


def find_differences(jail: Jail, found: TrackedFiles, entry: IndexEntry) -> Iterator[bool]:
    """Compare the file with what git has of it. Finds nothing if it is gone."""
    path = join_path(found.top, os.fsdecode(entry.path))
    with suppress(Refusal, OSError, ValueError), jail.open_place(path, follow=False, reading=True) as place:
        now = place.stat()
        if now is None:
            return
        if now.st_size & 0xFFFFFFFF != entry.size or not stat.S_ISREG(now.st_mode):
            yield stat.S_ISREG(now.st_mode) or not stat.S_ISLNK(entry.mode) or now.st_size != entry.size
        elif (int(now.st_mtime), now.st_mtime_ns % 10**9) != (entry.seconds, entry.nanoseconds):
            yield now.st_size > MAX_HASHED_BYTES or _name_content(jail, path, len(entry.object)) != entry.object


def _name_content(jail: Jail, path: str, length: int) -> bytes:
    with os.fdopen(jail.open(path, os.O_RDONLY), "rb") as file:
        data = file.read(MAX_HASHED_BYTES)
    digest = hashlib.sha1(usedforsecurity=False) if length == 20 else hashlib.sha256()
    digest.update(b"blob %d\0" % len(data) + data)
    return digest.digest()
