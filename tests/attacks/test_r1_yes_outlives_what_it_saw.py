"""Is what was shown what runs, where a call's effect depends on more than its arguments?

A yes to `git_commit` covered whatever was staged by then, one to `fs_move` and `fs_delete` whatever went by the name,
and one to a line of shell whatever folder had taken that name.
"""

import json
import os
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.form import FORM
from tests.clients.form import question as form
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

EVIL = '{"mcpServers": {"x": {"command": "evil"}}}\n'


@pytest.fixture
def repository(workspace: Path, home: Path) -> Path:
    (home / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.org\n")
    git(workspace, "init", "-q", "-b", "main")
    (workspace / "b.txt").write_text("one\ntwo\n")
    (workspace / "evil.txt").write_text("evil\n")
    return workspace


def git(folder: Path, *words: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, check=True, text=True).stdout


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def fine(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), said(answer)
    return said(answer)


def asked(answer: Mapping[str, Any]) -> str:
    assert answer["isError"] and "APPROVAL_REQUIRED" in said(answer), said(answer)
    return said(answer).partition("menugate approve ")[2].split("`")[0]


def shown(place: Path, home: Path, id: str) -> str:
    return typed(place, home, "approvals", "show", id).out


def approve(place: Path, home: Path, id: str) -> str:
    told = typed(place, home, "approve", id)
    assert told.code == 0, told.err
    return told.out


def committed(place: Path) -> list[str]:
    ran = subprocess.run(["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=place, capture_output=True, text=True)
    return ran.stdout.split()


def beginning(one: Pipe, mode: str, era: str = "legacy") -> None:
    one.hello("opencode", era)
    fine(one.call("menu_enter", mode=mode))


def test_a_commit_shows_what_is_staged_and_the_yes_is_for_that(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["b.txt"]))
        id = asked(one.call("git_commit", message="First"))
        question = shown(repository, home, id)
        for part in ('branch: "main"', "the first commit", "added", "b.txt", "+2 -0"):
            assert part in question, part
        assert "evil" not in question
        approve(repository, home, id)
        fine(one.call("git_add", files=["evil.txt"]))
        again = asked(one.call("git_commit", message="First"))
        assert again != id
        assert "evil.txt" in shown(repository, home, again)
        assert committed(repository) == []
        # Something else instead of it is no more what was shown than something besides it.
        fine(one.call("git_reset"))
        fine(one.call("git_add", files=["evil.txt"]))
        asked(one.call("git_commit", message="First"))
        # As it was, the first yes is good.
        fine(one.call("git_reset"))
        fine(one.call("git_add", files=["b.txt"]))
        fine(one.call("git_commit", message="First"))
    assert committed(repository) == ["b.txt"]


def test_a_commit_stays_on_the_branch_it_was_shown_for(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["b.txt"]))
        id = asked(one.call("git_commit", message="First"))
        approve(repository, home, id)
        git(repository, "symbolic-ref", "HEAD", "refs/heads/release")
        assert '"release"' in shown(repository, home, asked(one.call("git_commit", message="First")))
    assert committed(repository) == []


@pytest.mark.parametrize("era", ERAS)
def test_what_is_staged_while_the_form_is_open_is_not_committed(era: str, repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        one.able = FORM
        one.hello(era=era)
        for tool, more in (("menu_enter", {"mode": "git"}), ("git_add", {"files": ["b.txt"]})):
            fine(one.call(tool, **more))
        first = form(one, {"name": "git_commit", "arguments": {"message": "First"}})
        assert "b.txt" in first.params["message"]
        assert "scope" not in first.params["requestedSchema"]["properties"], "for the session it would be for another"
        git(repository, "add", "evil.txt")
        late = first.accept()["result"]
        if era == "legacy":
            assert "APPROVAL_REQUIRED" in said(late)
        else:
            ((_, anew),) = late["inputRequests"].items()
            assert "evil.txt" in anew["params"]["message"]
    assert committed(repository) == []


NAMED = ("-c", "user.name=Grace", "-c", "user.email=grace@example.org")


def test_a_commit_shows_what_lines_do_not(repository: Path, home: Path) -> None:
    for name in ("run.sh", "stop.sh", "moved.txt"):
        (repository / name).write_text(f"{name}\n" * 20)
    (repository / "run.sh").chmod(0o755)
    git(repository, "add", ".")
    git(repository, *NAMED, "commit", "-qm", "base")
    (repository / "run.sh").chmod(0o644)
    (repository / "stop.sh").chmod(0o755)
    (repository / "moved.txt").rename(repository / "there.txt")
    (repository / "words").symlink_to("/etc/passwd")
    (repository / "odd").symlink_to("a\nb.txt\x1b[0m\u202e")
    (repository / "again").symlink_to("b.txt")
    (repository / "img.bin").write_bytes(bytes(range(256)) * 40)
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["."]))
        id = asked(one.call("git_commit", message="Second"))
        question = shown(repository, home, id)
        approve(repository, home, id)
        result = fine(one.call("git_commit", message="Second"))
    for part in (
        "7 files changed",
        "run.sh  +0 -0  (no longer executable)",
        "stop.sh  +0 -0  (now executable)",
        "moved.txt -> there.txt",
        "words  +1 -0  (link to /etc/passwd)",
        "again  +1 -0  (link to b.txt)",
        "img.bin  (10,240 bytes)",
    ):
        assert part in question, part
        assert part in result, part
    for text in (question, result):
        assert "\x1b" not in text
    assert "\u202e" not in question, "a person sees it written out"
    assert "link to a\\nb.txt\\x1b[0m" in result


