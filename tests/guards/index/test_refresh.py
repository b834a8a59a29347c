"""Is what the index knows what lies on the disk, after whatever was done there?"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.guards.index.ground import IndexWorkspace, held
from tests.sizes import scale

FILES = st.sampled_from(["a.py", "b.py", "src/a.py", "src/b.md", "src/deep/c.py", "build/x.py"])
FOLDERS = st.sampled_from(["src", "src/deep", "build"])
TEXTS = st.sampled_from(
    ["", "def one(): pass\n", "def two(): pass\n", "class Three:\n    x = 1\n", "\0binary", "é" * 9]
)
IGNORES = st.sampled_from(["", "build\n", "*.md\n", "src/*\n!src/deep\n", "a.py\n"])


class Edits(RuleBasedStateMachine):
    """Whatever happens, one look later the index is what an index made from nothing is."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.ground = IndexWorkspace(Path(self.folder))
        # What is written through a link lands there, so it is a file of the test's own.
        handle, self.outside = tempfile.mkstemp()
        os.write(handle, b"x = 1\n")
        os.close(handle)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)
        Path(self.outside).unlink()

    @rule(path=FILES, text=TEXTS)
    def write(self, path: str, text: str) -> None:
        if not (self.ground.root / path).is_dir():
            self.ground.put(path, text)

    @rule(path=FILES, text=TEXTS, data=st.data())
    def write_under_the_old_times(self, path: str, text: str, data: Any) -> None:
        """As an unpacked archive does, or whoever wants to be overlooked."""
        file = self.ground.root / path
        if file.is_file():
            before = file.stat()
            file.write_bytes(text.encode().ljust(before.st_size, b" ")[: before.st_size])
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(path=FILES)
    def delete(self, path: str) -> None:
        (self.ground.root / path).unlink(missing_ok=True)

    @rule(path=FOLDERS)
    def delete_folder(self, path: str) -> None:
        shutil.rmtree(self.ground.root / path, ignore_errors=True)

    @rule(one=FILES, other=FILES)
    def rename(self, one: str, other: str) -> None:
        if (self.ground.root / one).is_file():
            (self.ground.root / other).parent.mkdir(parents=True, exist_ok=True)
            (self.ground.root / one).replace(self.ground.root / other)

    @rule(one=FOLDERS, other=st.sampled_from(["moved", "src/moved"]))
    def rename_folder(self, one: str, other: str) -> None:
        here, there = self.ground.root / one, self.ground.root / other
        if here.is_dir() and there.parent.is_dir() and not there.exists() and one not in other:
            here.rename(there)

    @rule(text=IGNORES, folder=st.sampled_from(["", "src/"]))
    def ignore(self, text: str, folder: str) -> None:
        if (self.ground.root / folder).is_dir():
            self.ground.put(f"{folder}.gitignore", text)

    @rule(path=FILES)
    def link(self, path: str) -> None:
        place = self.ground.root / path
        if place.parent.is_dir() and not place.exists() and not place.is_symlink():
            place.symlink_to(self.outside)

    @rule()
    def throw_the_cache_away(self) -> None:
        self.ground.cache.unlink(missing_ok=True)

    @rule()
    def a_newer_process(self) -> None:
        self.ground.index = self.ground.another()

    @invariant()
    def the_index_is_what_one_made_from_nothing_is(self) -> None:
        self.ground.refresh()
        scratch = Path(self.folder) / ".menugate" / "scratch.db"
        other = self.ground.another(scratch)
        assert other.refresh(other.get_refresh_mark(), 60).complete
        known = self.ground.held()
        assert known == held(scratch)
        for path in (scratch, *scratch.parent.glob("scratch.db-*")):
            path.unlink(missing_ok=True)


TestEdits = pytest.mark.heavy(Edits.TestCase)
TestEdits.settings = settings(max_examples=scale(10, 2), stateful_step_count=10, deadline=None)


def test_a_change_within_the_grain_of_the_clock_is_seen(tmp_path: Path) -> None:
    """Two changes may bear one stamp where a disk's clock is coarse: what was just changed is read again."""
    ground = IndexWorkspace(tmp_path)
    ground.clock.ahead_ns = 0
    file = ground.put("a.txt", "one\n")
    ground.refresh()
    assert ground.refresh().read == 1
    ground.clock.ahead_ns = 10**10
    assert [ground.refresh().read for _ in range(2)] == [1, 0]
    assert file.exists()


def test_what_did_not_change_is_not_opened_again(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    for number in range(30):
        ground.put(f"{number}.txt", "word\n")
    assert ground.refresh().read == 30
    assert ground.refresh().read == 0
    ground.put("7.txt", "other\n")
    now = ground.refresh()
    assert (now.read, now.looked, now.files) == (1, 30, 30)
    assert ground.find("other") == [("7.txt", 1)]


def test_a_slice_of_time_is_kept_to_and_the_next_one_goes_on(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    for number in range(400):
        ground.put(f"{number % 7}/{number}.txt", f"word number{number}\n")
    mark, looks = ground.index.get_refresh_mark(), 1
    now = ground.index.refresh(mark, 0)
    assert not now.complete
    while not now.complete:
        before, now = now, ground.index.refresh(mark, 0)
        looks += 1
        assert now.looked >= before.looked
        assert now.looked - before.looked <= 60
    assert looks > 8
    assert (now.files, now.looked) == (400, 400)
    assert len(ground.hits("word").shown) == 400


def test_who_comes_while_a_round_goes_on_gets_one_that_began_later(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    ground.put("a/a.txt", "one\n")
    ground.put("b/b.txt", "one\n")
    early = ground.index.get_refresh_mark()
    ground.index.refresh(early, 0)
    ground.put("a.txt", "late\n")
    late = ground.index.get_refresh_mark()
    while not ground.index.refresh(late, 0).complete:
        pass
    assert [hit.path for hit in ground.hits("late").shown] == ["a.txt"]


def test_a_line_that_is_gone_is_not_shown_even_before_the_index_hears_of_it(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    file = ground.put("a.txt", "here is a needle\n")
    ground.refresh()
    file.write_text("nothing\n")
    assert ground.hits("needle").total == 0
    file.unlink()
    assert ground.hits("needle").total == 0


def test_a_file_under_its_old_size_and_times_is_seen_to_be_another(tmp_path: Path) -> None:
    ground = IndexWorkspace(tmp_path)
    file = ground.put("a.txt", "needle\n")
    assert ground.find("needle") == [("a.txt", 1)]
    before = file.stat()
    file.write_text("thread\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert ground.find("thread") == [("a.txt", 1)]
