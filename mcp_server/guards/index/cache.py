"""What does the index know of each file? A small SQLite database beside the state, which may be deleted at any time.

Nothing in it is the only copy, so a database that is damaged or from another version is deleted and rebuilt. We open it
for each use and close it afterwards, so that deleting it really frees the disk.
"""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.model.index import Symbol
from mcp_server.model.query import find_words

VERSION = 1
MAX_PAGES = 131_072
"""Half a gigabyte. Nothing beyond that is indexed."""
WAIT_SECONDS = 5.0
STEPS_BETWEEN_CLOCK_CHECKS = 20_000
SYMBOL_COLUMNS = ("kind", "line", "last", "within", "text")
SCHEMA = """
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
    """The database has reached its largest size."""


class IndexedFile(Struct, frozen=True):
    """What the database knows of one file."""

    id: int
    stamp: str
    settled: bool
    digest: bytes | None
    left_out: str | None


class ScannedFile(Struct, frozen=True):
    """What was just read from one file."""

    name: str
    stamp: str
    settled: bool
    digest: bytes | None = None
    left_out: str | None = None
    text: str = ""
    symbols: Sequence[Symbol] = ()


class IndexCache:
    """The open database. Each method is one query or one change; changes within `open_transaction` commit together."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._transaction_number = 0

    @contextmanager
    def open_transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.execute("UPDATE turns SET turn = turn + 1")
            self._transaction_number = self.read_transaction_number()
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def read_transaction_number(self) -> int:
        """Return the number of the newest transaction; each has a higher one than those before it."""
        return self._connection.execute("SELECT turn FROM turns").fetchone()[0]

    def read_cache_id(self) -> str:
        """Return a random id that tells this cache file from any that replaces it."""
        return self._connection.execute("SELECT birth FROM turns").fetchone()[0]

    def count_indexed_files(self) -> int:
        return self._connection.execute("SELECT count(*) FROM files WHERE left_out IS NULL").fetchone()[0]

    def count_left_out(self) -> dict[str, int]:
        rows = self._connection.execute(
            "SELECT left_out, count(*) FROM files WHERE left_out IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return dict(rows.fetchall())

    def load_files_in(self, folder: str) -> dict[str, IndexedFile]:
        """Load what is known of the files directly in this folder, by name."""
        rows = self._connection.execute(
            "SELECT name, id, stamp, settled, digest, left_out FROM files WHERE folder = ?", (os.fsencode(folder),)
        )
        return {
            os.fsdecode(name): IndexedFile(id, stamp, bool(settled), *rest) for name, id, stamp, settled, *rest in rows
        }

    def list_folders(self) -> list[str]:
        return [os.fsdecode(row[0]) for row in self._connection.execute("SELECT DISTINCT folder FROM files")]

    def store_file(self, folder: str, file: ScannedFile) -> None:
        """Replace what was known of the file."""
        values = (os.fsencode(file.name), file.stamp, file.settled, file.digest, file.left_out)
        try:
            row = self._connection.execute(
                "INSERT INTO files (folder, name, stamp, settled, digest, left_out, turn) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (folder, name) DO UPDATE SET stamp = excluded.stamp, settled = excluded.settled,"
                " digest = excluded.digest, left_out = excluded.left_out, turn = excluded.turn RETURNING id",
                (os.fsencode(folder), *values, self._transaction_number),
            ).fetchone()
            self._clear_file(row[0])
            if file.left_out is None:
                self._connection.execute(
                    "INSERT INTO words (rowid, held) VALUES (?, ?)", (row[0], " ".join(sorted(find_words(file.text))))
                )
                self._connection.executemany(
                    "INSERT INTO symbols VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (
                            row[0],
                            symbol.name,
                            symbol.name.casefold(),
                            *(getattr(symbol, column) for column in SYMBOL_COLUMNS),
                        )
                        for symbol in file.symbols
                    ],
                )
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                raise IndexFull from error
            raise

    def update_stamp(self, id: int, stamp: str, settled: bool) -> None:
        """Record that the content is unchanged under a new stamp."""
        self._connection.execute("UPDATE files SET stamp = ?, settled = ? WHERE id = ?", (stamp, settled, id))

    def forget_files(self, folder: str, names: Iterable[str] | None, transaction_number: int) -> None:
        """Forget these files of a folder (None for all), except those stored after that transaction."""
        encoded_names = None if names is None else {os.fsencode(name) for name in names}
        rows = self._connection.execute(
            "SELECT id, name FROM files WHERE folder = ? AND turn <= ?", (os.fsencode(folder), transaction_number)
        )
        for id, name in rows.fetchall():
            if encoded_names is None or name in encoded_names:
                self._clear_file(id)
                self._connection.execute("DELETE FROM files WHERE id = ?", (id,))

    def _clear_file(self, id: int) -> None:
        self._connection.execute("DELETE FROM words WHERE rowid = ?", (id,))
        self._connection.execute("DELETE FROM symbols WHERE file = ?", (id,))

    def query_rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        """Run a query for a search. `sql` is never built from user input."""
        return self._connection.execute(sql, values).fetchall()


@contextmanager
def open_cache(path: Path, deadline: SearchDeadline | None = None) -> Generator[IndexCache]:
    """Open the cache, or create it. A query that exceeds its deadline raises `sqlite3.OperationalError`."""
    if not _is_ours(path):
        _make_cache(path)
    connection = _connect(path)
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            raise sqlite3.DatabaseError("made by another version")
        if deadline is not None:
            connection.set_progress_handler(lambda: deadline.is_over, STEPS_BETWEEN_CLOCK_CHECKS)
        yield IndexCache(connection)
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA max_page_count = {MAX_PAGES}")
        return connection
    except BaseException:
        connection.close()
        raise


def _is_ours(path: Path) -> bool:
    """Is it a plain file of this account's, not empty, with one name? A link in its place could lead anywhere."""
    try:
        stats = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(stats.st_mode) and stats.st_uid == os.geteuid() and stats.st_nlink == 1 and stats.st_size > 0


def _make_cache(path: Path) -> None:
    with _lock_cache(path):
        if _is_ours(path):  # another process was first
            return
        # Built under another name and moved into place complete, so that nobody opens half a database.
        draft = path.with_suffix(".new")
        _remove_files(draft)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = _connect(draft)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA.strip().split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        finally:
            connection.close()
        # Otherwise SQLite would take an earlier database's log for part of this one.
        _remove_files(path)
        draft.rename(path)


def read_identity(path: Path) -> tuple[int, int] | None:
    """Identify the file at this path; None if there is none."""
    try:
        stats = path.lstat()
    except FileNotFoundError:
        return None
    return stats.st_dev, stats.st_ino


def discard_cache(path: Path, identity: tuple[int, int] | None) -> None:
    """Delete this cache, unless another has taken its place."""
    with _lock_cache(path):
        if read_identity(path) == identity:
            _remove_files(path)


def _remove_files(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


@contextmanager
def _lock_cache(path: Path) -> Generator[None]:
    """Hold off other processes that would create or delete this cache."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path.with_suffix(".lock"), flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
