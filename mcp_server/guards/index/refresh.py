"""What changed on the disk since the last round? One round through the workspace, in slices of time.

A file with an unchanged stamp is not opened. One that was changed just before it was read is read again, because two
changes within the clock's resolution can leave the same stamp.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256

from mcp_server.guards.index.cache import IndexCache, IndexedFile, IndexFull, ScannedFile
from mcp_server.guards.index.symbols import find_defined_symbols
from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.file_types import may_hold_secrets
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.guards.search.walk import NOTHING, IgnoreRules, Walk
from mcp_server.model.results import Refusal

# What text of a file goes into the index? Plain text of a sensible length that holds no secrets.

MOST_BYTES = 1 << 20
"""A longer file is data, or generated."""
LARGE, BINARY, SECRET, UNREADABLE, TOO_MANY = (
    "over 1 MB",
    "binary",
    "usually secret",
    "not readable",
    "more than the index holds",
)
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True, slots=True)
class IndexText:
    text: str
    digest: bytes


@contextmanager
def hold_folder_open(jail: Jail, path: str) -> Generator[int]:
    opened = jail.open_folder(path)
    try:
        yield opened
    finally:
        os.close(opened)


def read_text(jail: Jail, place: JailPath) -> IndexText | str:
    """Return the text, or why it is left out."""
    if may_hold_secrets(place.path):
        return SECRET
    try:
        with os.fdopen(jail.open_at(place, os.O_RDONLY), "rb") as source:
            data = source.read(MOST_BYTES + 1)
    except (OSError, Refusal):
        return UNREADABLE
    return LARGE if len(data) > MOST_BYTES else decode_text(data)


def decode_text(data: bytes) -> IndexText | str:
    digest = sha256(data).digest()[:16]
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return IndexText(_normalize_line_ends(data[len(mark) :].decode(encoding, "replace")), digest)
    return BINARY if b"\0" in data else IndexText(_normalize_line_ends(data.decode("utf-8", "replace")), digest)


def _normalize_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")


def read_text_at(jail: Jail, path: str) -> IndexText | str:
    """The same by path."""
    above, _, name = path.rpartition("/")
    try:
        with hold_folder_open(jail, above or ".") as opened:
            return read_text(jail, JailPath(opened, name, path, False))
    except (OSError, Refusal):
        return UNREADABLE


GRAIN_NS = 2 * 10**9
"""No disk's clock is coarser."""
MOST_FILES = 200_000
MOST_IN_A_FOLDER = 50_000
AT_ONCE = 50
"""Files read per transaction and per look at the clock."""
ALL_DAY = 86_400.0


@dataclass
class Round:
    jail: Jail
    now_ns: Callable[[], int]
    began: int
    """The cache's turn when the round began. This round must not forget what another process learned later."""
    looked: int = 0
    learned: int = 0
    full: bool = False
    """True if something did not fit."""
    whole: bool = True
    """False if a folder was too large to list in full, or could not be read."""
    _todo: list[tuple[str, IgnoreRules]] = field(default_factory=lambda: [(".", NOTHING)])
    _visited: set[str] = field(default_factory=set[str])
    _folder: str = "."
    _to_read: list[tuple[str, os.stat_result, IndexedFile | None]] = field(
        default_factory=list[tuple[str, os.stat_result, IndexedFile | None]]
    )

    def run_slice(self, cache: IndexCache, deadline: SearchDeadline) -> bool:
        """Continue until the time is up; True when the round is done."""
        while True:
            if self._to_read:
                self._read_some(cache)
            elif self._todo:
                self._list_folder(cache, *self._todo.pop())
            else:
                self._forget_folders(cache)
                return True
            if deadline.is_over:
                return False

    def _list_folder(self, cache: IndexCache, path: str, rules: IgnoreRules) -> None:
        walk = Walk(self.jail, path, SearchDeadline(ALL_DAY), MOST_IN_A_FOLDER)
        known = cache.load_files_in(path)
        there: set[str] = set()
        below: list[tuple[str, IgnoreRules]] = []
        for found, inner in walk.walk_folder(path, rules):
            if found.is_folder:
                below.append((found.place.path, inner))
                continue
            self.looked += 1
            there.add(found.place.name)
            before = known.get(found.place.name)
            if before is None or before.stamp != make_stamp(found.stats) or not before.settled:
                self._to_read.append((found.place.name, found.stats, before))
        self._folder = path
        self._visited.add(path)
        self._todo += reversed(below)
        self.whole &= walk.complete
        gone = known.keys() - there
        if gone and walk.complete:
            with cache.open_transaction():
                cache.forget_files(path, gone, self.began)

    def _read_some(self, cache: IndexCache) -> None:
        some, self._to_read = self._to_read[:AT_ONCE], self._to_read[AT_ONCE:]
        try:
            with hold_folder_open(self.jail, self._folder) as opened, cache.open_transaction() as turn:
                room = MOST_FILES - cache.count_indexed_files()
                for name, stats, before in some:
                    self._index_file(
                        cache,
                        JailPath(opened, name, _join_path(self._folder, name), False),
                        (stats, before),
                        room,
                        turn,
                    )
        except IndexFull:
            # These stay out; a later file may be smaller and fit.
            self.full = True
        except Refusal:
            # The folder is gone, with everything in it; the next round notices.
            self._to_read = []

    def _index_file(
        self, cache: IndexCache, place: JailPath, seen: tuple[os.stat_result, IndexedFile | None], room: int, turn: int
    ) -> None:
        stats, before = seen
        self.learned += 1
        settled = self.now_ns() - stats.st_ctime_ns > GRAIN_NS
        found = read_text(self.jail, place)
        if (
            isinstance(found, IndexText)
            and before is not None
            and before.digest == found.digest
            and not before.left_out
        ):
            cache.update_stamp(before.id, make_stamp(stats), settled)
        elif isinstance(found, str):
            cache.store_file(self._folder, ScannedFile(place.name, make_stamp(stats), settled, left_out=found), turn)
        elif room <= 0 and (before is None or before.left_out):
            cache.store_file(self._folder, ScannedFile(place.name, make_stamp(stats), False, left_out=TOO_MANY), turn)
        else:
            symbols = find_defined_symbols(place.path, found.text)
            learned = ScannedFile(place.name, make_stamp(stats), settled, found.digest, None, found.text, symbols)
            cache.store_file(self._folder, learned, turn)

    def _forget_folders(self, cache: IndexCache) -> None:
        gone = [path for path in cache.list_folders() if path not in self._visited]
        if gone:
            with cache.open_transaction():
                for path in gone:
                    cache.forget_files(path, None, self.began)


def make_stamp(found: os.stat_result) -> str:
    """Changes whenever the file does, including its name and permissions."""
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _join_path(path: str, name: str) -> str:
    return name if path == "." else f"{path}/{name}"
