"""Where are an account's keys kept, and are they moved once and by nobody else?"""

from pathlib import Path

import pytest

from mcp_server.state.account import (
    NAME,
    STATE_BELOW_HOME,
    KeyFolder,
    KeyFolders,
    choose_key_folder,
    is_own_folder,
    is_writable,
    move_keys,
)
from mcp_server.state.engine.chain import LedgerKey


@pytest.fixture
def places(tmp_path: Path) -> KeyFolders:
    for name in ("home", "system", "run"):
        (tmp_path / name).mkdir()
    return KeyFolders(None, tmp_path / "home", tmp_path / "system" / "0", tmp_path / "run" / "0")


def test_the_first_that_can_be_written_is_chosen_and_nothing_is_made(places: KeyFolders, tmp_path: Path) -> None:
    chosen = choose_key_folder(places)
    assert chosen == KeyFolder(tmp_path / "home" / STATE_BELOW_HOME / NAME)
    assert not (tmp_path / "home" / ".local").exists()
    assert chosen.lifetime == ""


def test_the_next_is_chosen_where_it_cannot(places: KeyFolders, tmp_path: Path) -> None:
    (tmp_path / "home").rmdir()
    chosen = choose_key_folder(places)
    assert chosen.folder == tmp_path / "system" / "0"
    assert chosen.skipped == (tmp_path / "home" / STATE_BELOW_HOME / NAME,)
    (tmp_path / "system").rmdir()
    (tmp_path / "system").write_text("a file")
    (tmp_path / "run" / "0").mkdir()
    chosen = choose_key_folder(places)
    assert (chosen.folder, chosen.volatile) == (tmp_path / "run" / "0" / NAME, True)
    assert "machine restarts" in chosen.lifetime
    (tmp_path / "run" / "0").rmdir()
    assert choose_key_folder(places).folder is None
    assert "this process alone" in choose_key_folder(places).lifetime


def test_what_was_named_comes_first(places: KeyFolders, tmp_path: Path) -> None:
    named = KeyFolders(tmp_path / "named", places.home, places.system, places.session)
    assert choose_key_folder(named).folder == tmp_path / "named"


def test_a_link_or_a_file_is_no_folder_of_ours(tmp_path: Path, places: KeyFolders) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert is_own_folder(tmp_path / "home")
    assert is_own_folder(tmp_path / "nowhere")
    assert not is_own_folder(tmp_path / "file")
    assert not is_own_folder(tmp_path / "link")
    assert not is_writable(tmp_path / "file" / "below", places)


def test_keys_are_moved_once(tmp_path: Path) -> None:
    old, new = tmp_path / "old", KeyFolder(tmp_path / "deep" / "new")
    account = LedgerKey.load_or_create(old).account
    assert move_keys(old, new, ()) is True
    assert new.folder is not None
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
    assert move_keys(old, KeyFolder(None), ()) is False
    assert move_keys(old, KeyFolder(tmp_path / "run", volatile=True), ()) is True
    assert old.exists(), "what is emptied when the machine starts again gets a copy"
