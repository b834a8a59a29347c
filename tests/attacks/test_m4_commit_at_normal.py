"""Can somebody commit at the profile that everybody starts with?

`git_commit` was refused there without a way to ask, and `git commit` in bash was asked about, approved by the person,
and then failed: a command's sandbox does not write `.git` at `normal`.
"""

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served
from tests.clients.typed import typed

LINES = [
    "git commit -m done",
    "git commit",
    "git -c user.name=Me -c user.email=me@example.org commit -qm done",
    "git -C . commit -m done",
    "git --no-pager --git-dir=.git --work-tree . commit -m done",
    "cd src && git commit -m done",
    "git add -A && git commit -m done; git status",
    "git add . ; git commit -am 'done' | tail -1",
    "GIT_AUTHOR_NAME=Me git commit -m done",
    "env GIT_AUTHOR_NAME=Me git commit -m done",
    "/usr/bin/git commit -m done",
    "command git commit -m done",
    "'git' commit -m done",
    "git 'commit' -m done",
    "if true; then git commit -m done; fi",
    "(cd src; git commit -m done)",
    'echo "$(git commit -m done)"',
    "bash -c 'git commit -m done'",
    "git commit -F - <<'EOF'\ndone\nEOF",
]
WRITES = {
    "git_add": [
        "git add .",
        "git add -A",
        "git add src/a.py notes.md",
        "git stage notes.md",
        "cd src; git -C .. add -u",
        "timeout 5 git add .",
        "timeout -k 1 --signal=KILL 5s git add .",
        "git ls-files | xargs git add",
        "git ls-files -z | xargs -0 -n 5 git add --",
        "git ls-files | xargs -I{} git add {}",
        r"\git add notes.md",
        r"\command \git add notes.md",
        "nice git add notes.md",
        "nice -n 5 timeout 5 env -u A git add notes.md",
        "stdbuf -o 0 setsid git add notes.md",
        "find . -name '*.py' -exec git add {} +",
        r"find . -name '*.py' -exec git add {} \;",
        "eval 'git add notes.md'",
    ],
    "git_reset": ["git reset", "git reset -q HEAD", "git restore --staged ."],
    "git_create_branch": [
        "git branch topic",
        "git branch topic main",
        "bash -c 'git branch -q topic'",
        "git checkout -b topic",
    ],
    "menugate profile trusted": [
        *("git commit --amend --no-edit", "git commit --fixup=HEAD", "git commit -p -m x"),
        *("git commit --dry-run", "git commit -a --dry-run -m x", "git commit --short", "git rm -n x"),
        *("git rm --cached -n x", "git rm -rn src", "git mv -n a b", "git mv --dry-run a b"),
        *(
            "git add -p",
            "git reset --hard",
            "git reset HEAD notes.md",
            "echo notes.md | xargs git reset",
            "git restore --staged notes.md",
        ),
        *("git restore notes.md", "git checkout -- notes.md", "git switch main"),
        *("git branch -d topic", "git branch -m other", "git tag v1", "git tag -d v1", "git tag -a v1 -m one"),
        *("git mv notes.md a.md", "git rm --cached notes.md", "git merge topic", "git cherry-pick topic"),
        *("git revert HEAD", "git fetch", "git pull", "git rebase main", "git stash", "git stash pop"),
        *("git commit-tree HEAD^{tree} -m x", "git write-tree", "git update-ref refs/heads/x HEAD", "git gc"),
        *("git worktree add ../w", "git notes add -m x", "git bisect start", "git reflog expire --all"),
        *("git remote prune origin", "git symbolic-ref HEAD refs/heads/x", "git hash-object -w notes.md"),
        *("git prune", "git pack-refs --all", "git replace a b", "git replace -d a", "git update-index --refresh"),
        *("git submodule update", "timeout 60 git gc --quiet"),
        "git add . && git tag v1",
    ],
    "menugate profile unrestricted": [
        *("git config user.name Me", "git config --unset user.name", "git remote add origin x"),
        *("git branch -u origin/main", "git submodule add x y"),
    ],
}
LOOKS = [
    *("git commit -h", "git add --help", "git branch --list 't*'", "git branch -a --contains HEAD", "git tag -l 'v*'"),
    *("git tag -n3", "git stash list", "git stash show", "git remote -v", "git remote get-url origin"),
    *("git config --get user.name", "git config user.name", "git config --list", "git worktree list"),
    *("git notes list", "git reflog show main", "git submodule status", "git symbolic-ref HEAD", "git clean -n"),
    *("git fetch --dry-run", "git apply --check a.patch", "git branch --sort=-committerdate --format='%(refname)'"),
    *("git init sub && cd sub && git add .", "git clone . sub && git -C sub commit -m x", "git -C /tmp/r add ."),
    *("git add -n .", "git add --dry-run .", "git add -nv .", "git stage -An"),
    *("git prune -n", "git reflog expire -n --all", "git pull --dry-run"),
    *("git remote prune --dry-run origin", "git replace -l", "git replace", "git rebase --show-current-patch"),
    *("git -c alias.z=add z", "timeout 5 git add -n .", "xargs git", "timeout git", "eval git", "find . -exec git"),
    *("git ls-files | xargs git branch --list", r"git grep 'a\b'", "git init", "git init && git add ."),
    *("git grep add", "git bundle create a.bundle main"),
]
OTHERS = [
    "git log --grep commit",
    "grep -rn 'git commit' .",
    "echo git commit",
    "git show commit",
    "git status # git commit",
    "git cat-file -t commit",
]


