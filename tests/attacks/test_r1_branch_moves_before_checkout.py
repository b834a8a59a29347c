"""Does a checkout bring the commit that was shown, however the branch and the head move meanwhile?

An approval named a commit, and `git switch` then took whatever the branch led to: another `.vscode/tasks.json` than the
one that the person had seen.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.attacks.test_r1_yes_outlives_what_it_saw import NAMED, approve, asked, beginning, fine, git, said, shown
from tests.clients.pipe import pipe
from tests.clients.typed import typed
from tests.sizes import scale

TASKS = ".vscode/tasks.json"
BASE, GOOD, EVIL = (f'{{"tasks": ["{word}"]}}\n' for word in ("base", "good", "EVIL"))
MOVER = """
import itertools, os, sys
ref, *commits = sys.argv[1:]
parent = os.getppid()
for turn in itertools.count():
    for commit in commits:
        with open(ref + "-next", "w") as file:
            file.write(commit + "\\n")
        os.replace(ref + "-next", ref)
    if turn == 0:
        print("ready", flush=True)
    if turn % 64 == 0 and os.getppid() != parent:
        break
"""


@contextmanager
def moving(ref: Path, *contents: str) -> Generator[None]:
    """Let a reference lead to each of these in turn, as fast as one process can."""
    with subprocess.Popen([sys.executable, "-c", MOVER, str(ref), *contents], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield
            assert process.poll() is None, "the mover died, so nothing was raced"
        finally:
            process.kill()


@pytest.fixture
def repository(workspace: Path) -> Path:
    """The branches `good` and `evil`, and `other`, which is as `good`."""
    git(workspace, "init", "-q", "-b", "main")
    (workspace / ".vscode").mkdir()
    (workspace / "a.txt").write_text("base\n")
    commit(workspace, BASE)
    for name, text in (("evil", EVIL), ("good", GOOD)):
        git(workspace, "checkout", "-q", "-b", name, "main")
        (workspace / "a.txt").write_text(f"{name}\n")
        commit(workspace, text)
    git(workspace, "branch", "other")
    git(workspace, "checkout", "-q", "main")
    return workspace


def commit(place: Path, tasks: str) -> str:
    (place / TASKS).write_text(tasks)
    git(place, "add", ".")
    git(place, *NAMED, "commit", "-qm", "one")
    return git(place, "rev-parse", "HEAD").strip()


def head(place: Path) -> str:
    return git(place, "symbolic-ref", "--short", "HEAD").strip()


def test_a_checkout_shows_what_it_brings_and_the_approval_is_for_that(repository: Path, home: Path) -> None:
    git(repository, "config", "filter.tidy.smudge", "sed s/a/b/")
    call = {"branch_name": "other", "obeyed_files": True}
    good, evil = (git(repository, "rev-parse", name).strip() for name in ("good", "evil"))
    with pipe(repository, home, "--profile", "trusted") as one:
        beginning(one, "git")
        id = asked(one.call("git_checkout", **call))
        question = shown(repository, home, id)
        for part in (f"main ({git(repository, 'rev-parse', 'main').strip()})", good, f"modified  {TASKS}", "a.txt"):
            assert part in question, part
        assert r"+{\"tasks\": [\"good\"]}" in question
        assert "filter.tidy.smudge: sed s/a/b/" in question
        approve(repository, home, id)
        git(repository, "update-ref", "refs/heads/other", evil)
        again = asked(one.call("git_checkout", **call))
        assert again != id
        assert "EVIL" in shown(repository, home, again)
        # The same branch, from another commit, brings something else as well.
        git(repository, "update-ref", "refs/heads/other", good)
        git(repository, "update-ref", "refs/heads/moved", "HEAD")
        git(repository, "symbolic-ref", "HEAD", "refs/heads/moved")
        assert asked(one.call("git_checkout", **call)) not in (id, again)
        git(repository, "symbolic-ref", "HEAD", "refs/heads/main")
        assert (repository / TASKS).read_text() == BASE
        fine(one.call("git_checkout", **call))
    assert (head(repository), (repository / TASKS).read_text()) == ("other", GOOD)
    assert git(repository, "status", "--porcelain", "-uno") == ""
    assert git(repository, "rev-parse", "--abbrev-ref", "@{-1}") == "main\n"


def test_a_checkout_that_a_rule_asks_about_is_bound_too(repository: Path, home: Path, tmp_path: Path) -> None:
    config = tmp_path / "rules.yaml"
    config.write_text("rules:\n  ask:\n    - git_checkout\n")
    (repository / TASKS).unlink()
    for name, text in (("first", "first\n"), ("second", "second\n")):
        git(repository, "checkout", "-q", "-f", "-b", name, "main")
        (repository / "a.txt").write_text(text)
        commit(repository, BASE)
    git(repository, "checkout", "-q", "main")
    with pipe(repository, home, "--profile", "trusted", "--config", str(config)) as one:
        beginning(one, "git")
        approve(repository, home, asked(one.call("git_checkout", branch_name="first")))
        git(repository, "update-ref", "refs/heads/first", "second")
        asked(one.call("git_checkout", branch_name="first"))
    assert (repository / "a.txt").read_text() == "base\n"


@pytest.mark.heavy
@pytest.mark.parametrize("what", ["the branch", "the head"])
def test_an_approved_checkout_brings_nothing_else(repository: Path, home: Path, what: str) -> None:
    good, evil = (git(repository, "rev-parse", name).strip() for name in ("good", "evil"))
    places = {
        "the branch": (repository / ".git/refs/heads/other", good, evil),
        "the head": (repository / ".git/HEAD", "ref: refs/heads/main", "ref: refs/heads/evil"),
    }
    call, done = {"branch_name": "other", "obeyed_files": True}, 0
    with pipe(repository, home, "--profile", "trusted") as one:
        beginning(one, "git")
        for turn in range(scale(100, 12)):
            git(repository, "update-ref", "refs/heads/other", good)
            answer = one.call("git_checkout", **call)
            # An approval that the last turn left may do for this one.
            if answer.get("isError"):
                approve(repository, home, asked(answer))
                with moving(*places[what]):
                    answer = one.call("git_checkout", **call)
            text = said(answer)
            assert (repository / TASKS).read_text() in (BASE, GOOD), (turn, text)
            if answer.get("isError"):
                assert any(code in text for code in ("APPROVAL_REQUIRED", "STALE", "WRONG_STATE", "TOOL_FAILED")), text
                assert (repository / "a.txt").read_text() == "base\n", (turn, text)
            done += not answer.get("isError")
            git(repository, "symbolic-ref", "HEAD", "refs/heads/main")
            git(repository, "reset", "-q", "--hard")
    assert done, "nothing was ever checked out, so nothing was raced"
    assert not typed(repository, home, "status").err


@pytest.mark.heavy
def test_a_checkout_that_nobody_was_asked_about_brings_no_file_that_programs_obey(repository: Path, home: Path) -> None:
    """The branch leads to one without such files and to one with them in turn."""
    evil = git(repository, "rev-parse", "evil").strip()
    git(repository, "checkout", "-q", "-b", "harmless", "main")
    (repository / "a.txt").write_text("harmless\n")
    harmless = commit(repository, BASE)
    git(repository, "checkout", "-q", "main")
    done = 0
    with pipe(repository, home, "--profile", "trusted") as one:
        beginning(one, "git")
        with moving(repository / ".git/refs/heads/other", harmless, evil):
            for turn in range(scale(1_000, 30)):
                answer = one.call("git_checkout", branch_name="other")
                assert (repository / TASKS).read_text() == BASE, (turn, said(answer))
                text = (repository / "a.txt").read_text()
                assert text == ("base\n" if answer.get("isError") else "harmless\n"), (turn, said(answer))
                done += not answer.get("isError")
                git(repository, "symbolic-ref", "HEAD", "refs/heads/main")
                git(repository, "reset", "-q", "--hard")
    assert done, "nothing was ever checked out, so nothing was raced"
