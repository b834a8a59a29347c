"""Is a long result kept whole, and never written where somebody else pointed?"""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.guards.spill import ONE_DAY_NS, Spill, spill_long_text


@pytest.fixture
def spill(tmp_path: Path) -> Spill:
    return Spill(tmp_path / "results")


def test_what_fits_is_shown_and_nothing_is_written(spill: Spill) -> None:
    assert spill_long_text("short", 5, spill, "grep") == ("short", None)
    assert not spill.folder.exists()


def test_the_rest_is_kept_whole_and_the_next_call_is_named(spill: Spill) -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    shown, path = spill_long_text(text, 3000, spill, "grep")
    assert path is not None and path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(shown) <= 3000
    head, _, rest = shown.partition("\n[... ")
    assert text.startswith(head) and "line 9999" in rest
    call: dict[str, int | str] = json.loads(shown[shown.rindex("Read {") + 5 : -1])
    assert call["file_path"] == str(path)
    assert text.splitlines()[int(call["offset"]) - 1].startswith(head.splitlines()[-1])


@given(st.text(st.sampled_from("ab \n"), min_size=0, max_size=5000), st.integers(600, 3000))
def test_never_more_than_asked_for(tmp_path_factory: pytest.TempPathFactory, text: str, most: int) -> None:
    shown, path = spill_long_text(text, most, Spill(tmp_path_factory.getbasetemp() / "spilled"), "t")
    assert len(shown) <= most
    assert (path is None) == (len(text) <= most)
    assert path is None or path.read_bytes().decode() == text


def test_equal_names_stand_beside_each_other(spill: Spill) -> None:
    first, second = spill.keep_text("one", "bash"), spill.keep_text("two", "bash")
    assert (first.read_text(), second.read_text()) == ("one", "two")
    assert first != second


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", "a\0b", "x" * 500, ".", "-rf", "ü"])
def test_no_name_leads_out_of_the_folder(spill: Spill, name: str) -> None:
    path = spill.keep_text("text", name)
    assert path.parent == spill.folder and path.resolve().parent == spill.folder.resolve()


def test_half_characters_are_written_out(spill: Spill) -> None:
    assert spill.keep_text("half \ud83d", "t").read_text() == "half \\ud83d"


def test_a_planted_link_is_neither_followed_nor_written_over(spill: Spill, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    spill.folder.mkdir(mode=0o700)
    (spill.folder / "bash.txt").symlink_to(victim)
    (spill.folder / "bash-2.txt").symlink_to(tmp_path / "not-there")
    path = spill.keep_text("text", "bash")
    assert path.name == "bash-3.txt" and victim.read_text() == "mine"
    assert not (tmp_path / "not-there").exists()


def test_a_folder_swapped_for_a_link_is_not_used(spill: Spill, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    spill.folder.symlink_to(tmp_path / "elsewhere")
    shown, path = spill_long_text("x" * 5000, 1000, spill, "bash")
    assert path is None and "could not be kept" in shown
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_others_can_write_to_is_not_used(spill: Spill) -> None:
    spill.folder.mkdir()
    spill.folder.chmod(0o777)
    assert spill_long_text("x" * 5000, 1000, spill, "bash")[1] is None


def test_sweeping_takes_what_is_old_and_ours(spill: Spill, tmp_path: Path) -> None:
    old, young = spill.keep_text("old", "old"), spill.keep_text("young", "young")
    other = spill.folder / "other.db"
    other.write_text("")
    (spill.folder / "link.txt").symlink_to(tmp_path)
    now = 10 * ONE_DAY_NS
    for path, age in ((old, ONE_DAY_NS + 1), (young, ONE_DAY_NS), (other, 5 * ONE_DAY_NS)):
        os.utime(path, ns=(now - age, now - age))
    assert spill.remove_old_files(ONE_DAY_NS, now) == 1
    assert not old.exists() and young.exists() and other.exists()


def test_sweeping_where_nothing_was_ever_kept(spill: Spill) -> None:
    assert spill.remove_old_files(ONE_DAY_NS, 0) == 0
