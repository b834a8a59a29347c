"""How is one SQLite file opened, locked, written and closed? Everything specific to SQLite is here, and nowhere else.

Every write transaction, and the close, runs under an advisory lock of our own: SQLite before 3.51.3 can corrupt a WAL
file that two processes write and checkpoint at the same moment, and its own lock is unfair by hundreds of milliseconds.
Open the database file only through SQLite: closing any other handle to it drops the locks of the whole process.
"""

import contextlib
import errno
import fcntl
import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.state.engine.disk import RESERVE_BYTES
from mcp_server.state.engine.transaction import LOCK_SECONDS

COURTESY_SECONDS = 0.05
CACHE_KIB = 256
CHECKED_BYTES = 16 << 20
# WAL needs memory shared between its processes, which these file systems do not offer between machines.
NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "glusterfs"),
    *("fuse.glusterfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs"),
)


def make_refusal(code: Code, message: str, way_out: str = "") -> Refusal:
    return Refusal(Problem(code, message, way_out))


def path_from_url(url: str) -> Path:
    """The file behind `sqlite:///relative` or `sqlite:////absolute`."""
    engine, _, path = url.partition(":///")
    if engine != "sqlite" or not path:
        raise make_refusal(
            Code.STORE_UNAVAILABLE,
            f"menugate cannot keep its state in `{url.partition('://')[0]}`.",
            "Name a file: sqlite:////path/to/state.db",
        )
    return Path(path).absolute()


def find_network_share(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system the path lies on; None if it is local or unknown."""
    try:
        lines = (Path("/proc/self/mountinfo").read_text("utf-8", "replace") if mounts is None else mounts).splitlines()
    except OSError:
        return None
    real, best, found = str(path.resolve()) + "/", "", None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = fields[4].encode("utf-8", "replace").decode("unicode_escape").rstrip("/") + "/"
        if real.startswith(point) and len(point) >= len(best):
            best, found = point, after.split(" ")[0]
    return found if found in NETWORK else None


class DatabaseLock:
    """One writer at a time, across all processes. Polled, so that a stopped holder costs a deadline, not a hang.

    A polling process would starve beside a busy one, so every caller first takes the turn, behind which the busy
    process then has to wait. The turn is a courtesy, not a guarantee: a process stopped while holding it causes a
    delay, nothing worse.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file, self._turn = (os.open(one, flags, 0o600) for one in (path, path.with_suffix(".turn")))

    def acquire(self, seconds: float = LOCK_SECONDS) -> None:
        now = time.monotonic()
        in_turn = _poll_lock(self._turn, now + min(seconds, COURTESY_SECONDS))
        try:
            if not _poll_lock(self._file, now + seconds):
                raise make_busy_refusal()
        finally:
            if in_turn:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    def release(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)
        os.close(self._turn)


def wait_for_lock(path: Path) -> None:
    """Wait until nobody holds this lock, if it can be looked at."""
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            _poll_lock(file, time.monotonic() + LOCK_SECONDS)
    finally:
        os.close(file)


def _poll_lock(file: int, deadline: float) -> bool:
    pause = 0.0001
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 1.2, 0.002)
        else:
            return True


def make_busy_refusal() -> Refusal:
    return make_refusal(
        Code.BUSY,
        "another process has locked this workspace's state; nothing ran.",
        "Try again. If it stays locked, look for a suspended menugate process: `fuser .menugate/state.lock` names it.",
    )


