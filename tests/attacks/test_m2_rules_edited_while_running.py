"""M2: a rule written while a server ran did not hold there, and every command of the person's said that it did."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.doors.clients import MODERN, held, over_http, text
from tests.doors.pipe import Pipe, pipe
from tests.doors.served import served
from tests.doors.typed import Typed, typed

ERAS = ("legacy", MODERN)
LONGEST = 60.0
DENIES = "rules:\n  deny:\n    - bash(touch:*)\n"


@pytest.fixture
def usual(home: Path) -> Path:
    """Where the operator's file usually lies; it does not exist yet."""
    folder = home / ".config" / "menugate"
    folder.mkdir(parents=True)
    return folder / "menugate.yaml"


@pytest.fixture
def named(tmp_path: Path) -> Path:
    path = tmp_path / "named.yaml"
    path.write_text("profile: trusted\n")
    return path


def ran(one: Pipe, command: str = "touch made") -> str:
    """What a command comes to at a running server, through a carrier: the same in both eras."""
    answer = one.call("menu_call", tool="bash", arguments={"command": command}, mode="swe")
    return answer["content"][0]["text"].partition("\n")[0]


def until(found: Callable[[], bool]) -> None:
    """Until it is so; the hang guard is far above the half second that is promised."""
    end = time.monotonic() + LONGEST
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


def running(workspace: Path, home: Path) -> AbstractContextManager[Pipe]:
    return pipe(workspace, home, "--profile", "trusted")


def status(workspace: Path, home: Path, *words: str) -> dict[str, Any]:
    told = typed(workspace, home, "status", "--json", *words)
    assert told.code == 0, told.err
    return json.loads(told.out)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("which", ["the usual one", "the one that was named", "the workspace's own"])
def test_the_next_call_is_judged_by_what_was_written_before_it(
    workspace: Path, home: Path, usual: Path, named: Path, era: str, which: str
) -> None:
    flags = ["--config", str(named)] if which == "the one that was named" else []
    with pipe(workspace, home, "--profile", "trusted", *flags) as one:
        one.hello("mcp", era)
        assert "Error" not in ran(one)
        (workspace / "made").unlink()
        path = {"the usual one": usual, "the one that was named": named}.get(which, workspace / "menugate.yaml")
        path.write_text(DENIES)
        # Nobody waits: the call that follows the writing is refused.
        assert ran(one).startswith("Error RULE_DENIED")
        path.write_text(DENIES.replace("touch", "mkdir"))
        assert ran(one, "mkdir folder").startswith("Error RULE_DENIED")
        until(lambda: "Error" not in ran(one))
    assert not (workspace / "folder").exists()


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_over_http_as_well(workspace: Path, home: Path, usual: Path, era: str) -> None:
    with served(workspace, home, "--profile", "trusted") as server:
        async with held(over_http(server), era) as client:
            call = {"tool": "bash", "arguments": {"command": "touch made"}, "mode": "swe"}
            assert "Error" not in text(await client.call("menu_call", **call))
            usual.write_text(DENIES)
            assert text(await client.call("menu_call", **call)).startswith("Error RULE_DENIED")


def test_lists_follow_and_hosts_are_told(workspace: Path, home: Path, usual: Path) -> None:
    with running(workspace, home) as one:
        one.hello("opencode")
        one.call("menu_enter", mode="swe")
        assert "Write" in one.names()
        usual.write_text("rules:\n  deny: [Write]\n")
        while one.message().get("method") != "notifications/tools/list_changed":
            pass
        assert "Write" not in one.names()


def test_ceilings_and_budgets_and_where_the_person_starts(workspace: Path, home: Path, named: Path) -> None:
    with pipe(workspace, home, "--config", str(named)) as one:
        one.hello("mcp")
        assert "Error" not in ran(one)
        for said, code in [
            ("max_profile: restricted\n", "PROFILE_TOO_LOW"),
            ("profile: restricted\n", "PROFILE_TOO_LOW"),
            ("profile: trusted\nwork_mode: research\n", "READ_ONLY_WORK"),
        ]:
            named.write_text(said)
            until(lambda code=code: ran(one).startswith(f"Error {code}"))
            named.write_text("profile: trusted\n")
            until(lambda: "Error" not in ran(one))
        named.write_text("profile: trusted\nbudget: {calls: 1}\n")
        assert ran(one).startswith("Error BUDGET_SPENT")


