"""Where are an account's keys kept, and are they moved once and by nobody else?"""

from pathlib import Path

import pytest

from mcp_server.state.account import (
    NAME,
    STATE_BELOW_HOME,
    KeyFolder,
    is_own_folder,
    is_usable,
    list_key_folders,
    move_keys,
)
from mcp_server.state.engine.chain import LedgerKey


@pytest.fixture
def places(tmp_path: Path) -> list[KeyFolder]:
    for name in ("home", "system", "run"):
        (tmp_path / name).mkdir()
    home, session = tmp_path / "home", tmp_path / "run" / "0"
    return [
        KeyFolder(home / STATE_BELOW_HOME / NAME, home),
        KeyFolder(tmp_path / "system" / "0"),
        KeyFolder(session / NAME, session, volatile=True),
    ]


def test_the_first_that_can_be_written_is_chosen_and_nothing_is_made(places: list[KeyFolder], tmp_path: Path) -> None:
    assert next(filter(is_usable, places), None) == places[0]
    assert not (tmp_path / "home" / ".local").exists()


def test_the_next_is_chosen_where_it_cannot(places: list[KeyFolder], tmp_path: Path) -> None:
    (tmp_path / "home").rmdir()
    assert next(filter(is_usable, places), None) == places[1]
    (tmp_path / "system").rmdir()
    (tmp_path / "system").write_text("a file")
    (tmp_path / "run" / "0").mkdir()
    assert next(filter(is_usable, places), None) == places[2]
    (tmp_path / "run" / "0").rmdir()
    assert next(filter(is_usable, places), None) is None


def test_what_was_named_comes_first(tmp_path: Path) -> None:
    usual = list_key_folders(None)
    assert not any(one.named for one in usual)
    named = tmp_path / "named"
    assert list_key_folders(named) == (KeyFolder(named, named=True), *usual)
    assert next(filter(is_usable, list_key_folders(named))) == KeyFolder(named, named=True)
    last = list_key_folders(usual[-1].folder)[0]
    assert (last.named, last.volatile, last.base) == (True, True, usual[-1].base), "what holds of it holds still"


@pytest.mark.usefixtures("places")
def test_a_link_or_a_file_is_no_folder_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert is_own_folder(tmp_path / "home")
    assert is_own_folder(tmp_path / "nowhere")
    assert not is_own_folder(tmp_path / "file")
    assert not is_own_folder(tmp_path / "link")
    assert not is_usable(KeyFolder(tmp_path / "file" / "below"))
    assert not is_usable(KeyFolder(tmp_path / "link"))
    assert is_usable(KeyFolder(tmp_path / "link", named=True))


def test_keys_are_moved_once(tmp_path: Path) -> None:
    old, new = tmp_path / "old", KeyFolder(tmp_path / "deep" / "new")
    account = LedgerKey.load_or_create(old).account
    assert move_keys(old, new, ()) is True
    moved = LedgerKey.load(new.folder)
    assert moved is not None
    assert moved.account == account
    assert not old.exists()
    LedgerKey.load_or_create(old)
    assert move_keys(old, new, ()) is False, "there are keys already"


def test_keys_that_somebody_else_could_have_put_there_are_not(tmp_path: Path) -> None:
    old, new = tmp_path / "work" / "old", KeyFolder(tmp_path / "new")
    LedgerKey.load_or_create(old)
    assert move_keys(old, new, (tmp_path / "work",)) is False
    old.chmod(0o755)
    assert move_keys(old, new, ()) is False
    old.chmod(0o700)
    assert move_keys(old, KeyFolder(tmp_path / "run", volatile=True), ()) is True
    assert old.exists(), "what is emptied when the machine starts again gets a copy"
