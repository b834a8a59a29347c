"""Is one file opened, locked and put aside, and is every error of the engine said in words?"""

import errno
import sqlite3
from pathlib import Path

import pytest

from mcp_server.model.results import Code, Refusal
from mcp_server.state.engine.sqlite import (
    Database,
    DatabaseLock,
    find_file_damage,
    is_damage_error,
    path_from_url,
    refusal_from_error,
    set_aside,
)


def test_only_a_file_is_an_address(tmp_path: Path) -> None:
    assert path_from_url(f"sqlite:///{tmp_path}/state.db") == tmp_path / "state.db"
    for url in ("postgresql://host/db", "sqlite://", "sqlite:///", "state.db"):
        with pytest.raises(Refusal) as refused:
            path_from_url(url)
        assert refused.value.problem.code is Code.STORE_UNAVAILABLE


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    one, other = (DatabaseLock(tmp_path / "state.lock") for _ in range(2))
    one.acquire()
    with pytest.raises(Refusal) as refused:
        other.acquire(0)
    assert refused.value.problem.code is Code.BUSY
    one.release()
    other.acquire(0)
    other.release()
    for lock in (one, other):
        lock.close()


def test_a_new_file_is_its_owners_alone_and_a_reader_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = Database(path)
    database.begin()
    database.cursor.execute("CREATE TABLE t (a)")
    database.cursor.execute("COMMIT")
    assert database.tables() == {"t"}
    assert path.stat().st_mode & 0o777 == 0o600
    database.close()
    reader = Database(path, readonly=True)
    assert reader.tables() == {"t"}
    with pytest.raises(sqlite3.OperationalError):
        reader.cursor.execute("CREATE TABLE u (a)")
    reader.close()
    assert find_file_damage(path) is None


def test_what_was_taken_back_is_not_there(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    database.begin()
    database.cursor.execute("CREATE TABLE t (a)")
    database.rollback()
    assert database.tables() == frozenset()
    database.close()


def test_a_file_that_is_none_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 1000)
    with pytest.raises(sqlite3.DatabaseError) as broken:
        Database(tmp_path / "state.db").tables()
    assert is_damage_error(broken.value)
    assert not is_damage_error(ValueError())


def named(name: str, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("the engine's words")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (named("SQLITE_FULL"), Code.STORE_FULL),
        (OSError(errno.ENOSPC, "no room"), Code.STORE_FULL),
        (named("SQLITE_BUSY_SNAPSHOT"), Code.BUSY),
        (named("SQLITE_CANTOPEN"), Code.STORE_UNAVAILABLE),
        (PermissionError(errno.EACCES, "no"), Code.STORE_UNAVAILABLE),
        (named("SQLITE_CONSTRAINT", sqlite3.IntegrityError), None),
        (ValueError("ours"), None),
    ],
    ids=repr,
)
def test_an_error_of_the_engine_is_said_and_a_fault_of_ours_is_not_hidden(
    error: BaseException, code: Code | None, tmp_path: Path
) -> None:
    refusal = refusal_from_error(error, tmp_path / "state.db")
    assert (refusal and refusal.problem.code) == code


def test_a_file_is_put_aside_with_what_belongs_to_it(tmp_path: Path) -> None:
    for suffix in ("", "-wal"):
        (tmp_path / f"state.db{suffix}").write_text(f"kept{suffix}")
    name = set_aside(tmp_path / "state.db", "20261119")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}-wal"]
    assert (tmp_path / f"{name}-wal").read_text() == "kept-wal"