WRONG = {
    "half written": "rules:\n  deny:\n    - bash(touch:*)\n    - 'bash(mk",
    "invalid": "rules:\n  deny: [Raed]\n",
    "empty": "",
    "gone": None,
}


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("which", ["operator's", "workspace's"])
def test_the_last_valid_rules_stay_in_force_and_status_says_so(
    workspace: Path, home: Path, usual: Path, how: str, which: str
) -> None:
    path = usual if which == "operator's" else workspace / "menugate.yaml"
    path.write_text(DENIES)
    with running(workspace, home) as one:
        one.hello("mcp")
        assert ran(one).startswith("Error RULE_DENIED")
        said = WRONG[how]
        path.unlink() if said is None else path.write_text(said)
        for _ in range(3):
            assert ran(one).startswith("Error RULE_DENIED")
        until(lambda: status(workspace, home)["servers"][0]["fault"] is not None)
        found = status(workspace, home)
        assert str(path) in found["servers"][0]["fault"]
        assert found["rules"] == 1
        told = typed(workspace, home, "status").out
        assert f"Process {one.process.pid} goes on under the last valid rules" in told
        # Who asks what would be decided is told what is decided.
        call = json.dumps({"command": "touch made"})
        answer = json.loads(typed(workspace, home, "explain", "bash", call, "--json").out)
        assert (answer["code"], answer["server"]) == ("RULE_DENIED", one.process.pid)
        listed = typed(workspace, home, "rules", "list")
        assert "bash(touch:*)" in listed.out
        assert "goes on under the last valid rules" in listed.err
        examined = typed(workspace, home, "doctor")
        assert examined.code == 1
        assert "goes on under the last valid rules" in examined.out
        path.write_text(DENIES)
        until(lambda: status(workspace, home)["servers"][0]["fault"] is None)
        assert ran(one).startswith("Error RULE_DENIED")


FAULTY = {"half written": "x: [\n", "invalid": "rules: {deny: [Raed]}\n", "no text": "\0"}
"""Each of them where there was no file when the server started."""
NARROWER = [("profile", "restricted"), ("mode", "plan"), ("control", "manual"), ("steer", "profile", "restricted")]


@pytest.mark.parametrize("how", FAULTY)
@pytest.mark.parametrize("which", ["operator's", "workspace's"])
def test_where_there_was_no_file_that_is_what_stays_in_force(
    workspace: Path, home: Path, usual: Path, how: str, which: str
) -> None:
    path = usual if which == "operator's" else workspace / "menugate.yaml"
    with running(workspace, home) as one:
        one.hello("mcp")
        assert "Error" not in ran(one)
        path.write_text(FAULTY[how])
        until(lambda: all(each["fault"] for each in status(workspace, home)["servers"]))
        assert "Error" not in ran(one)
        says = f"Process {one.process.pid} goes on under the last valid rules"
        found = status(workspace, home)
        assert (found["rules"], str(path) in found["servers"][0]["fault"]) == (0, True)
        call = json.dumps({"command": "touch made"})
        answer = json.loads(typed(workspace, home, "explain", "bash", call, "--json").out)
        assert (answer["verdict"], answer["server"]) == ("allow", one.process.pid)
        for words in (["status"], ["explain", "bash", call], ["rules", "list"], ["trust", "--show"], ["doctor"]):
            told = typed(workspace, home, *words)
            assert (told.code, says in told.out + told.err) == (int(words == ["doctor"]), True), words
        # What looks at the files alone says what is wrong there, and nothing that is not so.
        for words in (["check"], ["trust"]):
            told = typed(workspace, home, *words)
            head = f"nothing starts until it is put right, and process {one.process.pid} goes on under the last valid"
            assert (told.code, head in told.out + told.err) == (1, True), words
        path.unlink()
        until(lambda: status(workspace, home)["servers"][0]["fault"] is None)
        path.write_text(DENIES)
        assert ran(one).startswith("Error RULE_DENIED")


@pytest.mark.parametrize("before", [None, "profile: trusted\n"], ids=["no file", "a valid one"])
@pytest.mark.parametrize("also", [False, True], ids=["operator's alone", "both"])
def test_the_person_narrows_beside_a_faulty_file_as_the_server_judges(
    workspace: Path, home: Path, usual: Path, before: str | None, also: bool
) -> None:
    if before is not None:
        usual.write_text(before)
    with running(workspace, home) as one:
        one.hello("mcp")
        assert "Error" not in ran(one)
        usual.write_text(FAULTY["half written"])
        if also:
            (workspace / "menugate.yaml").write_text(FAULTY["invalid"])
        until(lambda: bool(status(workspace, home)["servers"][0]["fault"]))
        for words in NARROWER:
            told = typed(workspace, home, *words)
            assert told.code == 0, told.err
            assert f"Process {one.process.pid} goes on under the last valid rules" in told.err
            assert "nothing" not in told.err
        until(lambda: ran(one).startswith("Error"))
        assert "profile restricted" in typed(workspace, home, "profile").out
    told = typed(workspace, home, "profile", "restricted")
    assert (told.code, "nothing runs until" in told.err) == (1, True)


