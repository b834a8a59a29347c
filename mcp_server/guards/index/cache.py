"""What is known of each file? A small database of its own beside the state, which may be deleted at any time.

It holds no only copy of anything: a file that is unreadable or from another version is deleted and rebuilt. It is
opened for each use and closed afterwards, so that deleting it really removes it.
"""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.model.index import Symbol
from mcp_server.model.query import find_words

VERSION = 1
MOST_PAGES = 131_072
"""Half a gigabyte; nothing beyond that is indexed."""
WAIT_SECONDS = 5.0
STEPS_BETWEEN_LOOKS = 20_000
OF_A_SYMBOL = ("kind", "line", "last", "within", "text")
LAYOUT = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    folder BLOB NOT NULL,
    name BLOB NOT NULL,
    stamp TEXT NOT NULL,
    settled INTEGER NOT NULL,
    digest BLOB,
    left_out TEXT,
    turn INTEGER NOT NULL,
    UNIQUE (folder, name));
CREATE TABLE symbols (
    file INTEGER NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    kind TEXT NOT NULL,
    line INTEGER NOT NULL,
    last INTEGER NOT NULL,
    within TEXT NOT NULL,
    text TEXT NOT NULL);
CREATE INDEX symbols_by_file ON symbols (file, line);
CREATE INDEX symbols_by_name ON symbols (folded);
CREATE VIRTUAL TABLE words USING fts5 (held, tokenize = "ascii tokenchars '_'", detail = none, columnsize = 0);
CREATE TABLE turns (turn INTEGER NOT NULL, birth TEXT NOT NULL);
INSERT INTO turns VALUES (0, hex(randomblob(8)));
"""


class IndexFull(Exception):
    """There is no room for more."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """What is known of one file."""

    id: int
    stamp: str
    settled: bool
    digest: bytes | None
    left_out: str | None


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """What a scan found in one file."""

    name: str
    stamp: str
    settled: bool
    digest: bytes | None = None
    left_out: str | None = None
    text: str = ""
    symbols: Sequence[Symbol] = ()


class IndexCache:
    """The open database. Each method is one query or one change; changes within `open_transaction` commit together."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self._link = link

    @contextmanager
    def open_transaction(self) -> Generator[int]:
        """One transaction; yields its turn, higher than that of every earlier one."""
        self._link.execute("BEGIN IMMEDIATE")
        try:
            self._link.execute("UPDATE turns SET turn = turn + 1")
            yield self.read_turn()
        except BaseException:
            with suppress(sqlite3.Error):
                self._link.execute("ROLLBACK")
            raise
        self._link.execute("COMMIT")

    def read_turn(self) -> int:
        return self._link.execute("SELECT turn FROM turns").fetchone()[0]

    def read_birth(self) -> str:
        """Differs if the file was replaced."""
        return self._link.execute("SELECT birth FROM turns").fetchone()[0]

    def count_indexed_files(self) -> int:
        return self._link.execute("SELECT count(*) FROM files WHERE left_out IS NULL").fetchone()[0]

    def count_left_out(self) -> dict[str, int]:
        rows = self._link.execute(
            "SELECT left_out, count(*) FROM files WHERE left_out IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return dict(rows.fetchall())

    def load_files_in(self, folder: str) -> dict[str, IndexedFile]:
        """Load what is known of the files directly in this folder, by name."""
        rows = self._link.execute(
            "SELECT name, id, stamp, settled, digest, left_out FROM files WHERE folder = ?", (os.fsencode(folder),)
        )
        return {
            os.fsdecode(name): IndexedFile(id, stamp, bool(settled), *rest) for name, id, stamp, settled, *rest in rows
        }

    def list_folders(self) -> list[str]:
        return [os.fsdecode(row[0]) for row in self._link.execute("SELECT DISTINCT folder FROM files")]

    def store_file(self, folder: str, one: ScannedFile, turn: int) -> None:
        """Replace whatever was known of the file."""
        try:
            row = self._link.execute(
                "INSERT INTO files (folder, name, stamp, settled, digest, left_out, turn) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (folder, name) DO UPDATE SET stamp = excluded.stamp, settled = excluded.settled,"
                " digest = excluded.digest, left_out = excluded.left_out, turn = excluded.turn RETURNING id",
                (os.fsencode(folder), os.fsencode(one.name), one.stamp, one.settled, one.digest, one.left_out, turn),
            ).fetchone()
            self._clear_file(row[0])
            if one.left_out is None:
                self._link.execute(
                    "INSERT INTO words (rowid, held) VALUES (?, ?)", (row[0], " ".join(sorted(find_words(one.text))))
                )
                self._link.executemany(
                    "INSERT INTO symbols VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (row[0], each.name, each.name.casefold(), *(getattr(each, name) for name in OF_A_SYMBOL))
                        for each in one.symbols
                    ],
                )
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                raise IndexFull from error
            raise

    def update_stamp(self, id: int, stamp: str, settled: bool) -> None:
        """The content is unchanged under a new stamp."""
        self._link.execute("UPDATE files SET stamp = ?, settled = ? WHERE id = ?", (stamp, settled, id))

    def forget_files(self, folder: str, names: Iterable[str] | None, until: int) -> None:
        """Forget these files of a folder (None for all), except those learned after turn `until`."""
        wanted = None if names is None else {os.fsencode(name) for name in names}
        rows = self._link.execute(
            "SELECT id, name FROM files WHERE folder = ? AND turn <= ?", (os.fsencode(folder), until)
        )
        for id, name in rows.fetchall():
            if wanted is None or name in wanted:
                self._clear_file(id)
                self._link.execute("DELETE FROM files WHERE id = ?", (id,))

    def _clear_file(self, id: int) -> None:
        self._link.execute("DELETE FROM words WHERE rowid = ?", (id,))
        self._link.execute("DELETE FROM symbols WHERE file = ?", (id,))

    def query_rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        """Run a query for a search. `sql` is never built from user input."""
        return self._link.execute(sql, values).fetchall()


