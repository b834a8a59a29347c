"""Does the log get its length before it is needed, and does the engine mind?"""

import shutil
import sqlite3
from pathlib import Path

import anyio
import pytest

from mcp_server.state.engine import disk
from mcp_server.state.engine.sqlite import Database
from mcp_server.state.engine.transaction import INSERT_ROW
from mcp_server.state.writer import BUSY_COMMITS
from tests.clients.pipe import pipe
from tests.clients.served import PATIENCE
from tests.state.parts import Hands, Place, intent


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def opened(path: Path) -> Database:
    link = Database(path)
    link.make_durable()
    link.cursor.execute("CREATE TABLE IF NOT EXISTS ledger (seq INTEGER PRIMARY KEY, body TEXT, hash TEXT)")
    return link


def append(link: Database, seq: int) -> None:
    link.begin()
    link.cursor.execute(INSERT_ROW, (seq, "x" * 1000, "y"))
    link.cursor.execute("COMMIT")


def test_rows_before_and_behind_the_zeros_are_there_after_a_crash(tmp_path: Path) -> None:
    link = opened(tmp_path / "state.db")
    for seq in range(1, 4):
        append(link, seq)
    link.begin()
    steps = 1
    while disk.lengthen_log(link.path):
        steps += 1
    link.rollback()
    assert steps > 1
    assert log_of(link.path).stat().st_size == disk.FULL_LENGTH
    for seq in range(4, 9):
        append(link, seq)
    assert log_of(link.path).stat().st_size == disk.FULL_LENGTH
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in (link.path, log_of(link.path)):
        shutil.copy(file, crashed / file.name)
    link.close()
    found = sqlite3.connect(crashed / "state.db")
    assert found.execute("SELECT count(*), max(seq) FROM ledger").fetchone() == (8, 8)
    assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found.close()


def test_there_is_nothing_to_do_without_a_log_or_where_it_is_long_enough(tmp_path: Path) -> None:
    assert not disk.lengthen_log(tmp_path / "state.db")
    log_of(tmp_path / "state.db").write_bytes(b"")
    assert not disk.lengthen_log(tmp_path / "state.db"), "nobody has begun it"
    log_of(tmp_path / "state.db").write_bytes(bytes(disk.FULL_LENGTH))
    assert not disk.lengthen_log(tmp_path / "state.db")


def test_a_log_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    log_of(tmp_path / "state.db").symlink_to(tmp_path / "precious")
    assert not disk.lengthen_log(tmp_path / "state.db")
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.anyio
async def test_a_busy_server_lays_it_out(place: Place, hands: Hands) -> None:
    store = await hands.open(place)
    for _ in range(BUSY_COMMITS):
        await store.record_intent(intent())
    with anyio.fail_after(PATIENCE):
        while log_of(place.file).stat().st_size < disk.FULL_LENGTH:
            await store.wait_until_ready()
    with place.reader() as reader:
        assert reader.verify().ok


def test_a_server_that_writes_little_lays_nothing_out(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("somebody")
        one.call("think", content="x")
        log = log_of(workspace / ".menugate" / "state.db")
        for _ in range(3):
            one.call("menu_list")
        assert 0 < log.stat().st_size < disk.FULL_LENGTH / 2
