"""Are branches made, and gone to and back?"""

from mcp_server.model.results import Code
from tests.tools.git.ground import GitWorkbench, git


def test_going_to_a_branch_and_back(bench: GitWorkbench) -> None:
    told = bench.problem("git_checkout", branch_name="other")
    assert told.code is Code.WRONG_STATE
    assert "keep_changes" in told.way_out
    bench.done("git_add", files=["a.txt"])
    bench.done("git_commit", message="done")
    told = bench.done("git_checkout", branch_name="other")
    assert told.data is not None
    assert (told.data["from"]["branch"], told.data["to"]["branch"], told.data["files"]) == ("main", "other", 3)
    assert told.text.startswith("Switched from `main` (")
    assert "Already on `other`" in bench.done("git_checkout", branch_name="other").text
    git(bench.root, "checkout", "-q", "--detach")
    assert "On no branch (detached HEAD)" in bench.done("git_status").text
    assert "detached HEAD at" in bench.done("git_branch_list").text
    assert bench.data("git_checkout", branch_name="main")["from"]["branch"] is None


def test_making_a_branch(bench: GitWorkbench) -> None:
    told = bench.data("git_create_branch", branch_name="feature/new", base_branch="other")
    assert told["sha"] == git(bench.root, "rev-parse", "other").decode().strip()
    assert bench.problem("git_create_branch", branch_name="feature/new").code is Code.ALREADY_EXISTS
    for name in ("a b", "a..b", "x.lock", "@", "HEAD", "@{-1}", "a\nb", "/a", "a//b", "refs/heads/"):
        assert bench.problem("git_create_branch", branch_name=name).code is Code.INVALID_ARGUMENTS, name
    assert "Did you mean `other`" in bench.problem("git_checkout", branch_name="othr").message
