"""Does a repository stay where it says it is? No part of one, and no path in it, lies outside the workspace."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_server.model.processes import Processes
from mcp_server.model.results import Code, Done, Problem
from tests.tools.git.bare import Bare
from tests.tools.git.ground import TOOLS, GitWorkbench, git
from tests.tools.git.poison import CALLS, template

SECRET = "OUTSIDE-THE-WORKSPACE"


@pytest.fixture
def bench(tmp_path: Path, opened: Callable[[Path], GitWorkbench]) -> GitWorkbench:
    root = tmp_path / "work"
    root.mkdir()
    template(root / "repo")
    outside = tmp_path / "outside"
    template(outside)
    (outside / "hidden.txt").write_text(SECRET)
    git(outside, "add", ".")
    git(outside, "commit", "-q", "-m", SECRET)
    bench = opened(root)
    bench.bare = cast(Processes, Bare(root))
    return bench


def refused(bench: GitWorkbench, repo: str = "repo", code: Code = Code.PATH_REFUSED) -> None:
    """By every tool, and without a word of what lies outside."""
    for tool, arguments in CALLS:
        ending = bench.problem(tool, repo_path=repo, **arguments)
        assert ending.code is code, (tool, ending)
        assert SECRET not in ending.text


def test_a_pointer_to_a_repository_outside(bench: GitWorkbench, tmp_path: Path) -> None:
    for number, pointer in enumerate((f"{tmp_path}/outside/.git", "../../outside/.git")):
        folder = bench.root / f"pointing{number}"
        folder.mkdir()
        (folder / ".git").write_text(f"gitdir: {pointer}\n")
        refused(bench, folder.name)


def test_a_pointer_that_points_to_nothing(bench: GitWorkbench) -> None:
    folder = bench.root / "pointing"
    folder.mkdir()
    for words in ("gitdir: nowhere\n", "gitdir: \n", "nothing\n", ""):
        (folder / ".git").write_text(words)
        refused(bench, "pointing")


def test_a_link_in_the_place_of_a_repository(bench: GitWorkbench, tmp_path: Path) -> None:
    folder = bench.root / "linking"
    folder.mkdir()
    (folder / ".git").symlink_to(tmp_path / "outside" / ".git")
    refused(bench, "linking")
    (bench.root / "link").symlink_to("repo")
    refused(bench, "link")


@pytest.mark.parametrize("part", ["objects", "refs", "config", "HEAD", "index", "hooks", "info", "logs"])
def test_a_part_that_is_a_link_to_outside(bench: GitWorkbench, tmp_path: Path, part: str) -> None:
    own = bench.root / "repo" / ".git" / part
    own.rename(own.with_name("before"))
    own.symlink_to(tmp_path / "outside" / ".git" / part)
    refused(bench)


def test_a_linked_worktree_whose_repository_is_outside(bench: GitWorkbench, tmp_path: Path) -> None:
    git(tmp_path / "outside", "worktree", "add", "-q", str(bench.root / "linked"), "other")
    refused(bench, "linked")
    folder = bench.root / "own"
    folder.mkdir()
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "commondir").write_text(f"{tmp_path}/outside/.git\n")
    refused(bench, "own")


def test_history_borrowed_from_outside(bench: GitWorkbench, tmp_path: Path) -> None:
    listed = bench.root / "repo" / ".git" / "objects" / "info" / "alternates"
    for line in (f"{tmp_path}/outside/.git/objects", "../../../../outside/.git/objects", '"quoted"'):
        listed.write_text(f"{line}\n")
        refused(bench)
    # Borrowed from a neighbour that borrows from outside.
    neighbour = bench.root / "neighbour"
    template(neighbour)
    (neighbour / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/outside/.git/objects\n")
    listed.write_text(f"{neighbour}/.git/objects\n")
    refused(bench)
    (neighbour / ".git" / "objects" / "info" / "alternates").unlink()
    assert isinstance(bench.call("git_status", repo_path="repo"), Done)


def test_a_worktree_that_is_said_to_be_elsewhere(bench: GitWorkbench, tmp_path: Path) -> None:
    git(bench.root / "repo", "config", "core.worktree", str(tmp_path / "outside"))
    for tool, arguments in CALLS:
        ending = bench.done(tool, repo_path="repo", **arguments)
        assert SECRET not in ending.text
        assert "hidden.txt" not in ending.text
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == [".git", "a.txt", "c.txt", "hidden.txt"]
    assert (bench.root / "repo" / "d.txt").exists()


def test_nothing_above_the_workspace_is_a_repository(bench: GitWorkbench, tmp_path: Path) -> None:
    template(tmp_path / "above")
    (tmp_path / "above" / ".git").rename(tmp_path / ".git")
    (bench.root / "plain").mkdir()
    refused(bench, "plain", Code.NOT_FOUND)
    told = bench.problem("git_status", repo_path="plain")
    assert "start menugate in that folder" in told.way_out


@pytest.mark.parametrize("path", ["..", "/", "/etc", "repo/../..", "~", "nowhere", "repo/a.txt", ".menugate"])
def test_a_folder_that_is_none_here(bench: GitWorkbench, path: str) -> None:
    for tool, arguments in CALLS[:1]:
        told = bench.problem(tool, repo_path=path, **arguments)
        assert told.code in (Code.PATH_REFUSED, Code.NOT_FOUND), told


def test_a_bare_repository_among_the_files_is_none(bench: GitWorkbench) -> None:
    git(bench.root, "clone", "-q", "--bare", "repo", "bare")
    assert bench.problem("git_status", repo_path="bare").code is Code.NOT_FOUND
    git(bench.root / "repo", "clone", "-q", "--bare", ".", "inner")
    git(bench.root / "repo" / "inner", "config", "core.bare", "true")
    assert bench.data("git_status", repo_path="repo/inner")["branch"] == "main"


def test_a_subfolder_finds_its_repository_and_names_files_from_there(bench: GitWorkbench) -> None:
    folder = bench.root / "repo" / "sub" / "deep"
    folder.mkdir(parents=True)
    (folder / "new.txt").write_text("new\n")
    told = bench.data("git_add", repo_path="repo/sub", files=["deep/new.txt", "../a.txt", str(folder)])
    assert [one["path"] for one in told["files"]] == ["a.txt", "sub/deep/new.txt"]


@pytest.mark.parametrize(
    "path", ["../outside/hidden.txt", "../../outside", "/etc/passwd", ".git/config", ".git", "~/x"]
)
def test_no_file_from_outside_is_staged_or_shown(bench: GitWorkbench, path: str) -> None:
    calls: dict[str, dict[str, Any]] = {
        "git_add": {"files": [path]},
        "git_diff_unstaged": {"paths": [path]},
        "git_diff": {"target": "HEAD", "paths": [path]},
        "git_show": {"revision": "HEAD", "paths": [path]},
        "git_log": {"paths": [path]},
    }
    for tool, arguments in calls.items():
        assert bench.problem(tool, repo_path="repo", **arguments).code in (Code.PATH_REFUSED, Code.NOT_FOUND), tool
    assert git(bench.root / "repo", "diff", "--cached", "--name-only") == b"c.txt\n"


def test_a_link_out_of_the_repository_is_staged_as_a_link(bench: GitWorkbench, tmp_path: Path) -> None:
    (bench.root / "repo" / "link").symlink_to(tmp_path / "outside" / "hidden.txt")
    (bench.root / "repo" / "folder").symlink_to(tmp_path / "outside")
    told = bench.done("git_add", repo_path="repo", files=["link", "folder"])
    assert SECRET not in bench.done("git_diff_staged", repo_path="repo").text
    assert told.data and [one["path"] for one in told.data["files"]] == ["folder", "link"]
    assert bench.problem("git_add", repo_path="repo", files=["folder/hidden.txt"]).code is Code.PATH_REFUSED


OPTIONS = ("--output=PWN", "-h", "--ext-diff", "--exec=touch PWN", "-", "--", "-f", "--upload-pack=touch PWN")


@pytest.mark.parametrize("word", OPTIONS)
def test_no_name_is_taken_for_an_option(bench: GitWorkbench, word: str) -> None:
    top = bench.root / "repo"
    head = git(top, "rev-parse", "HEAD")
    if "/" not in word and " " not in word:
        (top / ".git" / "refs" / "heads" / word).write_bytes(head)
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("git_diff", {"target": word}),
        ("git_diff", {"target": f"{word}..{word}"}),
        ("git_show", {"revision": word}),
        ("git_log", {"revision": word}),
        ("git_create_branch", {"branch_name": word}),
        ("git_create_branch", {"branch_name": "new", "base_branch": word}),
        ("git_checkout", {"branch_name": word, "keep_changes": True}),
    )
    for tool, arguments in calls:
        assert bench.problem(tool, repo_path="repo", **arguments).code is Code.INVALID_ARGUMENTS, tool
    assert bench.problem("git_add", repo_path="repo", files=[word]).code is Code.NOT_FOUND
    assert bench.problem("git_log", repo_path="repo", start_timestamp=word).code is Code.INVALID_ARGUMENTS
    assert isinstance(bench.call("git_branch_list", repo_path="repo"), Done)
    assert git(top, "rev-parse", "HEAD") == head
    for folder, _, files in os.walk(bench.root.parent):
        assert not [name for name in files if name.startswith("PWN")], folder


def test_pathspecs_are_names(bench: GitWorkbench) -> None:
    top = bench.root / "repo"
    for name in ("*", ":(exclude)a.txt", ":!a.txt"):
        (top / name).write_text("x\n")
        told = bench.data("git_add", repo_path="repo", files=[name])
        assert [one["path"] for one in told["files"]] == [name]
    assert git(top, "diff", "--name-only") == b"a.txt\n"


def test_every_tool_is_called_here() -> None:
    assert {tool for tool, _ in CALLS} == set(TOOLS)


def test_what_a_branch_would_write_into_our_own_state_is_refused(bench: GitWorkbench) -> None:
    root = bench.root
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    git(root, "switch", "-q", "-c", "hostile")
    blob = git(root, "hash-object", "-w", "--stdin", data=b"forged").decode().strip()
    git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},.menugate/state.db")
    git(root, "commit", "-q", "-m", "hostile")
    git(root, "update-index", "--force-remove", ".menugate/state.db")
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    told = bench.problem("git_checkout", branch_name="hostile")
    assert told.code is Code.PATH_REFUSED
    assert not (root / ".menugate" / "state.db").exists()
    assert isinstance(told, Problem)
