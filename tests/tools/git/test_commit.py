"""Is a commit made of what is staged, by somebody, and without what nobody asked for?"""

from pathlib import Path
from typing import cast

from mcp_server.model.processes import Processes
from mcp_server.model.results import Code
from tests.tools.git.bare import Bare
from tests.tools.git.ground import GitWorkbench, Opened, git, paths


def test_the_first_steps_of_a_repository(tmp_path: Path, opened: Opened) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    bench = opened(root)
    bench.bare = cast(Processes, Bare(root))
    assert "no commit yet" in bench.done("git_status").text
    assert bench.data("git_log")["commits"] == []
    assert bench.data("git_branch_list")["branches"] == []
    assert bench.problem("git_create_branch", branch_name="x").code is Code.WRONG_STATE
    assert bench.problem("git_show", revision="HEAD").code is Code.NOT_FOUND
    told = bench.problem("git_commit", message="empty")
    assert told.code is Code.WRONG_STATE
    assert "git_add" in told.way_out
    (root / "a").write_text("a\n")
    assert paths(bench.done("git_add", files=["a"])) == ["a"]
    assert paths(bench.done("git_reset")) == ["a"]
    assert bench.done("git_reset").text == "Nothing was staged."
    bench.done("git_add", files=["."])
    told = bench.done("git_commit", message="first\n\n# not a comment\n")
    assert told.text.startswith("Committed ")
    assert git(root, "log", "--format=%an <%ae>%n%B") == b"Ada Lovelace <ada@example.org>\nfirst\n\n# not a comment\n\n"
    assert "Nothing to commit" in bench.done("git_status").text


def test_nobody_commits_without_a_name(bench: GitWorkbench) -> None:
    bench.person.who = None
    told = bench.problem("git_commit", message="x")
    assert told.code is Code.WRONG_STATE
    assert "user.email" in told.way_out
    git(bench.root, "config", "user.name", "Repo")
    git(bench.root, "config", "user.email", "repo@example.org")
    bench.done("git_commit", message="x")
    assert git(bench.root, "log", "-1", "--format=%an") == b"Repo\n"
