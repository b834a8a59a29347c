"""What changed on the disk since the last round? One round walks the whole workspace, in slices of time.

A file with an unchanged stamp is not opened. One that changed just before we read it is read again next time, because
two changes within the clock's resolution can leave the same stamp.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from msgspec import Struct

from mcp_server.guards.index.cache import IndexCache, IndexedFile, IndexFull, ScannedFile
from mcp_server.guards.index.symbols import find_defined_symbols
from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.fallback import BYTE_ORDER_MARKS
from mcp_server.guards.search.file_types import may_hold_secrets
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.guards.search.walk import NOTHING, IgnoreRules, Walk, hold_folder_open
from mcp_server.model.results import Refusal

# Which text goes into the index? Plain text of a sensible length, from files that hold no secrets.

MAX_TEXT_BYTES = 1 << 20
"""A longer file is data or generated."""
TOO_LARGE, BINARY, SECRET, UNREADABLE, TOO_MANY = (
    "over 1 MB",
    "binary",
    "usually secret",
    "not readable",
    "more than the index holds",
)


class IndexText(Struct, frozen=True):
    text: str
    digest: bytes


def read_text(jail: Jail, place: JailPath) -> IndexText | str:
    """Return the text, or why it is left out."""
    if may_hold_secrets(place.path):
        return SECRET
    try:
        with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as source:
            data = source.read(MAX_TEXT_BYTES + 1)
    except (OSError, Refusal):
        return UNREADABLE
    return TOO_LARGE if len(data) > MAX_TEXT_BYTES else decode_text(data)


def decode_text(data: bytes) -> IndexText | str:
    digest = sha256(data).digest()[:16]
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return IndexText(_normalize_line_ends(data[len(mark) :].decode(encoding, "replace")), digest)
    return BINARY if b"\0" in data else IndexText(_normalize_line_ends(data.decode("utf-8", "replace")), digest)


def _normalize_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def read_text_at(jail: Jail, path: str) -> IndexText | str:
    """Do the same for a path."""
    parent, _, name = path.rpartition("/")
    try:
        with hold_folder_open(jail, parent or ".") as descriptor:
            return read_text(jail, JailPath(descriptor, name, path, False))
    except (OSError, Refusal):
        return UNREADABLE


CLOCK_RESOLUTION_NS = 2 * 10**9
"""No file system's clock is coarser."""
MAX_FILES = 200_000
MAX_FOLDER_ENTRIES = 50_000
FILES_PER_TRANSACTION = 50
"""We check the clock after each transaction."""
NO_DEADLINE_SECONDS = 86_400.0


@dataclass
class RefreshRound:
    jail: Jail
    now_ns: Callable[[], int]
    starting_transaction: int
    """The cache's newest transaction when the round began: the round must not forget what others stored later."""
    files_checked: int = 0
    files_read: int = 0
    is_full: bool = False
    """True if the cache had no room for something."""
    complete: bool = True
    """False if a folder was too large to list in full, or could not be read."""
    _pending_folders: list[tuple[str, IgnoreRules]] = field(default_factory=lambda: [(".", NOTHING)])
    _visited: set[str] = field(default_factory=set[str])
    _folder: str = "."
    _pending_files: list[tuple[str, os.stat_result, IndexedFile | None]] = field(
        default_factory=list[tuple[str, os.stat_result, IndexedFile | None]]
    )

    def run_slice(self, cache: IndexCache, deadline: SearchDeadline) -> bool:
        """Work until the time is up; True when the round is done."""
        while True:
            if self._pending_files:
                self._read_batch(cache)
            elif self._pending_folders:
                self._list_folder(cache, *self._pending_folders.pop())
            else:
                self._forget_folders(cache)
                return True
            if deadline.is_over:
                return False

    def _list_folder(self, cache: IndexCache, path: str, rules: IgnoreRules) -> None:
        walk = Walk(self.jail, path, SearchDeadline(NO_DEADLINE_SECONDS), MAX_FOLDER_ENTRIES)
        cached_files = cache.load_files_in(path)
        names: set[str] = set()
        subfolders: list[tuple[str, IgnoreRules]] = []
        for entry, inner in walk.walk_folder(path, rules):
            if entry.is_folder:
                subfolders.append((entry.place.path, inner))
                continue
            self.files_checked += 1
            names.add(entry.place.name)
            cached = cached_files.get(entry.place.name)
            if cached is None or cached.stamp != make_stamp(entry.stats) or not cached.settled:
                self._pending_files.append((entry.place.name, entry.stats, cached))
        self._folder = path
        self._visited.add(path)
        self._pending_folders += reversed(subfolders)
        self.complete &= walk.complete
        removed = cached_files.keys() - names
        if removed and walk.complete:
            with cache.open_transaction():
                cache.forget_files(path, removed, self.starting_transaction)

    def _read_batch(self, cache: IndexCache) -> None:
        batch = self._pending_files[:FILES_PER_TRANSACTION]
        del self._pending_files[:FILES_PER_TRANSACTION]
        try:
            with hold_folder_open(self.jail, self._folder) as descriptor, cache.open_transaction():
                free_slots = MAX_FILES - cache.count_indexed_files()
                for name, stats, cached in batch:
                    place = JailPath(descriptor, name, _join_path(self._folder, name), False)
                    self._index_file(cache, place, stats, cached, free_slots)
        except IndexFull:
            # Leave this batch out and go on: a later file may be small enough to fit.
            self.is_full = True
        except Refusal:
            # The folder is gone; the next round forgets its files.
            self._pending_files = []

    def _index_file(
        self, cache: IndexCache, place: JailPath, stats: os.stat_result, cached: IndexedFile | None, free_slots: int
    ) -> None:
        self.files_read += 1
        stamp, settled = make_stamp(stats), self.now_ns() - stats.st_ctime_ns > CLOCK_RESOLUTION_NS
        content = read_text(self.jail, place)
        if isinstance(content, str):
            scanned = ScannedFile(place.name, stamp, settled, left_out=content)
        elif cached is not None and cached.digest == content.digest and not cached.left_out:
            return cache.update_stamp(cached.id, stamp, settled)
        elif free_slots <= 0 and (cached is None or cached.left_out):
            scanned = ScannedFile(place.name, stamp, False, left_out=TOO_MANY)
        else:
            symbols = find_defined_symbols(place.path, content.text)
            scanned = ScannedFile(place.name, stamp, settled, content.digest, None, content.text, symbols)
        return cache.store_file(self._folder, scanned)

    def _forget_folders(self, cache: IndexCache) -> None:
        removed = [path for path in cache.list_folders() if path not in self._visited]
        if removed:
            with cache.open_transaction():
                for path in removed:
                    cache.forget_files(path, None, self.starting_transaction)


def make_stamp(stats: os.stat_result) -> str:
    """Format a stamp that changes whenever the file does, including its name and permissions."""
    return f"{stats.st_size} {stats.st_mtime_ns} {stats.st_ctime_ns} {stats.st_ino}"


def _join_path(path: str, name: str) -> str:
    return name if path == "." else f"{path}/{name}"
