"""In which folder does this account keep a workspace's state, when another account's lies there already?"""

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from mcp_server.state.engine.chain import ANCHOR, Anchor, LedgerKey
from mcp_server.state.engine.sqlite import DatabaseLock
from mcp_server.state.location import (
    ACCOUNTS,
    STATE,
    find_all_state_folders,
    find_foreign_state,
    find_state_folder,
    is_known_state,
    is_sealed_by,
    make_private_folder,
    read_anchor_bytes,
    remember_state,
)


def seal(folder: Path, secrets: Path) -> LedgerKey:
    key = LedgerKey.load_or_create(secrets)
    make_private_folder(folder)
    (folder / STATE).write_text("")
    (folder / ANCHOR).write_bytes(Anchor(1, "a" * 64, 1, 0).format_line(key))
    return key


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work" / ".menugate"


def test_an_empty_workspace_is_ours(top: Path, tmp_path: Path) -> None:
    assert find_state_folder(top, tmp_path / "keys") == top
    assert not (tmp_path / "keys").exists(), "who only looks makes no key"


def test_what_our_key_sealed_is_ours_and_what_it_did_not_is_anothers(top: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "keys", tmp_path / "theirs"
    key = seal(top, mine)
    assert is_sealed_by(key, top)
    assert find_state_folder(top, mine) == top
    beside = find_state_folder(top, theirs)
    assert beside.parent == top / ACCOUNTS
    assert beside.name == LedgerKey.load_or_create(theirs).account
    assert find_foreign_state(beside) == top / STATE
    assert find_foreign_state(top) is None


def test_where_we_worked_before_is_ours_whatever_it_is_sealed_with(top: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "keys", tmp_path / "theirs"
    LedgerKey.load_or_create(mine)
    remember_state(mine, top)
    assert is_known_state(mine, top)
    seal(top, theirs)
    assert find_state_folder(top, mine) == top, "that it is exchanged is noticed when it is opened"


def test_every_folder_beside_is_known(top: Path, tmp_path: Path) -> None:
    seal(top, tmp_path / "keys")
    (top / ACCOUNTS / "abc").mkdir(parents=True)
    (top / ACCOUNTS / "link").symlink_to(tmp_path)
    assert find_all_state_folders(top, ()) == (top, top / ACCOUNTS / "abc")


def test_an_anchor_that_is_no_file_holds_nobody_up(tmp_path: Path) -> None:
    import os

    assert read_anchor_bytes(tmp_path / "nowhere") is None
    os.mkfifo(tmp_path / "pipe")
    assert read_anchor_bytes(tmp_path / "pipe") == b""
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert read_anchor_bytes(tmp_path / "link") is None


def test_folders_are_closed_to_others(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_what_a_process_of_ours_is_making_at_this_moment_is_ours(top: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    LedgerKey.load_or_create(keys)
    make_private_folder(top)
    lock = DatabaseLock((top / STATE).with_suffix(".lock"))
    with ThreadPoolExecutor(1) as pool:
        lock.acquire()
        (top / STATE).write_text("")
        second = pool.submit(find_state_folder, top, keys)
        # Time enough to answer, for a process that does not wait for the seal.
        wait([second], timeout=0.2)
        seal(top, keys)
        lock.close()
        assert second.result() == top
