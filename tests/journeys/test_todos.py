"""Is a todo done only when it was seen to be, by whom it may be, through every door, and for whom it belongs to?"""

import json
import os
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import warm
from tests.clients.clients import ERAS, MODERN
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import Served, command, environment, served

LONG = "It is written, and this is where one can see it."
EVIDENCE = [{"type": "file", "data": "src/main.py"}]
WRITES = "eval touch canary"
FILE = {"type": "file_exists", "params": {"path": "done.txt"}}


def menugate(workspace: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(command(*words, "--workspace", str(workspace)), environment(home), text=True)


def said(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


def code(result: dict[str, Any]) -> str | None:
    return said(result).split()[1].rstrip(":") if result["isError"] else None


def opened(one: Pipe, era: str = "legacy") -> str:
    one.hello(era=era)
    return one.call("menu_enter", mode="swe")["structuredContent"]["menu"]


def claimed(one: Pipe | Speaker, *criteria: dict[str, Any]) -> str:
    id = one.call("TodoCreate", content="Write it", acceptance_criteria=list(criteria))["structuredContent"]["id"]
    one.call("TodoStart", id=id)
    assert not one.call("TodoClaim", id=id, explanation=LONG, evidence=EVIDENCE)["isError"]
    return id


@pytest.mark.parametrize("era", ERAS)
def test_from_pending_to_verified(workspace: Path, home: Path, era: str) -> None:
    contains = {"type": "file_contains", "params": {"path": "done.txt", "text": "a+b (really)\nsecond"}}
    like = {"type": "file_contains", "params": {"path": "done.txt", "pattern": "sec.nd$"}}
    exits = {"type": "command_exit_zero", "params": {"command": "grep -q really done.txt"}}
    with pipe(workspace, home) as one:
        opened(one, era)
        made = one.call("TodoCreate", content="Write it\nwell", acceptance_criteria=[FILE, contains, like, exits])
        id = made["structuredContent"]["id"]
        assert said(made).startswith(f"[ ] {id}  Write it well\n")
        assert code(one.call("TodoClaim", id=id, explanation=LONG)) == "WRONG_STATE"
        assert code(one.call("TodoVerify", id=id)) == "WRONG_STATE"
        assert said(one.call("TodoStart", id=id)).startswith(f"[*] {id}")
        assert code(one.call("TodoClaim", id=id, explanation="d o n e   n o w   r e a l")) == "INVALID_ARGUMENTS"
        missed = one.call("TodoClaim", id=id, explanation=LONG, evidence=EVIDENCE, auto_verify=True)
        assert [result["verdict"] for result in missed["structuredContent"]["results"]] == ["failed"] * 4
        assert "it stays claimed" in said(missed)
        (workspace / "done.txt").write_text("a+b (really)\nsecond\n")
        assert code(one.call("TodoClaim", id=id, explanation=LONG, evidence=EVIDENCE)) == "NO_EVIDENCE"
        more = [*EVIDENCE, {"type": "note", "data": "and now it is there"}]
        assert not one.call("TodoClaim", id=id, explanation=LONG, evidence=more)["isError"]
        checked = one.call("TodoVerify", id=id)
        assert checked["structuredContent"]["status"] == "verified", said(checked)
        assert code(one.call("TodoVerify", id=id)) == "WRONG_STATE"
        listed = one.call("TodoRead")
        assert said(listed).splitlines()[1:] == [f"[x] {id}  Write it well"]
        counts = {"pending": 0, "in_progress": 0, "claimed": 0, "verified": 1}
        assert (listed["structuredContent"]["counts"], listed["structuredContent"]["changes"]) == (counts, 6)
    history = json.loads(menugate(workspace, home, "todos", "show", id, "--json").stdout)["history"]
    assert [row["event"] for row in history] == ["created", "started", "claimed", "not verified", "claimed", "verified"]
    tail = menugate(workspace, home, "audit", "tail", "--kind", "record").stdout
    assert f"todo {id} verified: claimed -> verified" in tail
    assert "really" not in tail


def test_another_session_learns_nothing_of_it(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here:
        mine, theirs = (Speaker(here).hello() for _ in range(2))
        for one in (mine, theirs):
            one.call("menu_enter", mode="swe")
        id = mine.call("TodoCreate", content="Mine")["structuredContent"]["id"]
        for tool, more in (
            ("TodoRead", {}),
            ("TodoStart", {}),
            ("TodoVerify", {}),
            ("TodoClaim", {"explanation": LONG}),
        ):
            known, unknown = (theirs.call(tool, id=one, **more) for one in (id, "0" * 8))
            assert code(known) == "UNKNOWN_ID"
            assert said(known).replace(id, "0" * 8) == said(unknown)
        assert "There are no todos" in said(theirs.call("TodoRead"))
        assert mine.call("TodoRead")["structuredContent"]["total"] == 1


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("todos")
    for name in ("work", "home"):
        (folder / name).mkdir()
    (folder / "work" / "src").mkdir()
    (folder / "work" / "src" / "main.py").write_text("def main():\n    return 42\n")
    (folder / "work" / ".env").write_text("KEY=secret\n")
    (folder / "work" / "Makefile").write_text("canary:\n\ttouch canary\n")
    # In place before the server looks round: from within a sandbox nothing new can be put at the top everywhere.
    (folder / "work" / "made").write_text("")
    config = folder / "home" / "menugate.yaml"
    config.write_text('rules:\n  block: ["bash(sudo:*)"]\n  deny: ["bash(make:*)", "grep(src/**)"]\n')
    with served(folder / "work", folder / "home", "--config", str(config)) as one:
        yield one


def test_where_nothing_is_remembered_nothing_is_left_and_a_handle_helps(here: Served) -> None:
    one = Speaker(here, MODERN).hello()
    lost = one.call("menu_call", tool="TodoCreate", mode="swe", arguments={"content": "Write it"})
    assert code(lost) == "UNKNOWN_HANDLE"
    assert "menu_enter" in said(lost)
    menu = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
    made = one.call("menu_call", tool="TodoCreate", menu=menu, arguments={"content": "Write it"})
    other = Speaker(here, MODERN).hello()
    listed = other.call("menu_read", tool="TodoRead", menu=menu)
    assert [todo["id"] for todo in listed["structuredContent"]["todos"]] == [made["structuredContent"]["id"]]


def test_it_is_there_after_a_restart_for_who_has_the_handle(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        menu = opened(one)
        id = claimed(one, FILE)
        one.process.kill()
    (workspace / "done.txt").write_text("x")
    with pipe(workspace, home) as again:
        again.hello()
        checked = again.call("menu_call", tool="TodoVerify", menu=menu, arguments={"id": id})
        assert checked["structuredContent"]["status"] == "verified"


def test_of_two_processes_that_claim_at_once_one_wins(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one, pipe(workspace, home) as other:
        menu = opened(one)
        other.hello()
        for turn in range(5):
            id = one.call("TodoCreate", content=f"Race {turn}")["structuredContent"]["id"]
            one.call("TodoStart", id=id)
            answers: list[dict[str, Any]] = []

            def claim(who: Pipe, id: str = id, answers: list[dict[str, Any]] = answers) -> None:
                evidence = [{"type": "note", "data": f"by {who.process.pid}"}]
                arguments = {"id": id, "explanation": LONG, "evidence": evidence}
                answers.append(who.call("menu_call", tool="TodoClaim", menu=menu, arguments=arguments))

            threads = [threading.Thread(target=claim, args=(who,)) for who in (one, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(str(code(answer)) for answer in answers) == ["None", "WRONG_STATE"]


@pytest.mark.parametrize(
    ("criterion", "why", "layer"),
    [
        (
            {"type": "command_exit_zero", "params": {"command": "eval touch canary"}},
            "APPROVAL_REQUIRED",
            "confirmation",
        ),
        ({"type": "command_exit_zero", "params": {"command": "make canary"}}, "RULE_DENIED", "rules"),
        ({"type": "command_exit_zero", "params": {"command": "sudo touch canary"}}, "BLOCKED", "block"),
        ({"type": "file_exists", "params": {"path": "../canary"}}, "PATH_REFUSED", ""),
        ({"type": "file_exists", "params": {"path": "/etc/passwd"}}, "PATH_REFUSED", ""),
        ({"type": "file_contains", "params": {"path": ".env", "text": "KEY"}}, "APPROVAL_REQUIRED", "confirmation"),
        ({"type": "file_contains", "params": {"path": "src/main.py", "text": "main"}}, "RULE_DENIED", "rules"),
    ],
)
def test_a_criterion_that_would_do_more_than_its_caller_may_does_nothing(
    here: Served, criterion: dict[str, Any], why: str, layer: str
) -> None:
    one = Speaker(here).hello()
    one.call("menu_enter", mode="swe")
    (result,) = one.call("TodoVerify", id=claimed(one, criterion))["structuredContent"]["results"]
    assert (result["verdict"], result.get("code"), result.get("layer")) == ("unclear", why, layer), result
    assert one.call("TodoRead")["structuredContent"]["counts"]["claimed"] == 1
    assert not (here.workspace / "canary").exists()
    assert not (here.workspace.parent / "canary").exists()


def test_a_criterion_that_does_no_more_than_that_is_checked(here: Served) -> None:
    """Beside the refused ones, so that those are not refused for another reason."""
    one = Speaker(here).hello()
    one.call("menu_enter", mode="swe")
    builds = {"type": "command_exit_zero", "params": {"command": "touch made"}}
    looks = {"type": "file_exists", "params": {"path": "src/main.py"}}
    checked = one.call("TodoVerify", id=claimed(one, builds, looks))
    assert checked["structuredContent"]["status"] == "verified", said(checked)


def test_the_profile_of_then_decides_and_not_the_one_it_was_written_under(workspace: Path, home: Path) -> None:
    writes = {"type": "command_exit_zero", "params": {"command": WRITES}}
    with pipe(workspace, home, "--profile", "trusted") as one:
        menu = opened(one)
        id = claimed(one, writes)
    with pipe(workspace, home, "--profile", "normal") as one:
        one.hello()
        checked = one.call("menu_call", tool="TodoVerify", menu=menu, arguments={"id": id})
        assert checked["structuredContent"]["results"][0]["code"] == "APPROVAL_REQUIRED"
    with pipe(workspace, home, "--profile", "restricted") as one:
        one.hello()
        hidden = one.call("menu_call", tool="TodoVerify", menu=menu, arguments={"id": id})
        assert code(hidden) == "PROFILE_TOO_LOW"
        runs = one.call(
            "menu_call", tool="TodoCreate", menu=menu, arguments={"content": "x", "acceptance_criteria": [writes]}
        )
        assert code(runs) == "PROFILE_TOO_LOW"
        looks = one.call(
            "menu_call", tool="TodoCreate", menu=menu, arguments={"content": "x", "acceptance_criteria": [FILE]}
        )
        assert not looks["isError"]
    assert not (workspace / "canary").exists()


@pytest.mark.parametrize(
    ("criterion", "says"),
    [
        ({"type": "command_exit_zero", "params": {"path": "x"}}, "needs `command`"),
        ({"type": "file_exists", "params": {"path": "x", "text": "y"}}, "takes no `text`"),
        ({"type": "file_contains", "params": {"path": "x"}}, "either `text` or `pattern`"),
        ({"type": "file_contains", "params": {"path": "x", "text": "y", "pattern": "z"}}, "either `text` or `pattern`"),
        ({"type": "test_passes", "params": {"test": "-p evil"}}, "read as an option"),
        ({"type": "test_passes", "params": {"test": "/etc/test.py"}}, "of this workspace"),
        ({"type": "pr_merged", "params": {}}, "pr_merged"),
        ({"type": "file_exists", "params": {"path": "x", "shell": "y"}}, "shell"),
    ],
)
def test_criteria_that_mean_nothing_are_refused_at_once(here: Served, criterion: dict[str, Any], says: str) -> None:
    one = Speaker(here).hello()
    one.call("menu_enter", mode="swe")
    refused = one.call("TodoCreate", content="x", acceptance_criteria=[criterion])
    assert code(refused) == "INVALID_ARGUMENTS"
    assert says in said(refused)
    assert one.call("TodoRead")["structuredContent"]["total"] == 0


def test_a_command_that_does_not_end_is_ended(workspace: Path, home: Path) -> None:
    waits = {"type": "command_exit_zero", "params": {"command": "tail -f notes.md", "seconds": 1}}
    with pipe(workspace, home) as one:
        opened(one)
        (result,) = one.call("TodoVerify", id=claimed(one, waits))["structuredContent"]["results"]
        assert result["verdict"] == "unclear"
        assert "did not end within 1 s" in result["said"]
        assert "tail -f" not in " ".join(children(one.process.pid))


def children(pid: int) -> list[str]:
    """What a process and those below it have started, as it was typed."""
    found: list[str] = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                status = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if int(status[1]) == pid:
                found += [line, *children(int(entry))]
    return found


def test_many_are_shown_by_the_page(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        opened(one)
        for number in range(103):
            one.call("TodoCreate", content=f"Number {number}")
        first = one.call("TodoRead")["structuredContent"]
        assert (len(first["todos"]), first["total"], first["next"]) == (100, 103, 100)
        last = one.call("TodoRead", offset=100, status="pending")["structuredContent"]
        assert [todo["content"] for todo in last["todos"]] == ["Number 100", "Number 101", "Number 102"]
        assert "next" not in last
