"""Is a command of git that has to write `.git` known before it fails, with the tool that does the same?"""

import shlex
from collections.abc import Iterator

import pytest

from mcp_server.model.posture import Profile
from tools.catalog import CATALOG
from tools.shell.git_commands import GitCall, find_git_calls
from tools.shell.git_writes import VainGitCall, judge_git_calls


def judge(line: str, *folders: str) -> VainGitCall | None:
    def calls() -> Iterator[GitCall]:
        for part in line.split("&&"):
            yield from find_git_calls(shlex.split(part), lambda _line: ())

    return judge_git_calls(calls(), folders)


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("git add a.txt", "git_add"),
        ("git add --all", "git_add"),
        ("git commit -m 'a message'", "git_commit"),
        ("git commit -m --amend", "git_commit"),
        ("git reset", "git_reset"),
        ("git restore --staged .", "git_reset"),
        ("git branch x main", "git_create_branch"),
        ("git checkout -q -b x", "git_create_branch"),
        ("git switch --create x", "git_create_branch"),
    ],
)
def test_what_a_tool_does_as_well(line: str, tool: str) -> None:
    judged = judge(line)
    assert judged is not None
    assert judged.instead == (tool,)
    assert tool in {one.name for one in CATALOG}


@pytest.mark.parametrize(
    "line",
    [
        "git add -p",
        "git commit --amend",
        "git reset --hard",
        "git restore --staged a.txt",
        "git add a && git stash push",
        "git switch main",
        "git checkout -B x",
    ],
)
def test_what_no_tool_does_takes_a_profile(line: str) -> None:
    judged = judge(line)
    assert judged is not None
    assert judged.instead == ()
    assert judged.takes.covers(Profile.NORMAL)


@pytest.mark.parametrize(
    ("line", "because", "detour"),
    [
        ("git add a && git commit -m x", "`git add` and `git commit` have to write `.git`", ""),
        ("git switch -c x", "`git switch` has to write `.git`, which is read-only", "does not switch to it"),
        ("git switch x", "`git switch` has to write `.git`", "`git_checkout` needs the profile `trusted`"),
        ("git switch -C x", "`git switch` has to write `.git`", "No tool does that instead"),
        ("git checkout -- a", "`git checkout` has to write `.git`", "`git show HEAD:./FILE > FILE`"),
        ("git restore a", "`git restore` has to write `.git`", "`git show HEAD:./FILE > FILE`"),
        ("git restore --staged a", "`git restore` has to write `.git`", "`git_reset` unstages everything"),
        ("git mv a b", "`git mv` has to write `.git`", "The command `mv` moves a file, and `git_add` stages"),
        ("git rm a", "`git rm` has to write `.git`", "The command `rm` deletes a file, and `git_add` stages"),
        ("git rm --cached a", "`git rm` has to write `.git`", "No tool does that instead"),
        ("git rm -n a", "`git rm` has to write `.git`", "Even a dry run of it locks git's index"),
        ("git commit --dry-run", "`git commit` has to write `.git`", "`git_status` says what is staged"),
        ("git commit -am x", "`git commit` has to write `.git`", "`git_commit` stages nothing"),
        ("git commit --all -F message", "`git commit` has to write `.git`", "`git_commit` stages nothing"),
        ("git commit -m x a.txt", "`git commit` has to write `.git`", "commits everything that is staged"),
        ("git commit -m x -- a.txt", "`git commit` has to write `.git`", "commits everything that is staged"),
        ("git commit -mall -q -m x", "`git commit` has to write `.git`", ""),
        ("git merge x && git add a", "`git merge` has to write `.git`", "No tool does that instead"),
        ("git commit --amend", "`git commit` has to write `.git`", "`git_commit` makes a new commit"),
        ("git stash && git config a b", "`git config` has to change git's configuration", "No tool does that instead"),
    ],
)
def test_a_refusal_names_the_command_and_what_can_be_done_instead(line: str, because: str, detour: str) -> None:
    judged = judge(line)
    assert judged is not None
    assert judged.because.startswith(because)
    assert detour in judged.detour and bool(detour) == bool(judged.detour)


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git log",
        "git diff",
        "git add -n a.txt",
        "git add --dry-run .",
        "git commit -h",
        "git commit --help",
        "git stash list",
        "git frobnicate",
        "ls",
    ],
)
def test_what_only_reads_is_let_through(line: str) -> None:
    assert judge(line) is None


def test_a_repository_that_the_line_makes_is_its_own() -> None:
    assert judge("git init new && git add a") is None
    assert judge("git clone a b && git commit -m x") is None


def test_two_tools_are_named_once_each() -> None:
    judged = judge("git add a && git add b && git commit -m x")
    assert judged is not None
    assert judged.instead == ("git_add", "git_commit")


@pytest.mark.parametrize(
    "line", ["git commit -am x", "git commit -qa -m x", "git commit --all -m x", "git commit -m x a"]
)
def test_a_commit_that_stages_names_the_tool_that_does(line: str) -> None:
    judged = judge(line)
    assert judged is not None
    assert judged.instead == ("git_add", "git_commit")
