"""Can a model take a change from the worktree into a commit, through the server, and no further than it may?"""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.pipe import pipe

LOCAL = [
    "git_status",
    "git_diff_unstaged",
    "git_diff_staged",
    "git_diff",
    "git_commit",
    "git_add",
    "git_reset",
    "git_log",
    "git_create_branch",
    "git_checkout",
    "git_show",
    "git_branch_list",
]


def git(folder: Path, *words: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, check=True, text=True).stdout


@pytest.fixture
def repository(workspace: Path, home: Path) -> Path:
    (home / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    git(workspace, "init", "-q", "-b", "main")
    return workspace


def text(answer: dict[str, Any], fine: bool = True) -> str:
    said = answer["content"][0]["text"]
    assert answer["isError"] is not fine, said
    return said


def test_from_a_change_to_a_commit(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "trusted") as one:
        one.hello()
        text(one.call("menu_enter", mode="git"))
        assert [name for name in one.names() if name.startswith("git_")] == LOCAL
        assert "new          notes.md" in text(one.call("git_status"))
        assert one.call("git_add", files=["."])["structuredContent"]["total"] == 2
        text(one.call("git_commit", message="First\n\nAll of it."))
        (repository / "notes.md").write_text("# Notes\n\nsecond\n")
        shown = text(one.call("git_diff_unstaged"))
        assert "-first\n+second" in shown
        assert shown.startswith("⟦untrusted text from the git repository in the workspace")
        text(one.call("git_create_branch", branch_name="more"))
        assert "WRONG_STATE" in text(one.call("git_checkout", branch_name="more"), fine=False)
        text(one.call("git_checkout", branch_name="more", keep_changes=True))
        text(one.call("git_add", files=["notes.md"]))
        text(one.call("git_commit", message="Second"))
        text(one.call("git_checkout", branch_name="main"))
        assert (repository / "notes.md").read_text() == "# Notes\n\nfirst\n"
        assert "Second" in text(one.call("git_show", revision="more"))
    assert git(repository, "log", "--format=%an %s", "more") == "Grace Hopper Second\nGrace Hopper First\n"
    assert git(repository, "status", "--porcelain") == ""


def test_a_lower_profile_stages_and_asks_before_it_commits(repository: Path, home: Path) -> None:
    with pipe(repository, home) as one:
        one.hello()
        text(one.call("menu_enter", mode="git"))
        assert {"git_commit", "git_checkout"} & set(one.names()) == {"git_commit"}
        text(one.call("git_add", files=["notes.md"]))
        assert "APPROVAL_REQUIRED" in text(one.call("git_commit", message="x"), fine=False)
        assert "PROFILE_TOO_LOW" in text(one.call("git_checkout", branch_name="main"), fine=False)
        text(one.call("git_reset"))
    assert git(repository, "status", "--porcelain", "-uall") == "?? notes.md\n?? src/main.py\n"
