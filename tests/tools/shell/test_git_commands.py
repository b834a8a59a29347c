"""Is the command of git found that a line calls, whatever stands in front of it?"""

import shlex

import pytest

from tools.shell.git_commands import GitCall, find_git_calls


def calls(line: str) -> list[GitCall]:
    return list(find_git_calls(shlex.split(line), calls))


@pytest.mark.parametrize(
    "line",
    [
        "git push origin",
        "/usr/bin/git push origin",
        "env A=b git push origin",
        "sudo -u me git push origin",
        "timeout -s KILL 5 git push origin",
        "nice -n 5 nohup git push origin",
        "bash -c 'git push origin'",
        "sh -ec 'git push origin'",
        "eval git push origin",
        "eval 'git push' origin",
        "git --no-pager -c a=b push origin",
        "find . -exec git push origin ;",
    ],
)
def test_it_is_the_same_call(line: str) -> None:
    assert [(call.name, call.rest) for call in calls(line)] == [("push", ("origin",))]


def test_where_git_is_told_to_work() -> None:
    (call,) = calls("git -C sub --git-dir=a/.git --work-tree b status")
    assert call.places == ("sub", "a/.git", "b")


def test_what_is_filled_in_later_is_not_known() -> None:
    (call,) = calls("xargs -n 1 git add")
    assert call.rest == ("…",)


@pytest.mark.parametrize("line", ["echo git push", "git", "git --version", "sudo", "grep push", "bash script.sh", ""])
def test_no_call_of_git(line: str) -> None:
    assert calls(line) == []
