"""Where are the wire's secrets, and who can read them?"""

import stat
import threading
from pathlib import Path

import pytest

from mcp_server.model.results import Refusal
from mcp_server.state.keys import load_or_create_secret, write_bearer_token


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    first = load_or_create_secret(path)
    assert len(first) == 43
    assert load_or_create_secret(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    load_or_create_secret(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_processes_that_start_together_use_one_key(tmp_path: Path) -> None:
    found: set[str] = set()
    start = threading.Barrier(8)

    def take() -> None:
        start.wait()
        found.add(load_or_create_secret(tmp_path / "b.key"))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["b.key"]


def test_a_token_that_came_with_the_folder_opens_nothing(tmp_path: Path) -> None:
    shown = tmp_path / "http.token"
    shown.write_text("known-to-its-sender-known-to-its-sender-kno")
    made = write_bearer_token(tmp_path, tmp_path / "work", shown)
    assert shown.read_text().strip() == made != "known-to-its-sender-known-to-its-sender-kno"
    assert stat.S_IMODE(shown.stat().st_mode) == 0o600
    assert write_bearer_token(tmp_path, tmp_path / "work", shown) == made, "it stays the same while its key does"
    assert write_bearer_token(tmp_path, tmp_path / "other", shown) != made


def test_a_link_in_the_tokens_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    shown = tmp_path / "http.token"
    shown.symlink_to(tmp_path / "victim")
    write_bearer_token(tmp_path, tmp_path / "work", shown)
    assert (tmp_path / "victim").read_text() == "mine"
    assert not shown.is_symlink()


@pytest.mark.parametrize("data", [b"", b"short", b"\xd6" * 43, b"x" * 44, b"x" * 43 + b"\n\n"])
def test_what_is_no_key_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "c.key"
    path.write_bytes(data)
    with pytest.raises(Refusal, match="does not contain a key"):
        load_or_create_secret(path)