def test_beside_several_servers_that_differ_status_goes_by_one_of_them(
    workspace: Path, home: Path, usual: Path, named: Path
) -> None:
    with running(workspace, home) as one, pipe(workspace, home, "--config", str(named)) as other:
        one.hello("mcp")
        other.hello("mcp")
        assert "Error" not in ran(one) + ran(other)
        until(lambda: len(status(workspace, home)["servers"]) == 2)
        usual.write_text(FAULTY["half written"])
        until(lambda: any(each["fault"] for each in status(workspace, home)["servers"]))
        assert typed(workspace, home, "profile", "restricted").code == 0


def test_a_fault_in_the_folders_file_does_not_hold_up_the_operators(workspace: Path, home: Path, usual: Path) -> None:
    with running(workspace, home) as one:
        one.hello("mcp")
        assert "Error" not in ran(one)
        (workspace / "menugate.yaml").write_text("rules: {deny: [Raed]}\n")
        usual.write_text(DENIES)
        assert ran(one).startswith("Error RULE_DENIED")


def test_trust_given_and_taken_while_it_runs(workspace: Path, home: Path) -> None:
    (workspace / "menugate.yaml").write_text("rules:\n  allow: [bash(touch:*), Write]\n")
    typed(workspace, home, "mode", "chat")
    with running(workspace, home) as one:
        one.hello("mcp")
        assert ran(one).startswith("Error APPROVAL_REQUIRED")
        assert typed(workspace, home, "trust").code == 0
        until(lambda: "Error" not in ran(one))
        assert typed(workspace, home, "untrust").code == 0
        assert ran(one).startswith("Error APPROVAL_REQUIRED")


def test_what_waits_for_a_restart_is_named_with_its_server(workspace: Path, home: Path, usual: Path) -> None:
    usual.write_text("profile: trusted\n")
    with running(workspace, home) as one:
        one.hello("mcp")
        ran(one)
        usual.write_text("profile: trusted\nsandbox: required\nlimits: {processes: 50}\nrules: {deny: [Write]}\n")
        until(lambda: bool(status(workspace, home)["servers"][0]["restart"]))
        assert status(workspace, home)["servers"][0]["restart"] == ["limits", "sandbox"]
        says = f"Process {one.process.pid} runs without the changes to `limits`, `sandbox`"
        for words in (["status"], ["doctor"], ["rules", "list"], ["explain", "Read"]):
            answer: Typed = typed(workspace, home, *words)
            assert says in answer.out + answer.err, words


def test_explain_doctor_and_rules_judge_by_the_file_that_the_server_was_given(
    workspace: Path, home: Path, named: Path
) -> None:
    named.write_text(f"profile: trusted\n{DENIES}")
    call = json.dumps({"command": "touch made"})
    with pipe(workspace, home, "--config", str(named)) as one:
        one.hello("mcp")
        assert ran(one).startswith("Error RULE_DENIED")
        answer = typed(workspace, home, "explain", "bash", call)
        assert "deny" in answer.out.partition("\n")[0]
        assert str(named) in answer.err
        assert f"{named}:4" in typed(workspace, home, "rules", "list").out
        assert status(workspace, home)["config"] == str(named)
        assert "1 rules" in typed(workspace, home, "doctor").out
        # Another one that was given nothing: now it has to be said which is meant.
        with pipe(workspace, home) as other:
            other.hello("mcp")
            until(lambda: len(status(workspace, home)["servers"]) == 2)
            unclear = typed(workspace, home, "explain", "bash", call)
            assert unclear.code == 1
            assert str(named) in unclear.err
            for server, verdict in ((one, "deny"), (other, "allow")):
                pid = str(server.process.pid)
                said = json.loads(typed(workspace, home, "explain", "bash", call, "--json", "--server", pid).out)
                assert said["verdict"] == verdict
    answer = typed(workspace, home, "explain", "bash", call)
    assert "deny" not in answer.out.partition("\n")[0]


def test_a_server_that_was_killed_is_not_judged_by(workspace: Path, home: Path, named: Path) -> None:
    named.write_text(f"profile: trusted\n{DENIES}")
    with pipe(workspace, home, "--config", str(named)) as one:
        one.hello("mcp")
        until(lambda: len(status(workspace, home)["servers"]) == 1)
        one.process.kill()
        one.process.wait()
        assert status(workspace, home)["servers"] == []
        assert typed(workspace, home, "rules", "list").out.startswith("There are no rules")
