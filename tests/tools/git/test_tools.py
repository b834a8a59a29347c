"""Do the git tools say what changed, what is missing, and what to do next?"""

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.processes import Processes
from mcp_server.model.results import Code, Done
from mcp_server.model.text import UNSEEN
from tests.sizes import scale
from tests.tools.git.bare import Bare
from tests.tools.git.ground import TOOLS, GitWorkbench, git
from tests.tools.git.poison import template
from tools.git import escape, patch

Opened: TypeAlias = Callable[[Path], GitWorkbench]


@pytest.fixture
def bench(tmp_path: Path, opened: Opened) -> GitWorkbench:
    root = tmp_path / "work"
    template(root)
    bench = opened(root)
    bench.bare = cast(Processes, Bare(root))
    return bench


def paths(told: Done) -> list[str]:
    assert told.data is not None
    return [one["path"] for one in told.data["files"]]


# From nothing to a first commit


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


def test_hooks_are_left_out_and_that_is_said(bench: GitWorkbench) -> None:
    hook = bench.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
    hook.chmod(0o755)
    told = bench.done("git_commit", message="x")
    assert "[The repository's hooks (pre-commit) were not run; `run_hooks` runs them.]" in told.text
    assert not (bench.root / "ran").exists()
    (bench.root / "a.txt").write_text("more\n")
    bench.done("git_add", files=["a.txt"])
    assert bench.problem("git_commit", message="y", run_hooks=True).code is Code.TOOL_FAILED
    assert (bench.root / "ran").exists()
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert "hooks were allowed to run" in bench.done("git_commit", message="y", run_hooks=True).text
    assert TOOLS["git_commit"].get_demand({"message": "x", "run_hooks": True}).effect == "exec"


def test_a_merge_under_way_is_not_lost(bench: GitWorkbench) -> None:
    git(bench.root, "reset", "-q", "--hard")
    git(bench.root, "merge", "-q", "clashing", ok=False)
    told = bench.done("git_status")
    assert "A merge is under way" in told.text
    assert "both modified" in told.text
    assert bench.problem("git_commit", message="x").code is Code.WRONG_STATE
    assert bench.problem("git_checkout", branch_name="other", keep_changes=True).code is Code.TOOL_FAILED
    (bench.root / "a.txt").write_text("resolved\n")
    bench.done("git_add", files=["a.txt"])
    bench.done("git_reset")
    assert (bench.root / ".git" / "MERGE_HEAD").exists()
    bench.done("git_add", files=["a.txt"])
    bench.done("git_commit", message="merged")
    merge = bench.done("git_show", revision="HEAD")
    assert "merge of" in merge.text
    assert len(git(bench.root, "rev-list", "--parents", "-1", "HEAD").split()) == 3


# Secrets


def test_what_holds_secrets_is_neither_shown_nor_staged_unasked(bench: GitWorkbench) -> None:
    (bench.root / ".env").write_text("KEY=old-value\n")
    git(bench.root, "add", ".env")
    git(bench.root, "commit", "-q", "-m", "with a secret")
    (bench.root / ".env").write_text("KEY=new-value\n")
    calls: dict[str, dict[str, Any]] = {
        "git_diff_unstaged": {},
        "git_diff": {"target": "HEAD"},
        "git_show": {"revision": "HEAD"},
    }
    for tool, arguments in calls.items():
        told = bench.done(tool, **arguments)
        assert "value" not in told.text, tool
        assert "`.env`" in told.text
        assert told.data is not None
        assert told.data["not_shown"] == [".env"]
        named: dict[str, Any] = arguments | {"paths": [".env"]}
        assert bench.problem(tool, **named).code is Code.APPROVAL_REQUIRED
        assert "value" in bench.done(tool, yes=True, **named).text
    told = bench.problem("git_add", files=["."])
    assert told.code is Code.PATH_REFUSED
    assert "`.env`" in told.message
    assert b".env" not in git(bench.root, "diff", "--cached", "--name-only")
    assert bench.problem("git_add", files=[".env"]).code is Code.APPROVAL_REQUIRED
    assert paths(bench.done("git_add", yes=True, files=[".env"])) == [".env"]
    assert "value" not in bench.done("git_diff_staged").text


def test_a_file_is_not_staged_past_its_filter(bench: GitWorkbench) -> None:
    (bench.root / ".gitattributes").write_text("*.bin filter=lfs\n")
    (bench.root / "large.bin").write_text("large\n")
    told = bench.problem("git_add", files=["large.bin"])
    assert told.code is Code.WRONG_STATE
    assert "`lfs`" in told.message
    assert "git lfs install --local" in told.way_out
    git(bench.root, "config", "filter.lfs.clean", "sed s/large/pointer/")
    bench.done("git_add", files=["large.bin"])
    assert git(bench.root, "show", ":large.bin") == b"pointer\n"


# Branches


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


# History


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
            assert not UNSEEN.search(text), (tool, text)
        assert told.outside is not None
        assert "\\x1b" in told.text
    assert "\n+++ b\n" not in bench.done("git_show", revision="HEAD").text


@pytest.mark.parametrize("tool", ["git_diff", "git_show"])
def test_a_range_is_two_commits(bench: GitWorkbench, tool: str) -> None:
    if tool == "git_show":
        assert bench.problem(tool, revision="main..other").code is Code.NOT_FOUND
        return
    two = bench.done("git_diff", target="main..other")
    three = bench.done("git_diff", target="main...other")
    assert paths(two) == ["a.txt", "d.txt"]
    assert paths(three) == ["d.txt"]
    assert bench.problem("git_diff", target="main..nowhere").code is Code.NOT_FOUND


