"""Does a checkout lose nothing, fetch nothing, and refuse what git would refuse before anybody is asked?"""

from mcp_server.model.results import Code
from tests.tools.git.ground import GitWorkbench, git


def test_only_what_is_here_is_gone_to(bench: GitWorkbench) -> None:
    git(bench.root, "update-ref", "refs/remotes/origin/remote-only", "other")
    told = bench.problem("git_checkout", branch_name="remote-only")
    assert told.code is Code.NOT_FOUND
    assert "origin/remote-only" in told.message
    assert "git_create_branch" in told.way_out
    assert bench.problem("git_checkout", branch_name="HEAD~1").code is Code.INVALID_ARGUMENTS
    assert [one["name"] for one in bench.data("git_branch_list")["branches"]] == ["clashing", "main", "other"]
    assert "remotes/origin/remote-only" in bench.done("git_branch_list", show_remote=True).text


def test_files_that_others_obey_are_changed_only_with_a_yes(bench: GitWorkbench) -> None:
    git(bench.root, "stash", "-q")
    git(bench.root, "switch", "-q", "other")
    (bench.root / ".envrc").write_text("x\n")
    git(bench.root, "add", "-f", ".envrc")
    git(bench.root, "commit", "-q", "-m", "obeyed")
    git(bench.root, "switch", "-q", "main")
    told = bench.problem("git_checkout", branch_name="other")
    assert told.code is Code.PATH_REFUSED
    assert "`.envrc`" in told.message
    assert bench.problem("git_checkout", branch_name="other", obeyed_files=True).code is Code.APPROVAL_REQUIRED
    bench.done("git_checkout", yes=True, branch_name="other", obeyed_files=True)
    assert (bench.root / ".envrc").exists()


def test_no_file_is_lost_that_git_does_not_track(bench: GitWorkbench) -> None:
    git(bench.root, "stash", "-q")
    (bench.root / ".git" / "info" / "exclude").write_text("d.txt\nbuild\n")
    (bench.root / "d.txt").write_text("years of work\n")
    told = bench.problem("git_checkout", branch_name="other")
    assert (told.code, "`d.txt`" in told.message) == (Code.WRONG_STATE, True)
    assert (bench.root / "d.txt").read_text() == "years of work\n"
    (bench.root / "d.txt").unlink()
    # A folder of ignored files where the branch has a file, and the other way round.
    git(bench.root, "switch", "-q", "-c", "built", "other")
    (bench.root / "build").write_text("built\n")
    git(bench.root, "add", "-f", "build")
    git(bench.root, "commit", "-q", "-m", "built")
    git(bench.root, "switch", "-q", "main")
    (bench.root / "build").mkdir()
    (bench.root / "build" / "deep.o").write_text("x")
    assert "`build/deep.o`" in bench.problem("git_checkout", branch_name="built").message
    (bench.root / "build" / "deep.o").unlink()
    bench.done("git_checkout", branch_name="built")
    assert (bench.root / "build").read_text() == "built\n"


def test_what_git_switch_refuses_is_refused_before_anybody_is_asked(bench: GitWorkbench) -> None:
    git(bench.root, "stash", "-q")
    git(bench.root, "worktree", "add", "-q", "linked", "other")
    told = bench.problem("git_checkout", branch_name="other")
    assert (told.code, "another worktree" in told.message) == (Code.WRONG_STATE, True)
    git(bench.root, "merge", "-q", "--no-commit", "--no-ff", "clashing", ok=False)
    assert "A merge is in progress" in bench.problem("git_checkout", branch_name="clashing").message


def test_before_the_first_commit_every_file_is_looked_at(bench: GitWorkbench) -> None:
    git(bench.root, "stash", "-q")
    git(bench.root, "switch", "-q", "other")
    (bench.root / ".envrc").write_text("x\n")
    git(bench.root, "add", "-f", ".envrc")
    git(bench.root, "commit", "-q", "-m", "obeyed")
    (bench.root / "a.txt").write_text("later\n")
    git(bench.root, "commit", "-q", "-a", "-m", "later")
    git(bench.root, "switch", "-q", "--orphan", "unborn")
    assert "`.envrc`" in bench.problem("git_checkout", branch_name="other").message
    bench.done("git_checkout", yes=True, branch_name="other", obeyed_files=True)
    assert git(bench.root, "status", "--porcelain", "-uno") == b""