class Database:
    """One connection, used by one thread. Reading works beside any number of writers."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        if not readonly and not path.exists():
            # Private from the first moment; SQLite gives the files beside it the same mode.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        address = f"file:{quote(str(path))}?mode={'ro' if readonly else 'rw'}"
        self.connection = sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
        self.cursor = self.connection.cursor()
        status = path.stat()
        self._identity = (status.st_dev, status.st_ino)
        self.version = -1
        """The file's version when the last transaction began; another one means that somebody else wrote in between."""

    def make_durable(self) -> None:
        """Make what was acknowledged survive a killed process and a power cut."""
        (mode,) = self.cursor.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise make_refusal(
                Code.STORE_UNAVAILABLE,
                f"the file system of `{self.path.parent}` cannot keep the state safely.",
                "Put the state on a local disk.",
            )
        self.cursor.execute("PRAGMA synchronous = FULL")
        # What is deleted was meant to be gone, such as the lines about calls.
        self.cursor.execute("PRAGMA secure_delete = ON").fetchone()
        # Rows are appended and hardly ever read again; the usual two megabytes of cache would hold what nobody asks
        # for.
        self.cursor.execute(f"PRAGMA cache_size = -{CACHE_KIB}")

    def begin(self) -> None:
        self.cursor.execute("BEGIN IMMEDIATE")
        self.version = self.cursor.execute("PRAGMA data_version").fetchone()[0]

    def rollback(self) -> None:
        # A full disk rolls back by itself, and a second rollback would be an error.
        if self.connection.in_transaction:
            self.cursor.execute("ROLLBACK")

    def make_full_refusal(self) -> Refusal:
        return make_full_refusal(self.path)

    def tables(self) -> frozenset[str]:
        return frozenset(name for (name,) in self.cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def format_field_expression(self, name: str, body: str = "body") -> str:
        """The expression for one field of a row's text; null if tampering made the text unreadable."""
        return f"CASE WHEN json_valid({body}) THEN json_extract({body}, '$.{name}') END"

    def find_damage(self, thorough: bool = False) -> str | None:
        """What is wrong with the file, as far as a quick look tells; the chain check tells the rest."""
        try:
            if self.cursor.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
                return "it contains statements that menugate did not put there"
            tables = ["posture", "sessions", "workspace", "checkpoints"]
            large = not thorough and self.path.stat().st_size > CHECKED_BYTES and self.tables() >= set(tables)
            for check in [f"quick_check({name})" for name in tables] if large else ["quick_check(1)"]:
                (found,) = self.cursor.execute(f"PRAGMA {check}").fetchone()
                if found != "ok":
                    return str(found)
        except sqlite3.DatabaseError as error:
            if not is_damage_error(error):
                raise
            return str(error)
        return None

    def data_version(self) -> int:
        """Changes when another connection commits."""
        return self.cursor.execute("PRAGMA data_version").fetchone()[0]

    def is_intact(self) -> bool:
        """Is the open file still the one at its path? It may have been deleted or replaced."""
        try:
            status = self.path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def close(self) -> None:
        # After an interruption in the middle of a statement, the connection is already closed.
        with contextlib.suppress(sqlite3.ProgrammingError):
            self.cursor.close()
        self.connection.close()


def find_file_damage(path: Path) -> str | None:
    """What is wrong with a file that is only read; None if nothing is, or if it cannot be read."""
    try:
        link = Database(path, readonly=True)
    except (OSError, sqlite3.Error):
        return None
    try:
        return link.find_damage(thorough=True)
    except sqlite3.DatabaseError:
        return None
    finally:
        link.close()


def is_damage_error(error: BaseException) -> bool:
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def refusal_from_error(error: BaseException, path: Path) -> Refusal | None:
    """Translate an engine error for the caller; None if it is a bug of ours."""
    if isinstance(error, Refusal):
        return error
    name: str = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL" or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return make_full_refusal(path)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return make_busy_refusal()
    if name.startswith("SQLITE_IOERR") and _get_free_bytes(path) < RESERVE_BYTES:
        return make_full_refusal(path)
    if isinstance(error, OSError) or (isinstance(error, sqlite3.DatabaseError) and not _is_programming_error(error)):
        return make_refusal(
            Code.STORE_UNAVAILABLE,
            f"the state file `{path}` cannot be used: {error}.",
            "Check that the folder exists and is writable; a damaged file is set aside at the next start.",
        )
    return None


def _is_programming_error(error: BaseException) -> bool:
    return isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError)


def make_full_refusal(path: Path) -> Refusal:
    return make_refusal(
        Code.STORE_FULL,
        f"the disk with `{path.parent}` is full, so the call could not be recorded; nothing ran.",
        "Free some space there; menugate continues by itself.",
    )


def _get_free_bytes(path: Path) -> int:
    try:
        status = os.statvfs(path.parent)
    except OSError:
        return RESERVE_BYTES
    return status.f_bavail * status.f_frsize


def set_aside(path: Path, stamp: str) -> str:
    """Move a file and SQLite's files beside it away, losing nothing; return its new name."""
    name = f"{path.name}.corrupt-{stamp}"
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(path.with_name(name + suffix))
    return name
