"""Does a question count what git would delete or discard, as git itself would?"""

import os
from pathlib import Path

import pytest

from mcp_server.guards.jail import Jail
from mcp_server.guards.loss_sizes import measure_loss
from mcp_server.guards.path_sizes import measure_path
from mcp_server.model.tools import Loss
from tests.guards.test_git_index import git


@pytest.fixture
def repository(workspace: Path) -> Path:
    for name in ("src/same", "src/touched", "src/longer", "src/alike", "src/gone", "top"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("12345\n")
    (workspace / "link").symlink_to("src")
    git(workspace, "init", "-q")
    git(workspace, "add", ".")
    os.utime(workspace / "src" / "touched", (1, 1))
    (workspace / "src" / "longer").write_text("123456\n")
    (workspace / "src" / "alike").write_text("54321\n")
    os.utime(workspace / "src" / "alike", (1, 1))
    (workspace / "src" / "gone").unlink()
    for name in ("build/a", "build/deep/b", "src/new"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("1\n")
    return workspace


@pytest.mark.parametrize(
    ("loss", "files"),
    [
        (Loss("discards", "."), 2),
        (Loss("discards", "src"), 2),
        (Loss("discards", "src/alike"), 1),
        (Loss("discards", "src/same"), None),
        (Loss("discards", "src/gone"), None),
        (Loss("discards", "a-branch"), None),
        (Loss("resets", "src"), 2),
        (Loss("cleans all", "."), 3),
        (Loss("cleans all", "src"), 1),
        (Loss("cleans", "build"), 2),
        (Loss("deletes in", "build"), 2),
        (Loss("deletes in", "missing"), None),
    ],
)
def test_what_git_would_change_is_counted(repository: Path, loss: Loss, files: int | None) -> None:
    measured = measure_loss(Jail(repository), loss)
    assert (measured and measured.size.files) == files


def test_without_a_repository_git_changes_nothing(workspace: Path) -> None:
    (workspace / "a").write_text("1\n")
    assert measure_loss(Jail(workspace), Loss("cleans", ".")) is None
    assert measure_loss(Jail(workspace), Loss("discards", "a")) is None


def test_a_submodule_and_a_worktree_are_repositories_of_their_own(workspace: Path) -> None:
    for name in ("inner", "outer"):
        (workspace / name).mkdir()
        git(workspace / name, "init", "-q")
        (workspace / name / "a").write_text("1\n")
        git(workspace / name, "add", "a")
        git(workspace / name, "commit", "-qm", "one")
    git(workspace / "outer", "submodule", "add", "-q", "../inner", "libs/inner")
    git(workspace / "outer", "worktree", "add", "-q", "../side")
    jail = Jail(workspace)
    for path, tracked in (("outer/libs", 0), ("outer/libs/inner", 0), ("side", 0)):
        size = measure_path(jail, path, follow=False)
        assert size is not None and size.has_repository and size.tracked == tracked, path
    git(workspace / "outer", "submodule", "deinit", "-f", "libs/inner")
    size = measure_path(jail, "outer/libs", follow=False)
    assert size is not None and size.has_repository and size.tracked == 0