@contextmanager
def open_cache(path: Path, deadline: SearchDeadline | None = None) -> Generator[IndexCache]:
    """Open the cache, or create it. A query that exceeds its deadline raises `sqlite3.OperationalError`."""
    if not _is_ours(path):
        _make_cache(path)
    link = _connect(path)
    try:
        if link.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            raise sqlite3.DatabaseError("made by another version")
        if deadline is not None:
            link.set_progress_handler(lambda: deadline.is_over, STEPS_BETWEEN_LOOKS)
        yield IndexCache(link)
    finally:
        link.close()


def _connect(path: Path) -> sqlite3.Connection:
    link = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        link.execute("PRAGMA synchronous = NORMAL")
        link.execute(f"PRAGMA max_page_count = {MOST_PAGES}")
        return link
    except BaseException:
        link.close()
        raise


def _is_ours(path: Path) -> bool:
    """Is it a non-empty plain file with a single name? A link in its place could lead anywhere."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1 and found.st_size > 0


def _make_cache(path: Path) -> None:
    with _lock_cache(path):
        if _is_ours(path):  # another process was first
            return
        # Created under another name and moved into place complete, so that nobody opens half a file.
        draft = path.with_suffix(".new")
        _remove_files(draft)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        link = _connect(draft)
        try:
            link.execute("PRAGMA journal_mode = WAL")
            link.execute("BEGIN IMMEDIATE")
            for statement in LAYOUT.strip().split(";\n"):
                link.execute(statement)
            link.execute(f"PRAGMA user_version = {VERSION}")
            link.execute("COMMIT")
        finally:
            link.close()
        # SQLite would treat an earlier file's leftovers as part of this one.
        _remove_files(path)
        draft.rename(path)


def read_identity(path: Path) -> tuple[int, int] | None:
    """Identify the file at this path; None if there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def discard_cache(path: Path, which: tuple[int, int] | None) -> None:
    """Delete this cache, unless another has taken its place."""
    with _lock_cache(path):
        if read_identity(path) == which:
            _remove_files(path)


def _remove_files(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()


@contextmanager
def _lock_cache(path: Path) -> Generator[None]:
    """Keep other processes from creating or deleting this cache."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path.with_suffix(".lock"), flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
