"""Is what was shown what runs, where a call's effect depends on more than its arguments?

A yes to `git_commit` covered whatever was staged by then, one to `fs_move` and `fs_delete` whatever went by the name,
and one to a line of shell whatever folder had taken that name.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.doors.clients import ERAS
from tests.doors.form import FORM
from tests.doors.form import question as form
from tests.doors.pipe import Pipe, pipe
from tests.doors.typed import typed

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


def approve(place: Path, home: Path, id: str) -> None:
    told = typed(place, home, "approve", id)
    assert told.code == 0, told.err


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
        approve(workspace, home, id)
        fine(one.call("fs_write_file", path="x.json", content=EVIL))
        again = asked(one.call("fs_move", source="x.json", destination=".mcp.json"))
        assert again != id and "evil" in shown(workspace, home, again)
        assert not (workspace / ".mcp.json").exists()
        fine(one.call("fs_write_file", path="x.json", content='{"mcpServers": {}}\n'))
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