@pytest.fixture
def repository(workspace: Path, home: Path) -> Path:
    (home / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    git(workspace, "init", "-q", "-b", "main")
    return workspace


def git(folder: Path, *words: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, check=True, text=True).stdout


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def fine(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), said(answer)
    return said(answer)


def refused(answer: Mapping[str, Any], code: str) -> str:
    assert answer["isError"], said(answer)
    assert code in said(answer)
    return said(answer)


def question(answer: Mapping[str, Any]) -> str:
    """The one that waits for the person."""
    return refused(answer, "APPROVAL_REQUIRED").partition("menugate approve ")[2].split("`")[0]


def staged(one: Pipe, mode: str) -> None:
    fine(one.call("menu_enter", mode=mode))
    assert "git_commit" in one.names()
    fine(one.call("git_add", files=["notes.md"]))


@pytest.mark.parametrize("mode", ["swe", "git"])
@pytest.mark.parametrize("era", ERAS)
def test_a_commit_is_shown_asks_once_and_is_made(era: str, mode: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello("opencode", era)
        staged(one, mode)
        id = question(one.call("git_commit", message="First"))
        assert question(one.call("git_commit", message="First")) == id, "asked once, however often it is called"
        assert typed(repository, home, "approve", id).code == 0
        fine(one.call("git_commit", message="First"))
        # The yes was for that commit, and for no other.
        (repository / "notes.md").write_text("more\n")
        fine(one.call("git_add", files=["notes.md"]))
        refused(one.call("git_commit", message="Second"), "APPROVAL_REQUIRED")
    assert git(repository, "log", "--format=%an %s") == "Grace Hopper First\n"


def test_who_can_be_asked_through_the_client_is_asked_there(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.able = {"elicitation": {}}
        one.hello("opencode")
        staged(one, "git")
        request = one.send("tools/call", {"name": "git_commit", "arguments": {"message": "First"}})
        while (asked := one.message()).get("method") != "elicitation/create":
            pass
        assert "First" in asked["params"]["message"]
        one.raw(b'{"jsonrpc":"2.0","id":%d,"result":{"action":"decline"}}\n' % asked["id"])
        assert one.until(request)[0]["result"]["isError"]
    assert subprocess.run(["git", "log"], cwd=repository, capture_output=True).returncode != 0


def test_a_rule_may_answer_beforehand_and_a_program_of_the_repository_needs_more(repository: Path, home: Path) -> None:
    config = home / "menugate.yaml"
    config.write_text("rules:\n  allow:\n    - git_commit\n")
    with pipe(repository, home, "--profile", "normal", "--config", str(config)) as one:
        one.hello()
        staged(one, "git")
        refused(one.call("git_commit", message="First", run_hooks=True), "PROFILE_TOO_LOW")
        fine(one.call("git_commit", message="First"))


def made(repository: Path, home: Path, profile: str = "normal") -> str:
    """What the answer to a commit says, which a rule allows."""
    config = home / "menugate.yaml"
    config.write_text("rules:\n  allow:\n    - git_commit\n")
    with pipe(repository, home, "--profile", profile, "--config", str(config)) as one:
        one.hello()
        staged(one, "git")
        return fine(one.call("git_commit", message="First"))


def hook(folder: Path, name: str = "pre-commit") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\ntouch ran\nexit 1\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("where", [".git/hooks", ".husky", "/.husky", "tools/../.husky"])
def test_hooks_that_did_not_run_are_named_wherever_they_lie(where: str, repository: Path, home: Path) -> None:
    hook(repository / where.strip("/").removeprefix("tools/../"))
    hook(repository / where.strip("/").removeprefix("tools/../"), "pre-push")
    if where != ".git/hooks":
        git(repository, "config", "core.hooksPath", f"{repository}{where}" if where[0] == "/" else where)
    told = made(repository, home)
    assert "hooks (pre-commit) were not run; `run_hooks` runs them at the profile `trusted`" in told
    assert not (repository / "ran").exists()


def test_hooks_behind_a_link_or_outside_are_not_passed_over(repository: Path, home: Path) -> None:
    hook(repository / "scripts")
    folder = repository / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    (folder / "pre-commit").symlink_to("../../scripts/pre-commit")
    assert "hooks (pre-commit) were not run; `run_hooks` runs them.]" in made(repository, home, "trusted")
    hook(home / "hooks")
    git(repository, "config", "core.hooksPath", str(home / "hooks"))
    (repository / "notes.md").write_text("more\n")
    assert f"The hooks in `{home}/hooks`, outside the workspace, were not run" in made(repository, home)
    git(repository, "config", "core.hooksPath", "/dev/null")
    (repository / "notes.md").write_text("and more\n")
    assert "hooks" not in made(repository, home)
    git(repository, "config", "--unset", "core.hooksPath")
    with (home / ".gitconfig").open("a") as config:
        config.write("[core]\n\thooksPath = ~/hooks\n")
    (repository / "notes.md").write_text("and yet more\n")
    assert f"The hooks in `{home}/hooks`, outside the workspace, were not run" in made(repository, home)


BY = "--format=%an <%ae> %cn <%ce>"


def test_who_commits_is_who_commits_for_the_persons_own_git(repository: Path, home: Path) -> None:
    (home / ".gitconfig").write_text(
        f'[user]\n\tname = Me\n\temail = home@x\n[includeIf "gitdir:{repository}/"]\n\tpath = inc\n'
    )
    (home / "inc").write_text("[user]\n\temail = work@x\n")
    made(repository, home)
    assert git(repository, "log", "-1", BY) == "Me <work@x> Me <work@x>\n"
    git(repository, "config", "author.email", "author@x")
    git(repository, "config", "committer.name", "Bot")
    (repository / "notes.md").write_text("more\n")
    made(repository, home)
    assert git(repository, "log", "-1", BY) == "Me <author@x> Bot <work@x>\n"


@pytest.mark.parametrize("own", ["[user]\n\tname = Me\n", "[user]\n\tname = Me\n\temail =\n", ""])
def test_nobody_commits_by_half_a_name(own: str, repository: Path, home: Path) -> None:
    (home / ".gitconfig").write_text(own)
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello()
        staged(one, "git")
        assert "no name or email address" in refused(one.call("git_commit", message="First"), "WRONG_STATE")


def test_asking_who_commits_starts_nothing_of_the_repository(repository: Path, home: Path) -> None:
    trap = home / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {home}/trapped\n")
    trap.chmod(0o755)
    names = ["core.fsmonitor", "core.pager", "pager.var", "core.editor", "core.sshCommand", "credential.helper"]
    for name in [*names, "core.askPass", "diff.external", "sequence.editor", "gpg.program"]:
        git(repository, "config", name, str(trap))
    git(repository, "config", "alias.var", f"!{trap}")
    git(repository, "config", "core.hooksPath", str(home))
    git(repository, "config", "core.worktree", str(home))
    made(repository, home)
    assert not (home / "trapped").exists()


def dropped(repository: Path, home: Path, name: str) -> bool:
    """Is a file of that name neither shown nor staged?"""
    (repository / name).write_text("x\n")
    with pipe(repository, home) as one:
        one.hello()
        fine(one.call("menu_enter", mode="git"))
        seen = name in fine(one.call("git_status"))
        assert (name in fine(one.call("git_add", files=["."]))) is seen
        assert (name in git(repository, "ls-files").split()) is seen
    return not seen


def test_what_the_persons_own_git_passes_over_is_not_staged(repository: Path, home: Path) -> None:
    assert not dropped(repository, home, "one.swp")
    own = home / ".config" / "git" / "ignore"
    own.parent.mkdir(parents=True)
    own.write_text("*.swp\n")
    assert dropped(repository, home, "two.swp")
    (repository / ".gitignore").write_text("!kept.swp\n")
    assert not dropped(repository, home, "kept.swp")
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "ignore").write_text("*.bak\n")
    (home / ".gitignore_global").symlink_to("dotfiles/ignore")
    with (home / ".gitconfig").open("a") as config:
        config.write("[core]\n\texcludesFile = ~/.gitignore_global\n")
    assert dropped(repository, home, "a.bak")
    assert not dropped(repository, home, "three.swp")
    # What the repository says comes before it, as it does for git.
    (repository / "own").write_text("*.tmp\n")
    git(repository, "config", "core.excludesFile", "own")
    assert dropped(repository, home, "a.tmp")
    assert not dropped(repository, home, "b.bak")


@pytest.mark.parametrize("shared", ["group", "all", "0660"])
def test_a_shared_repository_takes_a_commit_and_stays_shared(shared: str, repository: Path, home: Path) -> None:
    shutil.rmtree(repository / ".git")
    git(repository, "init", "-q", f"--shared={shared}")
    made(repository, home)
    found = list((repository / ".git").rglob("*"))
    rights = {one: one.stat().st_mode for one in found if not one.is_relative_to(repository / ".git" / "hooks")}
    assert not [one for one, mode in rights.items() if stat.S_ISREG(mode) and mode & (stat.S_ISGID | stat.S_ISUID)]
    wanted = stat.S_ISGID | 0o070
    assert not [one for one, mode in rights.items() if stat.S_ISDIR(mode) and mode & wanted != wanted]


@pytest.mark.skipif(os.geteuid() != 0, reason="only of root is the bit kept from folders too")
def test_a_shared_repository_that_takes_none_says_why(repository: Path, home: Path) -> None:
    git(repository, "config", "core.sharedRepository", "group")
    with pipe(repository, home) as one:
        one.hello()
        fine(one.call("menu_enter", mode="git"))
        told = refused(one.call("git_add", files=["notes.md"]), "TOOL_FAILED")
        assert "core.sharedRepository" in told
        assert "not as root" in told


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_nobody_is_asked_about_a_commit_that_another_git_holds_up(lock: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello()
        staged(one, "git")
        place = repository / ".git" / lock
        place.touch()
        told = refused(one.call("git_commit", message="First"), "WRONG_STATE")
        assert f"`.git/{lock}` exists" in told
        place.unlink()
        refused(one.call("git_commit", message="First"), "APPROVAL_REQUIRED")


@pytest.mark.parametrize("line", LINES)
def test_a_commit_in_bash_is_refused_before_anybody_is_asked(line: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.able = {"elicitation": {}}
        one.hello()
        staged(one, "swe")
        answer, before = one.until(one.send("tools/call", {"name": "bash", "arguments": {"command": line}}))
        assert not [note for note in before if note.get("method") == "elicitation/create"]
        assert "`git_commit`" in refused(answer["result"], "PROFILE_TOO_LOW")
        refused(one.call("bash", command=line, run_in_background=True), "PROFILE_TOO_LOW")
        refused(one.call("bash", command=line, bash_id="mine"), "PROFILE_TOO_LOW")
    assert "no" in typed(repository, home, "approvals").out.lower()


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Generator[Pipe]:
    """A repository with a client that would be asked."""
    folder = tmp_path_factory.mktemp("asking")
    for name in ("work", "home"):
        (folder / name).mkdir()
    git(folder / "work", "init", "-q", "-b", "main")
    with pipe(folder / "work", folder / "home", "--profile", "normal") as one:
        one.hello()
        fine(one.call("menu_enter", mode="swe"))
        yield one


@pytest.mark.parametrize(("way", "line"), [(way, line) for way, lines in WRITES.items() for line in lines])
def test_what_has_to_write_the_repository_is_refused_as_well(way: str, line: str, asking: Pipe) -> None:
    kept: list[dict[str, Any]] = [{}, {"bash_id": "mine"}]
    for more in kept:
        told = refused(asking.call("bash", command=line, **more), "PROFILE_TOO_LOW")
        assert f"`{way}`" in told
        assert ("` for that" in told) is way.startswith("git_"), "no tool that could not do it"


@pytest.mark.parametrize("line", LOOKS)
def test_what_only_looks_or_makes_its_own_is_judged_as_before(line: str, asking: Pipe) -> None:
    assert "PROFILE_TOO_LOW" not in said(asking.call("bash", command=line))


def test_a_line_that_tools_can_do_names_all_of_them(asking: Pipe) -> None:
    told = refused(asking.call("bash", command="git add -A && git commit -m done && git status"), "PROFILE_TOO_LOW")
    assert "Call `git_add` and `git_commit` for that" in told


def test_a_commit_that_is_typed_into_a_shell_is_no_other(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello()
        staged(one, "swe")
        fine(one.call("bash", command="echo there", bash_id="mine"))
        told = refused(one.call("write_to_shell", shell_id="mine", content="git commit -m done\n"), "PROFILE_TOO_LOW")
        assert "`git_commit`" in told
        refused(one.call("write_to_shell", shell_id="mine", content="touch a", press_enter=True), "APPROVAL_REQUIRED")


@pytest.mark.parametrize("line", OTHERS)
def test_what_only_speaks_of_a_commit_is_judged_as_before(line: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello()
        fine(one.call("menu_enter", mode="swe"))
        assert "git_commit" not in said(one.call("bash", command=line))


@pytest.mark.parametrize("profile", ["trusted", "unrestricted"])
def test_higher_up_everything_is_as_it_was(profile: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", profile) as one:
        one.hello()
        staged(one, "swe")
        fine(one.call("git_commit", message="First"))
        told = said(one.call("bash", command="git -c user.name=Me commit --allow-empty -m Second"))
        assert "PROFILE_TOO_LOW" not in told
        assert "APPROVAL_REQUIRED" not in told


def test_lower_down_nobody_commits(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "restricted") as one:
        one.hello()
        fine(one.call("menu_enter", mode="git"))
        assert "git_commit" not in one.names()
        refused(one.call("git_commit", message="x"), "PROFILE_TOO_LOW")


def test_explain_says_the_same(repository: Path, home: Path) -> None:
    explained = typed(repository, home, "explain", "bash", '{"command": "git commit -m x"}')
    assert "git_commit" in explained.out
    assert "PROFILE_TOO_LOW" in explained.out
    assert "APPROVAL_REQUIRED" in typed(repository, home, "explain", "git_commit", '{"message": "x"}').out


BRANCH = "git branch topic"
NOT_THERE = "git add -A && git branch topic"


def test_a_place_of_one_mode_names_no_tool_that_it_does_not_have(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal", "--mode", "swe") as one:
        one.hello()
        for line in (BRANCH, NOT_THERE, "git branch -d topic"):
            told = refused(one.call("bash", command=line), "PROFILE_TOO_LOW")
            assert "`menugate profile trusted`" in told
            assert "`git_" not in told
        assert "Call `git_add` for that" in refused(one.call("bash", command="git add ."), "PROFILE_TOO_LOW")


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_of_another_mode_is_named_with_the_way_there(era: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello("opencode", era)
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        told = refused(one.call("bash", command=BRANCH), "PROFILE_TOO_LOW")
        assert 'Call `menu_enter` with {"mode": "git"}, then `git_create_branch` for that' in told
        told = refused(one.call("bash", command=BRANCH, menu=handle), "PROFILE_TOO_LOW")
        assert json.loads(told.partition("`menu_enter` with ")[2].partition(", then")[0]) == {
            "mode": "git",
            "menu": handle,
        }
        fine(one.call("menu_enter", mode="git", menu=handle))
        assert "git_create_branch" in one.names()


@pytest.mark.parametrize("line", [BRANCH, NOT_THERE, "git add .", "git commit -m x"])
def test_a_list_that_stays_is_shown_the_whole_call(line: str, repository: Path, home: Path) -> None:
    with served(repository, home, "--profile", "normal") as here, raw(here, name="some-client", era=MODERN) as one:
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        for where in ({"menu": handle}, {"mode": "swe"}):
            told = refused(one.call("menu_call", tool="bash", arguments={"command": line}, **where), "PROFILE_TOO_LOW")
            assert len(told) < 500
            (whole,) = re.findall(r"menu_call (\{.*\})", told)
            call = json.loads(whole)
            assert ("menu" in call) is ("menu" in where)
            again = said(one.call("menu_call", **call))
            assert not re.search("PROFILE_TOO_LOW|WRONG_MODE|do not fit", again), again
            fine(one.call("menu_enter", mode="swe", menu=handle))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("git checkout -b topic", "It creates the branch and does not switch to it"),
        ("git commit -am wip", "`git_commit` stages nothing"),
        ("git restore notes.md", "`git show HEAD:./FILE > FILE`"),
        ("git mv notes.md a.md", "The command `mv` moves a file"),
        ("git commit --dry-run", "`git_status` says what is staged"),
    ],
)
def test_every_client_is_told_what_the_tools_leave_out(line: str, says: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello("opencode")
        fine(one.call("menu_enter", mode="git"))
        fine(one.call("menu_enter", mode="swe"))
        assert says in refused(one.call("bash", command=line), "PROFILE_TOO_LOW")
    with served(repository, home, "--profile", "normal") as here, raw(here, name="some-client", era=MODERN) as one:
        told = refused(one.call("menu_call", tool="bash", arguments={"command": line}, mode="swe"), "PROFILE_TOO_LOW")
        assert says in told


def test_a_file_comes_back_without_writing_the_repository(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.hello()
        staged(one, "swe")
        names = git(repository, "ls-files").split()
        fine(one.call("bash", command=f"git show :./{names[0]} > copy.txt && cmp {names[0]} copy.txt"))
