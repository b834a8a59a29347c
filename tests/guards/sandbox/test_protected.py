"""Which places of a workspace are kept from a child, and are they found again when something changes?"""

from pathlib import Path

import pytest

from mcp_server.guards.sandbox.protected import (
    MAX_PLACES,
    PathWatch,
    classify_name,
    find_protected_paths,
    hide_whole_folders,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("name", "is_secret", "is_protected"),
    [(".env", True, False), (".mcp.json", False, True), ("key.pem", True, False), ("notes.md", False, False)],
)
def test_what_a_name_says(name: str, is_secret: bool, is_protected: bool) -> None:
    assert classify_name(name) == (is_secret, is_protected)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (".env", "deep/.env", ".mcp.json", "src/a.py", "node_modules/x/.env", ".menugate/.env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".env")
    return tmp_path


def test_secrets_what_others_obey_and_repositories_are_found(root: Path) -> None:
    found = find_protected_paths(root, frozenset({".menugate"}), {})
    assert found.secret == (".env", "deep/.env")
    assert found.guarded == (".mcp.json",)
    assert found.repositories == ("sub/.git",)
    assert not found.overfull


async def test_what_comes_later_is_found_too(root: Path) -> None:
    watch = PathWatch(root, frozenset())
    before = await watch.scan_protected_paths()
    (root / "src" / "key.pem").write_text("x")
    after = await watch.scan_protected_paths()
    assert set(after.secret) - set(before.secret) == {"src/key.pem"}


def test_the_folders_with_the_most_are_hidden_whole() -> None:
    hidden = ["top", "a/1", "a/2", "a/3", "b/1", "b/2"]
    assert sorted(hide_whole_folders(hidden, 0)) == sorted(hidden)
    assert sorted(hide_whole_folders(hidden, 2)) == ["a", "b/1", "b/2", "top"]
    assert sorted(hide_whole_folders(hidden, 3)) == ["a", "b", "top"]
    assert len(hide_whole_folders([f"a/{number}" for number in range(MAX_PLACES)], 5)) == 1
