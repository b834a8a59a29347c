"""Does the index stay beneath the workspace, whole and bounded, whatever lies there and whatever is done to it?"""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_server.guards.index import refresh
from mcp_server.model.index import IndexRequest
from mcp_server.model.results import Code, Refusal
from tests.guards.index.ground import IndexWorkspace, held


@pytest.fixture
def ground(tmp_path: Path) -> IndexWorkspace:
    (tmp_path / "work").mkdir()
    return IndexWorkspace(tmp_path / "work")


def test_nothing_from_elsewhere_gets_in(ground: IndexWorkspace) -> None:
    outside = ground.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle outside\n")
    (ground.root / "link.txt").symlink_to(outside / "secret.txt")
    (ground.root / "folder").symlink_to(outside)
    (ground.root / "loop").symlink_to(ground.root)
    os.link(outside / "secret.txt", ground.root / "hard.txt")
    os.mkfifo(ground.root / "pipe.txt")
    ground.put(".menugate/note.txt", "needle in our own state\n")
    ground.put(".git/note.txt", "needle of git\n")
    ground.put("real.txt", "needle\n")
    assert ground.find("needle") == [("real.txt", 1)]
    with pytest.raises(Refusal):
        ground.hits("needle", path="folder")
    assert set(ground.held()) == {"./real.txt", "./hard.txt"}
    assert ground.held()["./hard.txt"][1] == "not readable"


def test_a_folder_swapped_for_a_link_between_two_looks_leads_nowhere(ground: IndexWorkspace) -> None:
    ground.put("a/b.txt", "needle\n")
    outside = ground.root.parent / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("needle outside\n")
    ground.refresh()
    (ground.root / "a").rename(ground.root.parent / "gone")
    (ground.root / "a").symlink_to(outside)
    assert ground.hits("needle").total == 0
    assert ground.find("needle") == []


def test_what_is_no_text_of_a_sensible_length_is_left_out_and_counted(ground: IndexWorkspace) -> None:
    ground.put("big.txt", "needle\n" + "x" * (1 << 20))
    ground.put("just.txt", ("needle\n" + "x" * (1 << 20))[: 1 << 20])
    ground.put("binary.txt", b"needle\0")
    ground.put(".env", "TOKEN=needle\n")
    ground.put("config/id_rsa", "needle\n")
    ground.put("wide.txt", "\ufeffneedle\n".encode("utf-16-le"))
    ground.put("bad.txt", b"needle \xff\xfe\n")
    assert ground.find("needle") == [("bad.txt", 1), ("just.txt", 1), ("wide.txt", 1)]
    assert ground.refresh().left_out == {"over 1 MB": 1, "binary": 1, "usually secret": 2}
    known = ground.held()
    assert "TOKEN" not in str(known)


def test_a_name_that_is_no_text_is_shown_and_found(ground: IndexWorkspace) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (ground.root / name).write_text("needle\n")
    ((path, line),) = ground.find("needle")
    path.encode()
    assert (path, line) == ("caf\\xe9.txt", 1)


def test_two_million_signs_in_one_line_take_no_time(ground: IndexWorkspace) -> None:
    ground.put("a.py", ("needle " + "a" * 900_000 + " ") + "b = (" * 20_000)
    started = time.process_time()
    assert ground.find("needle") == [("a.py", 1)]
    assert time.process_time() - started < 5


def test_more_files_than_the_index_holds_stay_out_and_are_counted(
    ground: IndexWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "MAX_FILES", 60)
    monkeypatch.setattr(refresh, "MAX_FOLDER_ENTRIES", 40)
    for number in range(30):
        for folder in "abc":
            ground.put(f"{folder}/{number}.txt", "needle\n")
    for number in range(50):
        ground.put(f"wide/{number}.txt", "needle\n")
    now = ground.refresh()
    # So many at once are read before it is counted anew.
    assert now.files <= 60 + refresh.FILES_PER_TRANSACTION
    assert now.left_out["in folders that are too large or cannot be read"] == 1
    assert ground.hits("needle").total == now.files


def test_a_search_stops_when_its_time_is_up(ground: IndexWorkspace) -> None:
    for number in range(50):
        ground.put(f"{number}.txt", "needle\n" * 100)
    ground.refresh()
    found = ground.hits("needle", seconds=0)
    assert (found.complete, found.total) == (False, 0)
    assert ground.index.find_symbols(IndexRequest("x", seconds=0)).total == 0


def obey(cache: Path, sql: str) -> None:
    link = sqlite3.connect(cache)
    link.executescript(sql)
    link.close()


def lead_to(cache: Path, target: Path) -> None:
    cache.unlink()
    cache.symlink_to(target)


