"""Is a path told to be tracked exactly where git tracks it, whatever the index looks like?"""

import subprocess
from pathlib import Path

import pytest

from mcp_server.guards.git_index import Tracking, find_tracking
from mcp_server.guards.jail import Jail

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always")
TRACKED = ("a", "folder8/x", "folder8/xyz", "folder8.txt", "src/längere/ein name.py")


def git(folder: Path, *words: str) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *IDENTITY, *words], cwd=folder, env=env, check=True, capture_output=True)


def make_repository(folder: Path, version: int = 2, *flags: str) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", *flags)
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
    git(workspace, "init", "-q")
    (workspace / ".git" / "index").write_bytes(index)
    assert find_tracking(Jail(workspace), "a") is Tracking.UNKNOWN


def answers_as_in_git(jail: Jail, top: str) -> bool:
    """In a worktree with a clean checkout of `TRACKED`, and a file that nobody added."""
    (jail.root / top / "folder8" / "xy").write_text("2\n")
    tracked = {find_tracking(jail, f"{top}/{name}") for name in (*TRACKED, "folder8")}
    return tracked == {Tracking.TRACKED} and find_tracking(jail, f"{top}/folder8/xy") is Tracking.UNTRACKED


def make_commit(folder: Path) -> Path:
    make_repository(folder)
    git(folder, "commit", "-q", "-m", "one")
    return folder


def test_a_linked_worktree_has_an_index_of_its_own(workspace: Path) -> None:
    main = make_commit(workspace / "main")
    git(main, "worktree", "add", "-q", "../linked")
    git(workspace / "linked", "rm", "-q", "--cached", "a")
    jail = Jail(workspace)
    assert find_tracking(jail, "linked/a") is Tracking.UNTRACKED
    assert find_tracking(jail, "main/a") is Tracking.TRACKED
    git(workspace / "linked", "add", "a")
    assert answers_as_in_git(jail, "linked")


def test_a_submodule_has_an_index_of_its_own(workspace: Path) -> None:
    inner = make_commit(workspace / "inner")
    outer = make_commit(workspace / "outer")
    git(outer, "submodule", "--quiet", "add", "../inner", "deps/inner")
    git(outer, "commit", "-q", "-m", "two")
    jail = Jail(workspace)
    assert answers_as_in_git(jail, "outer/deps/inner")
    assert find_tracking(jail, "outer/deps/inner") is Tracking.TRACKED
    # And where the repository with the submodule is itself a linked worktree.
    git(outer, "worktree", "add", "-q", "../second")
    git(workspace / "second", "submodule", "--quiet", "update", "--init")
    assert (workspace / "second" / "deps" / "inner" / ".git").is_file()
    assert answers_as_in_git(jail, "second/deps/inner")
    git(inner, "rm", "-q", "--cached", "a")
    assert find_tracking(jail, "second/deps/inner/a") is Tracking.TRACKED


def test_a_submodule_with_its_own_git_folder_is_one_too(workspace: Path) -> None:
    outer = make_commit(workspace / "outer")
    make_commit(outer / "inner")
    git(outer, "submodule", "--quiet", "add", "./inner", "inner")
    assert answers_as_in_git(Jail(workspace), "outer/inner")


@pytest.mark.parametrize("how", ["linked worktree", "link", "nowhere", "no pointer", "no repository", "a loop"])
def test_a_git_folder_that_cannot_be_read_tells_nothing(workspace: Path, how: str) -> None:
    """Neither does the repository around it, which git would not ask."""
    make_repository(workspace)
    inner = workspace / "inner"
    if how == "linked worktree":
        git(make_commit(workspace.parent / "elsewhere"), "worktree", "add", "-q", str(inner))
    else:
        inner.mkdir()
        (inner / "a").write_text("1\n")
    if how == "link":
        (inner / ".git").symlink_to(make_commit(workspace.parent / "elsewhere") / ".git")
    elif how == "a loop":
        (inner / ".git").symlink_to(".git")
    elif how != "linked worktree":
        texts = {"nowhere": "gitdir: /elsewhere\n", "no pointer": "../.git\n", "no repository": "gitdir: ../src\n"}
        (inner / ".git").write_text(texts[how])
    assert find_tracking(Jail(workspace), "inner/a") is Tracking.UNKNOWN


def test_a_link_to_a_git_folder_in_the_workspace_is_followed(workspace: Path) -> None:
    make_repository(workspace / "main")
    (workspace / "main" / ".git").rename(workspace / "kept")
    (workspace / "main" / ".git").symlink_to("../kept")
    assert answers_as_in_git(Jail(workspace), "main")


def test_a_folder_that_only_has_the_name_is_no_repository(workspace: Path) -> None:
    make_repository(workspace)
    (workspace / "folder8" / ".git").mkdir()
    assert find_tracking(Jail(workspace), "folder8/x") is Tracking.TRACKED


def test_a_repository_with_longer_names_of_objects_is_read(workspace: Path) -> None:
    make_repository(workspace / "main", 2, "--object-format=sha256")
    assert answers_as_in_git(Jail(workspace), "main")


@pytest.mark.parametrize("kind", ["split", "sparse"])
def test_part_of_an_index_tells_nothing(workspace: Path, kind: str) -> None:
    make_commit(workspace)
    if kind == "split":
        git(workspace, "update-index", "--split-index")
        (workspace / "later").write_text("3\n")
        git(workspace, "add", "later")
    else:
        git(workspace, "sparse-checkout", "set", "--sparse-index", "src")
        (workspace / "folder8").mkdir(exist_ok=True)
    for name in ("a", "later", "folder8/x"):
        assert find_tracking(Jail(workspace), name) is Tracking.UNKNOWN
