"""M2: a rule written while a server ran did not hold there, and every command of the person's said that it did."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN, held, over_http, text
from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import served
from tests.clients.typed import Typed, typed
from tests.clients.waiting import wait_until

ERAS = ("legacy", MODERN)
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
        wait_until(lambda: "Error" not in ran(one))
    assert not (workspace / "folder").exists()


@pytest.mark.parametrize("era", ERAS)
def test_a_rule_written_while_a_question_waits_holds_for_where_a_link_leads(
    workspace: Path, home: Path, usual: Path, era: str
) -> None:
    usual.write_text("work_mode: chat\n")
    for folder in ("vendor", "docs"):
        (workspace / folder).mkdir()
    (workspace / "vendor" / "x.md").write_text("before\n")
    (workspace / "docs" / "link.md").symlink_to("../vendor/x.md")
    with pipe(workspace, home) as one:
        one.able = FORM
        one.hello("claude-code", era)
        one.call("menu_enter", mode="swe")
        assert not one.call("Read", file_path="docs/link.md")["isError"]
        change = {"file_path": "docs/link.md", "old_string": "before", "new_string": "after"}
        asked = question(one, {"name": "Edit", "arguments": change})
        usual.write_text("work_mode: chat\nrules:\n  deny: [Edit(vendor/**), Read(vendor/**)]\n")
        # Another call takes the new rules over first.
        assert "RULE_DENIED" in one.call("Read", file_path="vendor/x.md")["content"][0]["text"]
        assert "RULE_DENIED" in asked.accept(scope="once")["result"]["content"][0]["text"]
    assert (workspace / "vendor" / "x.md").read_text() == "before\n"


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
            wait_until(lambda code=code: ran(one).startswith(f"Error {code}"))
            named.write_text("profile: trusted\n")
            wait_until(lambda: "Error" not in ran(one))
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
        wait_until(lambda: status(workspace, home)["servers"][0]["fault"] is not None)
        found = status(workspace, home)
        assert str(path) in found["servers"][0]["fault"]
        assert found["rules"] == 1
        told = typed(workspace, home, "status").out
        assert f"Process {one.process.pid} keeps using the last valid rules" in told
        # Who asks what would be decided is told what is decided.
        call = json.dumps({"command": "touch made"})
        answer = json.loads(typed(workspace, home, "explain", "bash", call, "--json").out)
        assert (answer["code"], answer["server"]) == ("RULE_DENIED", one.process.pid)
        listed = typed(workspace, home, "rules", "list")
        assert "bash(touch:*)" in listed.out
        assert "keeps using the last valid rules" in listed.err
        examined = typed(workspace, home, "doctor")
        assert examined.code == 1
        assert "keeps using the last valid rules" in examined.out
        path.write_text(DENIES)
        wait_until(lambda: status(workspace, home)["servers"][0]["fault"] is None)
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
        wait_until(lambda: all(each["fault"] for each in status(workspace, home)["servers"]))
        assert "Error" not in ran(one)
        says = f"Process {one.process.pid} keeps using the last valid rules"
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
            head = f"nothing starts until you fix it, and process {one.process.pid} keeps using the last valid"
            assert (told.code, head in told.out + told.err) == (1, True), words
        path.unlink()
        wait_until(lambda: status(workspace, home)["servers"][0]["fault"] is None)
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
        wait_until(lambda: bool(status(workspace, home)["servers"][0]["fault"]))
        for words in NARROWER:
            told = typed(workspace, home, *words)
            assert told.code == 0, told.err
            assert f"Process {one.process.pid} keeps using the last valid rules" in told.err
            assert "nothing" not in told.err
        wait_until(lambda: ran(one).startswith("Error"))
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
        wait_until(lambda: len(status(workspace, home)["servers"]) == 2)
        usual.write_text(FAULTY["half written"])
        wait_until(lambda: any(each["fault"] for each in status(workspace, home)["servers"]))
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
        wait_until(lambda: "Error" not in ran(one))
        assert typed(workspace, home, "untrust").code == 0
        assert ran(one).startswith("Error APPROVAL_REQUIRED")


def test_what_waits_for_a_restart_is_named_with_its_server(workspace: Path, home: Path, usual: Path) -> None:
    usual.write_text("profile: trusted\n")
    with running(workspace, home) as one:
        one.hello("mcp")
        ran(one)
        usual.write_text("profile: trusted\nsandbox: required\nlimits: {processes: 50}\nrules: {deny: [Write]}\n")
        wait_until(lambda: bool(status(workspace, home)["servers"][0]["restart"]))
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
        assert "1 rule\n" in typed(workspace, home, "doctor").out
        # Another one that was given nothing: now it has to be said which is meant.
        with pipe(workspace, home) as other:
            other.hello("mcp")
            wait_until(lambda: len(status(workspace, home)["servers"]) == 2)
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
        wait_until(lambda: len(status(workspace, home)["servers"]) == 1)
        one.process.kill()
        one.process.wait()
        assert status(workspace, home)["servers"] == []
        assert typed(workspace, home, "rules", "list").out.startswith("No rules;")


def gone(path: Path) -> None:
    path.unlink()


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def writing(text: str) -> Callable[[Path], None]:
    return lambda path: write(path, text)


def write(path: Path, text: str) -> None:
    """Whatever stands there."""
    if path.is_dir():
        path.rmdir()
    elif path.is_symlink():
        path.unlink()
    path.write_text(text)


BREAKS: dict[str, Callable[[Path], None]] = {
    "gone": gone,
    "a dangling link": dangling,
    "a folder": a_folder,
    **{how: writing(text) for how, text in {**WRONG, **FAULTY}.items() if text is not None},
}
OF_ONE = "max_profile: normal\nrules:\n  deny:\n    - Read(notes.md)\n"
OF_OTHER = "rules:\n  deny:\n    - Read(src/main.py)\n"


def read(one: Pipe, path: str) -> str:
    answer = one.call("menu_call", tool="Read", arguments={"file_path": path}, mode="swe")
    return answer["content"][0]["text"].partition("\n")[0]


def denied(one: Pipe, *paths: str) -> bool:
    return all(read(one, path).startswith("Error RULE_DENIED") for path in paths)


def lie_still(since: int | None = None) -> None:
    """What was written so far is no longer what somebody is still writing."""
    since = since or time.time_ns()
    wait_until(lambda: time.time_ns() - since > 400_000_000)


def says(workspace: Path, home: Path, path: str) -> tuple[str, bool]:
    """What the commands say of a call, and do they list the rule."""
    call = json.dumps({"file_path": path})
    answer = json.loads(typed(workspace, home, "explain", "Read", call, "--json").out)
    return answer["code"], f"Read({path})" in typed(workspace, home, "rules", "list").out


OTHERWISE = [(None, False), (None, True), ("{}\n", True)]
SEQUENCES = [
    *((how, "{}\n", False) for how in BREAKS),
    *((how, before, rests) for how in ("gone", "half written") for before, rests in OTHERWISE),
]


@pytest.mark.parametrize(("how", "before", "rests"), SEQUENCES)
@pytest.mark.parametrize("which", ["operator's", "workspace's"])
def test_what_is_in_force_outlives_the_fault_that_follows_it(
    workspace: Path, home: Path, usual: Path, how: str, which: str, before: str | None, rests: bool
) -> None:
    path = usual if which == "operator's" else workspace / "menugate.yaml"
    if before is not None:
        path.write_text(before)
        lie_still()
    with running(workspace, home) as one:
        one.hello("mcp")
        assert "Error" not in read(one, "notes.md") + read(one, "src/main.py")
        for text, held in ((OF_ONE, "notes.md"), (OF_OTHER, "src/main.py")):
            write(path, text)
            assert denied(one, held)
            if rests:
                lie_still()
            BREAKS[how](path)
            assert denied(one, held)
            lie_still()
            assert denied(one, held)
            wait_until(lambda: bool(status(workspace, home)["servers"][0]["fault"]))
            assert denied(one, held)
            assert says(workspace, home, held) == ("RULE_DENIED", True)
            if text == OF_ONE:
                assert status(workspace, home)["posture"]["profile"]["value"] == "normal"
            assert typed(workspace, home, "doctor").code == 1
        write(path, "{}\n")
        wait_until(lambda: "Error" not in read(one, "notes.md") + read(one, "src/main.py"))
        wait_until(lambda: status(workspace, home)["servers"][0]["fault"] is None)
        assert status(workspace, home)["rules"] == 0


def test_a_file_that_is_touched_on_and_on_keeps_what_it_took_away(workspace: Path, home: Path, usual: Path) -> None:
    usual.write_text("{}\n")
    lie_still()
    with running(workspace, home) as one:
        one.hello("mcp")
        assert "Error" not in read(one, "notes.md")
        for _ in range(20):
            usual.write_text(OF_ONE)
            assert denied(one, "notes.md")
        gone(usual)
        assert denied(one, "notes.md")
        lie_still()
        assert denied(one, "notes.md")


def test_commands_say_what_else_holds_beside_what_stands_there(workspace: Path, home: Path, usual: Path) -> None:
    usual.write_text("{}\n")
    with running(workspace, home) as one:
        one.hello("mcp")
        # Nobody may be kept waiting for longer than a file has to lie still, or there is nothing to hold on to.
        wait_until(lambda: lost_while_held(one, usual))
        lie_still()
        assert denied(one, "notes.md", "src/main.py")
        for path in ("notes.md", "src/main.py"):
            assert says(workspace, home, path) == ("RULE_DENIED", True)
        told = f"Process {one.process.pid} also forbids what earlier versions of these files forbade"
        for words in (["status"], ["doctor"], ["rules", "list"], ["explain", "Read"]):
            answer = typed(workspace, home, *words)
            assert told in answer.out + answer.err, words


def lost_while_held(one: Pipe, path: Path) -> bool:
    """One rule gives way to another, and the file is gone before the first was let go."""
    path.write_text(OF_ONE)
    assert denied(one, "notes.md")
    path.write_text(OF_OTHER)
    assert denied(one, "src/main.py")
    gone(path)
    return denied(one, "notes.md")


def test_a_fault_in_one_file_does_not_hold_what_the_other_gave_up(workspace: Path, home: Path, usual: Path) -> None:
    path = workspace / "menugate.yaml"
    path.write_text("{}\n")
    lie_still()
    with running(workspace, home) as one:
        one.hello("mcp")
        usual.write_text(OF_ONE)
        path.write_text(OF_OTHER)
        assert denied(one, "notes.md", "src/main.py")
        usual.write_text("x: [\n")
        path.write_text("{}\n")
        assert denied(one, "notes.md", "src/main.py")
        wait_until(lambda: "Error" not in read(one, "src/main.py"))
        assert denied(one, "notes.md")