SPOILT: dict[str, Callable[[Path], object]] = {
    "rubbish": lambda cache: cache.write_bytes(b"no database at all" * 100),
    "cut": lambda cache: cache.write_bytes(cache.read_bytes()[:5000]),
    "edited": lambda cache: cache.write_bytes(cache.read_bytes().replace(b"CREATE TABLE files", b"CREATE TABLE fi1es")),
    "a table gone": lambda cache: obey(cache, "DROP TABLE symbols"),
    "another version": lambda cache: obey(cache, "PRAGMA user_version = 77"),
    "gone": lambda cache: cache.unlink(),
    "a link out": lambda cache: lead_to(cache, Path("/etc/passwd")),
    "a link in": lambda cache: lead_to(cache, cache.parent.parent / "planted.db"),
    "another name": lambda cache: (cache.parent.parent / "twin.md").hardlink_to(cache),
    "empty": lambda cache: cache.write_bytes(b""),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_cache_that_is_not_what_it_was_is_made_anew(ground: IndexWorkspace, spoil: Callable[[Path], object]) -> None:
    ground.put("a.py", "def needle(): pass\n")
    assert ground.find("needle") == [("a.py", 1)]
    spoil(ground.cache)
    assert ground.find("needle") == [("a.py", 1)]
    assert [one.name for one in ground.symbols("needle").shown] == ["needle"]
    assert not ground.cache.is_symlink()
    assert ground.cache.stat().st_mode & 0o777 == 0o600
    assert ground.cache.stat().st_nlink == 1
    assert not (ground.root / "planted.db").exists()


def test_a_cache_that_cannot_be_kept_is_a_problem_with_a_way_out(ground: IndexWorkspace) -> None:
    ground.put("a.py", "needle\n")
    ground.cache.mkdir()
    with pytest.raises(Refusal) as refused:
        ground.refresh()
    assert refused.value.problem.code is Code.TOOL_FAILED
    assert "grep" in refused.value.problem.way_out


def test_a_writer_that_does_not_end_is_waited_for_and_named(
    ground: IndexWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp_server.guards.index import cache

    ground.put("a.py", "needle\n")
    ground.refresh()
    monkeypatch.setattr(cache, "WAIT_SECONDS", 0.05)
    other = sqlite3.connect(ground.cache, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ground.put("b.py", "needle\n")
    with pytest.raises(Refusal) as refused:
        ground.refresh()
    assert refused.value.problem.code is Code.BUSY
    # What is known can be asked for all the same.
    assert ground.hits("needle").total == 1
    other.close()
    assert len(ground.find("needle")) == 2


def test_a_new_cache_is_not_thrown_away_for_the_fault_of_an_old_one(ground: IndexWorkspace) -> None:
    """Two processes that find it damaged at once would else take each other's new one away, again and again."""
    from mcp_server.guards.index.cache import discard_cache, read_identity

    ground.put("a.py", "needle\n")
    ground.refresh()
    damaged = read_identity(ground.cache)
    ground.cache.rename(ground.cache.with_suffix(".damaged"))
    ground.refresh()
    discard_cache(ground.cache, damaged)
    assert read_identity(ground.cache) not in (None, damaged)
    discard_cache(ground.cache, read_identity(ground.cache))
    assert read_identity(ground.cache) is None


def test_many_threads_share_one_index(ground: IndexWorkspace) -> None:
    for number in range(60):
        ground.put(f"{number}.txt", "needle\n")
    found: list[int] = []

    def look(number: int) -> None:
        ground.put(f"own{number}.txt", f"mine{number}\n")
        ground.refresh()
        found.append(ground.hits(f"mine{number}").total)

    threads = [threading.Thread(target=look, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [1] * 8


OTHER = """
import sys
from pathlib import Path
from tests.guards.index.ground import IndexWorkspace
ground = IndexWorkspace(Path(sys.argv[1]))
for turn in range(12):
    for number in range(10):
        ground.put(f"{sys.argv[2]}{number}/{turn}.txt", f"{sys.argv[2]}word turn{turn}\\n")
    if turn > 3:
        for number in range(10):
            (ground.root / f"{sys.argv[2]}{number}/{turn - 4}.txt").unlink()
    if turn == 6:
        ground.cache.unlink(missing_ok=True)
    ground.refresh()
    found = ground.hits(f"{sys.argv[2]}word turn{turn}")
    assert found.total == 10, (turn, found)
print("fine")
"""


def test_two_processes_keep_one_index(ground: IndexWorkspace) -> None:
    """Each writes, deletes and looks; one takes the cache away in between. Each finds what it wrote, at once."""
    house = Path(__file__).parents[3]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", OTHER, str(ground.root), name],
            cwd=house,
            env={**os.environ, "PYTHONPATH": str(house)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in "ab"
    ]
    assert [one.communicate(timeout=60)[0].strip().split("\n")[-1] for one in both] == ["fine", "fine"]
    ground.refresh()
    scratch = ground.state / "scratch.db"
    other = ground.another(scratch)
    assert other.refresh(other.get_refresh_mark(), 60).complete
    assert held(ground.cache) == held(scratch)
