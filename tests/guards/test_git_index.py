"""Is a path told to be tracked exactly where git tracks it, whatever the index looks like?"""

import subprocess
from pathlib import Path

import pytest

from mcp_server.guards.git_index import Tracking, find_tracking
from mcp_server.guards.jail import Jail

TRACKED = ("a", "folder8/x", "folder8/xyz", "folder8.txt", "src/längere/ein name.py")


def git(folder: Path, *words: str) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)


def make_repository(folder: Path, version: int) -> Path:
    git(folder, "init", "-q")
    for name in TRACKED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1\n")
    git(folder, "add", ".")
    (folder / "new").write_text("2\n")
    if version > 2:
        # An entry with further flags.
        git(folder, "add", "--intent-to-add", "new")
    git(folder, "update-index", "--index-version", str(version))
    (folder / "folder8" / "xy").write_text("2\n")
    return folder


@pytest.mark.parametrize("version", [2, 3, 4])
def test_each_kind_of_index_is_read(workspace: Path, version: int) -> None:
    jail = Jail(make_repository(workspace, version))
    assert {find_tracking(jail, name) for name in (*TRACKED, "folder8", "src")} == {Tracking.TRACKED}
    assert {find_tracking(jail, name) for name in ("folder8/xy", "folder", "missing")} == {Tracking.UNTRACKED}
    assert find_tracking(jail, "new") is (Tracking.TRACKED if version > 2 else Tracking.UNTRACKED)


def test_the_nearest_repository_decides(workspace: Path) -> None:
    (workspace / "inner").mkdir()
    make_repository(workspace, 2)
    git(workspace / "inner", "init", "-q")
    (workspace / "inner" / "a").write_text("1\n")
    assert find_tracking(Jail(workspace), "inner/a") is Tracking.UNTRACKED


def test_without_a_repository_it_is_in_none(workspace: Path) -> None:
    (workspace / "a").write_text("1\n")
    assert find_tracking(Jail(workspace), "a") is Tracking.OUTSIDE


@pytest.mark.parametrize(
    "index",
    [
        b"",
        b"DIRC",
        b"XXXX\0\0\0\2\0\0\0\1" + b"\0" * 80,
        b"DIRC\0\0\0\x09\0\0\0\1" + b"\0" * 80,
        b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"\0" * 8,
        b"DIRC\0\0\0\2\0\0\0\1" + b"x" * 62 + b"name without an end",
        b"DIRC\0\0\0\4\0\0\0\1" + b"x" * 62 + b"\xff" * 20,
    ],
)
def test_an_index_that_is_none_tells_nothing(workspace: Path, index: bytes) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "index").write_bytes(index)
    assert find_tracking(Jail(workspace), "a") is Tracking.UNKNOWN


def test_a_git_folder_elsewhere_tells_nothing(workspace: Path) -> None:
    (workspace / ".git").write_text("gitdir: /elsewhere\n")
    assert find_tracking(Jail(workspace), "a") is Tracking.UNKNOWN