# Much of it


def test_a_long_patch_comes_in_pages_that_make_the_whole(bench: GitWorkbench) -> None:
    (bench.root / "long.txt").write_text("".join(f"{number} {'x' * 60}\n" for number in range(4000)))
    git(bench.root, "add", "long.txt")
    wanted = [escape.to_content_line(line) for line in git(bench.root, "diff", "--cached").split(b"\n")[:-1]]
    got: list[str] = []
    onward: dict[str, Any] | None = {}
    while onward is not None:
        told = bench.done("git_diff_staged", **onward)
        assert told.data is not None
        assert len(told.text) < TOOLS["git_diff_staged"].max_result_chars
        body, more, _ = told.text.rpartition("\n[Lines ")
        lines = (body if more else told.text).split("\n")
        got += lines if onward else lines[lines.index("") + 1 :]
        onward = told.data["next"]
        assert (onward is not None) == told.data["truncated"]
    assert got == wanted
    assert bench.problem("git_diff_staged", offset=len(wanted) + 1).code is Code.INVALID_ARGUMENTS


def test_a_status_of_many_files_comes_in_pages(bench: GitWorkbench) -> None:
    for number in range(700):
        (bench.root / f"n{number}").write_text("")
    seen: list[str] = []
    onward: dict[str, Any] | None = {}
    while onward is not None:
        told = bench.data("git_status", **onward)
        seen += [one["path"] for one in told["entries"]]
        onward = told["next"]
    assert len(seen) == len(set(seen)) == 702
    assert bench.problem("git_status", offset=702).code is Code.INVALID_ARGUMENTS


@pytest.mark.heavy
def test_a_diff_of_a_hundred_megabytes_stays_small(tmp_path: Path, opened: Opened) -> None:
    root = tmp_path / "work"
    template(root)
    line = b"x" * 99 + b"\n"
    (root / "a.txt").write_bytes(line * 10)
    git(root, "commit", "-q", "-a", "-m", "small")
    (root / "a.txt").write_bytes(line * scale(1_050_000))
    bench = opened(root)
    bench.done("git_status")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = bench.done("git_diff_unstaged")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert told.data is not None
    assert told.data["truncated"]
    assert told.data["files"][0]["added"] == scale(1_050_000) - 10
    assert len(told.text) < patch.PAGE + 2_000
    assert grown * 1024 < 4 * (8 << 20)


# What the door says


def test_without_a_sandbox_only_a_harmless_repository_is_opened(tmp_path: Path, opened: Opened) -> None:
    root = tmp_path / "work"
    template(root)
    bench = opened(root)
    bench.only("none")
    assert bench.problem("git_status", Profile.RESTRICTED).code is Code.NOT_GRANTED
    assert isinstance(bench.done("git_status", Profile.NORMAL), Done)
    assert bench.problem("git_add", Profile.NORMAL, files=["a.txt"]).code is Code.NOT_GRANTED
    assert paths(bench.done("git_add", Profile.TRUSTED, files=["a.txt"])) == ["a.txt"]
    for words in ('[filter "x"]\n\tclean = cat\n', "[core][FILTER.x]clean=cat\n", "[include]\n\tpath = more\n"):
        with (root / ".git" / "config").open("a") as file:
            file.write(words)
        calls: dict[str, dict[str, Any]] = {"git_status": {}, "git_add": {"files": ["a.txt"]}, "git_log": {}}
        for name, arguments in calls.items():
            assert bench.problem(name, Profile.TRUSTED, **arguments).code is Code.UNSAFE_REPOSITORY, name
        lines = (root / ".git" / "config").read_text().removesuffix(words)
        (root / ".git" / "config").write_text(lines)
    assert isinstance(bench.done("git_status"), Done)


@pytest.mark.parametrize("profile", [Profile.NORMAL, Profile.TRUSTED])
def test_git_keeps_its_folder_and_its_settings_stay(tmp_path: Path, opened: Opened, profile: Profile) -> None:
    """A filter that runs while git may write cannot give itself a longer life."""
    root = tmp_path / "work"
    template(root)
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--", str(root), "sub")
    evil = root / "evil"
    evil.write_text(
        "#!/bin/sh\nexec 2>/dev/null\nfor one in .git/config .git/hooks/post-commit .git/modules/sub/config "
        ".git/modules/sub/hooks/x .git/commondir .git/config.worktree .envrc; do echo evil >> $one; done\n"
        "mv .git .moved\nexec cat\n"
    )
    evil.chmod(0o755)
    git(root, "config", "filter.evil.clean", str(evil))
    (root / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    before = {path: path.read_bytes() for path in sorted((root / ".git").rglob("*config*")) if path.is_file()}
    bench = opened(root)
    if not bench.only("bubblewrap"):
        pytest.skip("there is no bubblewrap here")
    told = bench.problem("git_add", profile, files=["a.txt", "evil"])
    assert "commondir" in told.message
    after = {path: path.read_bytes() for path in sorted((root / ".git").rglob("*config*")) if path.is_file()}
    assert after == before
    assert not os.path.lexists(root / ".git" / "hooks" / "post-commit")
    assert not (root / ".git" / "modules" / "sub" / "hooks" / "x").exists()
    assert not (root / ".git" / "commondir").exists()


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
