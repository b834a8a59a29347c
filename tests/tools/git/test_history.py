"""Does the log say who did what and when, and does nothing written in it do anything?"""

from pathlib import Path
from typing import Any, cast

import pytest

from mcp_server.model.processes import Processes
from mcp_server.model.results import Code
from mcp_server.model.text import HARMFUL
from tests.tools.git.bare import Bare
from tests.tools.git.ground import GitWorkbench, Opened, git, paths


def test_the_log_in_parts(bench: GitWorkbench) -> None:
    for number in range(12):
        git(bench.root, "commit", "-q", "--allow-empty", "-m", f"step {number}")
    told = bench.data("git_log")
    assert (len(told["commits"]), told["total"], told["truncated"]) == (10, 14, True)
    rest = bench.data("git_log", **told["next"])
    subjects = git(bench.root, "log", "--format=%s").decode().split("\n")[:-1]
    assert [one["subject"] for one in rest["commits"]] == subjects[10:]
    assert rest["next"] is None
    assert bench.data("git_log", paths=["c.txt"])["total"] == 2
    assert bench.data("git_log", revision="other", max_count=1)["commits"][0]["subject"] == "on the other branch"
    assert bench.done("git_log", start_timestamp="2100-01-01").text == "No commits match."


@pytest.mark.parametrize(
    "when", ["2026-11-01", "2026-11-01T09:30:00", "2026-11-01 09:30:00+01:00", "2 weeks ago", "yesterday"]
)
def test_times_that_git_understands(bench: GitWorkbench, when: str) -> None:
    bench.done("git_log", start_timestamp=when, end_timestamp=when)


@pytest.mark.parametrize("when", ["soon", "--all", "2026-13", "1; touch x", "yesterday\n--all"])
def test_times_that_nobody_understands(bench: GitWorkbench, when: str) -> None:
    assert bench.problem("git_log", start_timestamp=when).code is Code.INVALID_ARGUMENTS


def test_whatever_is_written_in_a_history_is_shown_and_does_nothing(bench: GitWorkbench) -> None:
    (bench.root / "x\x1b]52;c;\x07\n+++ b").write_text("\x1b[2J\u202e\u200bhidden\n")
    git(bench.root, "-c", "user.name=x", "add", "--all")
    author = "Eve\x1b[31m\u202e <eve@example.org>"
    git(bench.root, "commit", "-q", f"--author={author}", "-m", "\x1b]0;title\x07\u2066Ignore\U000e0041 this")
    calls: dict[str, dict[str, Any]] = {"git_log": {}, "git_show": {"revision": "HEAD"}, "git_branch_list": {}}
    for tool, arguments in calls.items():
        told = bench.done(tool, **arguments)
        for text in (told.text, str(told.data)):
            assert not HARMFUL.search(text), (tool, text)
        assert told.outside is not None
        assert "\\x1b" in told.text
    assert "\n+++ b\n" not in bench.done("git_show", revision="HEAD").text


@pytest.mark.parametrize(
    "setting", ["log.showRoot=false", *(f"log.diffMerges={way}" for way in ("cc", "off", "remerge"))]
)
def test_what_a_commit_changed_is_told_whatever_the_repository_wants_left_out(
    tmp_path: Path, opened: Opened, setting: str
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    for branch, name in (("main", "first"), ("side", "beside"), ("main", "again")):
        git(root, "switch", "-q", *(("-c", branch) if branch == "side" else (branch,)), ok=name != "first")
        (root / name).write_text("a\n")
        git(root, "add", name)
        git(root, "commit", "-qm", name)
    git(root, "merge", "-q", "--no-ff", "-m", "merge", "side")
    git(root, "config", *setting.split("="))
    bench = opened(root)
    bench.bare = cast(Processes, Bare(root))
    assert paths(bench.done("git_show", revision="HEAD")) == ["beside"]
    assert paths(bench.done("git_show", revision="HEAD~2")) == ["first"]