def test_a_commit_shows_who_makes_it_and_the_yes_is_for_that(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["b.txt"]))
        id = asked(one.call("git_commit", message="First"))
        assert "Grace Hopper <grace@example.org>" in shown(repository, home, id)
        approve(repository, home, id)
        git(repository, "config", "author.name", "Somebody")
        again = shown(repository, home, asked(one.call("git_commit", message="First")))
        assert "Somebody <grace@example.org>" in again
        assert 'committed by: "Grace Hopper <grace@example.org>"' in again
    assert committed(repository) == []


def test_looking_at_a_hostile_repository_runs_nothing_of_it(repository: Path, home: Path) -> None:
    trap = repository / "trap.sh"
    trap.write_text("#!/bin/sh\necho x >> trapped\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "diff.bad.textconv", "diff.bad.command", "core.pager"):
        git(repository, "config", name, f"{repository}/trap.sh")
    (repository / ".gitattributes").write_text("* diff=bad\n")
    git(repository, "-c", "core.fsmonitor=false", "add", "b.txt")
    (repository / "trapped").unlink(missing_ok=True)
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        asked(one.call("git_commit", message="First"))
    assert not (repository / "trapped").exists()


def test_a_file_that_is_moved_to_a_protected_place_is_shown_and_bound(workspace: Path, home: Path) -> None:
    source = workspace / "x.json"
    source.write_text('{"mcpServers": {}}\n')
    with pipe(workspace, home) as one:
        beginning(one, "data")
        id = asked(one.call("fs_move", source="x.json", destination=".mcp.json"))
        question = shown(workspace, home, id)
        assert json.dumps('{"mcpServers": {}}\n') in question
        assert "a file, 19 bytes, SHA-256 " in question
        assert "if what the question shows still holds" in approve(workspace, home, id)
        fine(one.call("fs_move", source="x.json", destination="y.json"))
        fine(one.call("fs_write_file", path="x.json", content=EVIL))
        again = asked(one.call("fs_move", source="x.json", destination=".mcp.json"))
        assert again != id and "evil" in shown(workspace, home, again)
        assert not (workspace / ".mcp.json").exists()
        # The same words in another file are not what was shown either; the file itself is.
        fine(one.call("fs_write_file", path="x.json", content='{"mcpServers": {}}\n'))
        asked(one.call("fs_move", source="x.json", destination=".mcp.json"))
        fine(one.call("fs_move", source="x.json", destination="z.json"))
        fine(one.call("fs_move", source="y.json", destination="x.json"))
        fine(one.call("fs_move", source="x.json", destination=".mcp.json"))
    assert "evil" not in (workspace / ".mcp.json").read_text()


def test_a_folder_that_is_moved_to_a_protected_place_is_bound_with_its_files(workspace: Path, home: Path) -> None:
    (workspace / "x").mkdir()
    (workspace / "x" / "tasks.json").write_text("{}\n")
    with pipe(workspace, home) as one:
        beginning(one, "data")
        id = asked(one.call("fs_move", source="x", destination=".vscode"))
        assert "x/tasks.json" in shown(workspace, home, id)
        approve(workspace, home, id)
        fine(one.call("fs_write_file", path="x/tasks.json", content="[]\n"))
        asked(one.call("fs_move", source="x", destination=".vscode"))
    assert not (workspace / ".vscode").exists()


def test_a_file_that_took_the_name_is_not_deleted(workspace: Path, home: Path) -> None:
    (workspace / "f").write_text("scrap\n")
    (workspace / "core").write_text("years of work\n")
    with pipe(workspace, home, "--profile", "trusted") as one:
        beginning(one, "data")
        id = asked(one.call("fs_delete", path="f"))
        assert "a file, 6 bytes, SHA-256 " in shown(workspace, home, id)
        approve(workspace, home, id)
        fine(one.call("fs_move", source="f", destination="f0"))
        fine(one.call("fs_move", source="core", destination="f"))
        asked(one.call("fs_delete", path="f"))
        assert (workspace / "f").read_text() == "years of work\n"
        fine(one.call("fs_move", source="f", destination="core"))
        fine(one.call("fs_move", source="f0", destination="f"))
        fine(one.call("fs_delete", path="f"))


def test_an_empty_folder_that_took_the_name_is_not_deleted(workspace: Path, home: Path) -> None:
    for name in ("d", "e"):
        (workspace / name).mkdir()
    with pipe(workspace, home, "--profile", "trusted") as one:
        beginning(one, "data")
        approve(workspace, home, asked(one.call("fs_delete", path="d")))
        fine(one.call("fs_move", source="d", destination="d0"))
        fine(one.call("fs_move", source="e", destination="d"))
        asked(one.call("fs_delete", path="d"))
        assert (workspace / "d").exists()


def test_a_shell_that_stays_goes_nowhere_else_unsaid(workspace: Path, home: Path) -> None:
    (workspace / "build").mkdir()
    (workspace / "keep.txt").write_text("keep\n")
    with pipe(workspace, home, "--profile", "normal") as one:
        beginning(one, "swe")
        fine(one.call("bash", command="ls", bash_id="k"))
        for command in ("rm -rf ./*", "ls"):
            told = one.call("bash", command=command, bash_id="k", exec_dir="build")
            assert told["isError"] and "INVALID_ARGUMENTS" in said(told), said(told)
            assert f"stands in `{workspace.resolve()}`" in said(told) and "`cd" in said(told)
        assert json.loads(typed(workspace, home, "approvals", "--json").out) == []
        fine(one.call("bash", command="ls", bash_id="k", exec_dir="."))
        fine(one.call("bash", command="cd build", bash_id="k"))
        fine(one.call("bash", command="ls", bash_id="k", exec_dir="build"))
        # A new one begins where it is told to, also under a name that was there.
        fine(one.call("bash", command="ls", bash_id="k", exec_dir=".", run_in_background=True))
    assert (workspace / "keep.txt").exists()


def test_a_folder_that_took_the_name_of_another_is_another(workspace: Path, home: Path) -> None:
    for name in ("a", "b"):
        (workspace / name).mkdir()
        (workspace / name / "s.sh").write_text(f"echo {name} > ../ran\n")
    with pipe(workspace, home, "--profile", "normal") as one:
        beginning(one, "swe")
        approve(workspace, home, asked(one.call("bash", command="sh s.sh", exec_dir="a")))
        for before, after in (("a", "c"), ("b", "a"), ("c", "b")):
            (workspace / before).rename(workspace / after)
        asked(one.call("bash", command="sh s.sh", exec_dir="a"))
        assert not (workspace / "ran").exists()
        for before, after in (("a", "c"), ("b", "a"), ("c", "b")):
            (workspace / before).rename(workspace / after)
        fine(one.call("bash", command="sh s.sh", exec_dir="a"))
    assert (workspace / "ran").read_text() == "a\n"


ASIDE = range(8)
"""How many times one call races another: what gets in once gets in within a few."""


def test_what_is_staged_while_the_yes_is_redeemed_is_not_committed(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        for turn in ASIDE:
            good = f"good {turn}\n"
            (repository / "a.txt").write_text(good)
            fine(one.call("git_add", files=["a.txt"]))
            approve(repository, home, asked(one.call("git_commit", message=f"Turn {turn}")))
            (repository / "a.txt").write_text(f"EVIL {turn}\n")
            commit = {"name": "git_commit", "arguments": {"message": f"Turn {turn}"}}
            answers: dict[int, Mapping[str, Any]] = {}
            first = one.send("tools/call", commit)
            # Ever later, from before the last look to after the commit.
            for _ in range(turn):
                answer(one, one.send("tools/call", {"name": "git_status", "arguments": {}}), answers)
            then = one.send("tools/call", {"name": "git_add", "arguments": {"files": ["a.txt"]}})
            made, added = (answer(one, sent, answers) for sent in (first, then))
            if not made.get("isError"):
                assert git(repository, "show", "HEAD:a.txt") == good
            else:
                assert any(code in said(made) for code in ("APPROVAL_REQUIRED", "STALE")), said(made)
            assert "EVIL" not in git(repository, "log", "-p", "--all")
            # What was staged meanwhile stays staged.
            if not added.get("isError"):
                assert "EVIL" in git(repository, "show", ":a.txt")
            assert not list((repository / ".git").glob(".menugate*"))


def answer(one: Pipe, sent: int, answers: dict[int, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The answer to one of several calls that are under way."""
    while sent not in answers:
        message = one.message()
        if "result" in message:
            answers[message["id"]] = message["result"]
    return answers[sent]


def test_what_is_staged_after_the_last_look_stays_staged(repository: Path, home: Path) -> None:
    """The hook stands where another call would: between the last look and the commit."""
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho EVIL > b.txt\nunset GIT_INDEX_FILE\ngit add b.txt\n")
    hook.chmod(0o755)
    with pipe(repository, home, "--profile", "trusted") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["b.txt"]))
        assert typed(repository, home, "control", "manual").code == 0
        approve(repository, home, asked(one.call("git_commit", message="First", run_hooks=True)))
        fine(one.call("git_commit", message="First", run_hooks=True))
    assert git(repository, "show", "HEAD:b.txt") == "one\ntwo\n"
    assert git(repository, "show", ":b.txt") == "EVIL\n"


def test_what_a_hook_stages_is_committed_and_no_longer_staged(repository: Path, home: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho formatted > b.txt\ngit add b.txt\n")
    hook.chmod(0o755)
    with pipe(repository, home, "--profile", "trusted") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["b.txt"]))
        assert typed(repository, home, "control", "manual").code == 0
        approve(repository, home, asked(one.call("git_commit", message="First", run_hooks=True)))
        fine(one.call("git_commit", message="First", run_hooks=True))
    assert git(repository, "show", "HEAD:b.txt") == "formatted\n"
    assert git(repository, "diff", "--cached", "--name-only") == ""


def test_a_commit_with_hooks_shows_them_and_the_yes_is_for_those(repository: Path, home: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    call = {"message": "First", "run_hooks": True}
    with pipe(repository, home, "--profile", "trusted") as one:
        beginning(one, "git")
        fine(one.call("git_add", files=["b.txt"]))
        assert typed(repository, home, "control", "manual").code == 0
        first = asked(one.call("git_commit", **call))
        assert "pre-commit; they may change what is committed" in shown(repository, home, first)
        approve(repository, home, first)
        hook.write_text("#!/bin/sh\ntouch ran\n")
        second = asked(one.call("git_commit", **call))
        assert second != first and not (repository / "ran").exists()
        approve(repository, home, second)
        fine(one.call("git_commit", **call))
    assert (repository / "ran").exists()


def test_an_approved_merge_has_both_its_parents_and_leaves_a_clean_index(repository: Path, home: Path) -> None:
    named = ("-c", "user.name=Grace", "-c", "user.email=grace@example.org")
    git(repository, "config", "core.splitIndex", "true")
    git(repository, "add", "b.txt")
    git(repository, *named, "commit", "-qm", "base")
    git(repository, "checkout", "-qb", "side")
    git(repository, "add", "evil.txt")
    git(repository, *named, "commit", "-qm", "side")
    git(repository, "checkout", "-q", "main")
    (repository / "c.txt").write_text("c\n")
    (repository / "later.txt").write_text("later\n")
    git(repository, "add", "c.txt")
    git(repository, *named, "commit", "-qm", "main")
    git(repository, *named, "merge", "-q", "--no-commit", "side")
    git(repository, "add", "--intent-to-add", "later.txt")
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")
        id = asked(one.call("git_commit", message="Merge side"))
        assert "unfinished merge" in shown(repository, home, id)
        approve(repository, home, id)
        fine(one.call("git_commit", message="Merge side"))
    assert len(git(repository, "log", "-1", "--format=%P").split()) == 2
    assert git(repository, "status", "--porcelain", "-uno") == " A later.txt\n"
    assert not (repository / ".git" / "MERGE_HEAD").exists()


def test_nobody_is_asked_about_a_commit_that_cannot_be_made(repository: Path, home: Path) -> None:
    with pipe(repository, home, "--profile", "normal") as one:
        beginning(one, "git")

        def refused(word: str) -> None:
            told = one.call("git_commit", message="First")
            assert told["isError"] and "WRONG_STATE" in said(told) and word in said(told), said(told)
            assert json.loads(typed(repository, home, "approvals", "--json").out) == []

        refused("Nothing is staged")
        fine(one.call("git_add", files=["b.txt"]))
        (home / ".gitconfig").unlink()
        refused("no name or email address")
        blob = git(repository, "rev-parse", ":b.txt").strip()
        entries = "".join(f"100644 {blob} {stage}\tb.txt\n" for stage in (1, 2, 3))
        git(repository, "rm", "-q", "--cached", "b.txt")
        subprocess.run(["git", "update-index", "--index-info"], cwd=repository, input=entries, text=True, check=True)
        refused("in conflict")


def plant(good: Path, evil: Path, turn: int) -> None:
    """Files of their own, whatever names the last race left to one another."""
    for path in (good, evil, good.with_name("spare")):
        path.unlink(missing_ok=True)
    good.write_text(f"good {turn}\n")
    evil.write_text("EVIL\n")


def race(one: Pipe, workspace: Path, call: dict[str, Any], good: Path, evil: Path) -> Mapping[str, Any]:
    """Redeems the yes while another thread puts `evil` in the place of `good`, over and over."""
    done = threading.Event()

    def swap() -> None:
        spare = workspace / "spare"
        while not done.is_set():
            for before, after in ((good, spare), (evil, good), (good, evil), (spare, good)):
                # Not by `rename`, which would take away what was just put back under that name.
                with suppress(OSError):
                    os.link(before, after)
                    before.unlink()

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        return one.request("tools/call", call)["result"]
    finally:
        done.set()
        swapping.join()


def test_what_takes_the_name_while_the_yes_is_redeemed_is_not_moved(workspace: Path, home: Path) -> None:
    good, evil, there = workspace / "x", workspace / "evil", workspace / ".envrc"
    call = {"name": "fs_move", "arguments": {"source": "x", "destination": ".envrc"}}
    with pipe(workspace, home) as one:
        beginning(one, "data")
        for turn in ASIDE:
            plant(good, evil, turn)
            approve(workspace, home, asked(one.call("fs_move", source="x", destination=".envrc")))
            race(one, workspace, call, good, evil)
            assert not there.exists() or there.read_text() == f"good {turn}\n"
            for path in (there, *workspace.glob(".menugate-held-*")):
                path.unlink(missing_ok=True)


def test_what_takes_the_name_while_the_yes_is_redeemed_is_not_deleted(workspace: Path, home: Path) -> None:
    good, evil = workspace / "x", workspace / "evil"
    call = {"name": "fs_delete", "arguments": {"path": "x"}}
    with pipe(workspace, home, "--profile", "trusted") as one:
        beginning(one, "data")
        for turn in ASIDE:
            plant(good, evil, turn)
            approve(workspace, home, asked(one.call("fs_delete", path="x")))
            race(one, workspace, call, good, evil)
            left = [path.read_text() for path in workspace.iterdir() if path.is_file()]
            assert "EVIL\n" in left


def test_what_is_approved_is_moved_and_deleted_as_ever(workspace: Path, home: Path) -> None:
    (workspace / "x" / "deep").mkdir(parents=True)
    (workspace / "x" / "a.json").write_text("{}\n")
    (workspace / "x" / "deep" / ".env").write_text("KEY=1\n")
    (workspace / "link").symlink_to("x")
    (workspace / "empty").mkdir()
    with pipe(workspace, home, "--profile", "trusted") as one:
        beginning(one, "data")
        for tool, arguments in (
            ("fs_move", {"source": "x", "destination": ".vscode"}),
            ("fs_move", {"source": ".vscode/deep/.env", "destination": "secrets/.env"}),
            ("fs_delete", {"path": "link"}),
            ("fs_delete", {"path": "empty"}),
            ("fs_delete", {"path": "secrets/.env"}),
        ):
            approve(workspace, home, asked(one.call(tool, **arguments)))
            fine(one.call(tool, **arguments))
        # Nor is anything lost where it cannot be done: the name is taken.
        (workspace / "y").write_text("y\n")
        approve(workspace, home, asked(one.call("fs_move", source="y", destination=".envrc")))
        (workspace / ".envrc").write_text("mine\n")
        told = one.call("fs_move", source="y", destination=".envrc")
        assert told["isError"] and "ALREADY_EXISTS" in said(told)
    assert (workspace / "y").read_text() == "y\n"
    assert (workspace / ".vscode" / "a.json").exists()
    assert not (workspace / "link").is_symlink()
    assert not list(workspace.rglob(".menugate-held-*"))
