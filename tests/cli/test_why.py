"""Does `audit why` say who allowed an approved call: that you were asked, what you answered, where and for how long?"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import MODERN
from tests.clients.form import FORM, question
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import served
from tests.clients.typed import Typed, typed

WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}"]
DATA = ("--mode", "data", "--profile", "trusted")
DELETING = {"name": "fs_delete", "arguments": {"path": "notes.md"}}


@contextmanager
def connected(way: str, workspace: Path, home: Path, able: dict[str, Any]) -> Generator[Pipe | RawClient]:
    transport, era = way.split()
    if transport == "http":
        with served(workspace, home, *DATA) as here, raw(here, name="opencode", era=era, able=able) as one:
            yield one
        return
    with pipe(workspace, home, *DATA) as one:
        one.able = able
        one.hello("opencode", era)
        yield one


def rows(workspace: Path, home: Path, *kinds: str) -> list[dict[str, Any]]:
    flags = [word for kind in kinds for word in ("--kind", kind)]
    shown = typed(workspace, home, "audit", "tail", "-n", "100", "--json", "--tool", "fs_delete", *flags).out
    return [json.loads(line) for line in shown.splitlines()]


def why(workspace: Path, home: Path, seq: int) -> dict[str, str]:
    """What it says, by subject."""
    done = typed(workspace, home, "audit", "why", str(seq), "--json")
    assert done.code == 0, done.err
    return {one["about"]: one["text"] for one in json.loads(done.out)["says"]}


def answered_at_terminal(workspace: Path, home: Path, *words: str) -> Typed:
    (waiting,) = json.loads(typed(workspace, home, "approvals", "--json").out)
    done = typed(workspace, home, words[0], waiting["id"], *words[1:])
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_in_the_client_is_named(way: str, workspace: Path, home: Path) -> None:
    with connected(way, workspace, home, FORM) as one:
        question(one, DELETING).accept()
    assert not (workspace / "notes.md").exists()
    (asked, answer, call, redeemed) = rows(workspace, home, "question", "answer", "intent", "redeemed")
    said = why(workspace, home, call["seq"])
    assert said["because"].startswith("you were asked, and approved this call, once: in the client opencode")
    assert f"in row {answer['seq']}, 2" in said["because"]
    assert said["asked"].startswith(f"in row {asked['seq']}, 2")
    assert ": yes, in the client opencode" in said["answered"]
    # Every row of the call explains it.
    assert why(workspace, home, redeemed["seq"]) == said
    assert "needed your approval" in why(workspace, home, answer["seq"])["decided"]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_at_a_terminal_is_named(way: str, restarted: bool, workspace: Path, home: Path) -> None:
    """Without a handle, the call that uses the approval may come over any connection, and so from any session."""
    with connected(way, workspace, home, {}) as one:
        for _ in range(2):
            assert one.request("tools/call", DELETING)["result"]["isError"]
        answered_at_terminal(workspace, home, "approve")
        if not restarted:
            assert not one.request("tools/call", DELETING)["result"]["isError"]
    if restarted:
        with connected(way, workspace, home, {}) as again:
            assert not again.request("tools/call", DELETING)["result"]["isError"]
    asked, again, answer, call = rows(workspace, home, "question", "answer", "intent")
    assert asked["question"] == again["question"], "asked once and repeated once"
    done = typed(workspace, home, "audit", "why", str(call["seq"]))
    assert done.out.count("  asked ") == 1
    said = why(workspace, home, call["seq"])
    assert said["because"].startswith("you were asked, and approved this call, once: at a terminal, for local:")
    assert f"in row {answer['seq']}, 2" in said["because"]
    assert why(workspace, home, asked["seq"])["answered"].startswith(f"in row {answer['seq']}, 2")


def test_the_scope_of_an_approval_and_a_refusal_are_named(workspace: Path, home: Path) -> None:
    writing: dict[str, Any] = {"file_path": "asked.md", "content": "x"}
    assert typed(workspace, home, "control", "manual").code == 0
    with pipe(workspace, home, "--mode", "swe") as one:
        one.hello("opencode")
        assert one.call("Write", **writing)["isError"]
        answered_at_terminal(workspace, home, "approve", "--for-session")
        for content in ("x", "y"):
            assert not one.call("Write", **writing | {"content": content})["isError"]
        assert one.call("bash", command="ls")["isError"]
        answered_at_terminal(workspace, home, "deny", "--reason", "not now")
        assert one.call("bash", command="ls")["isError"]
    shown = typed(workspace, home, "audit", "tail", "-n", "100", "--json").out
    found = [json.loads(line) for line in shown.splitlines()]
    calls = [row["seq"] for row in found if row["kind"] == "intent" and row["tool"] == "Write"]
    for seq in calls:
        said = why(workspace, home, seq)
        assert "approved such calls in its session: at a terminal" in said["because"]
    assert len(calls) == 2
    (refused,) = [row["seq"] for row in found if row["kind"] == "refusal"]
    assert ": no, at a terminal" in why(workspace, home, refused)["answered"]
    tail = typed(workspace, home, "audit", "tail", "--kind", "answer").out
    assert "yes for the session, at a terminal" in tail
    assert "no, at a terminal: not now" in tail


@pytest.mark.parametrize("way", WAYS)
def test_open_questions_can_be_told_apart(way: str, workspace: Path, home: Path) -> None:
    """Also those of calls that came without a session."""
    (workspace / "other.md").write_text("x")
    with connected(way, workspace, home, {}) as one:
        for path in ("notes.md", "other.md"):
            assert one.request("tools/call", DELETING | {"arguments": {"path": path}})["result"]["isError"]
    lines = {'fs_delete "notes.md"', 'fs_delete "other.md"'}
    shown = typed(workspace, home, "status").out
    assert all(f"call: {line}" in shown for line in lines)
    waiting = json.loads(typed(workspace, home, "status", "--json").out)["waiting"]["approvals"]
    assert {entry["glance"] for entry in waiting} == lines
    assert {entry["glance"] for entry in json.loads(typed(workspace, home, "approvals", "--json").out)} == lines


def test_an_approval_of_a_paused_run_says_that_the_call_does_not_run_yet(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, *DATA) as one:
        one.hello("opencode")
        assert one.request("tools/call", DELETING)["result"]["isError"]
        typed(workspace, home, "pause")
        said = " ".join(answered_at_terminal(workspace, home, "approve").out.split())
        assert "The run is paused, so the call does not run now. After `menugate next`, it runs when" in said
        assert "RUN_PAUSED" in one.request("tools/call", DELETING)["result"]["content"][0]["text"]
        typed(workspace, home, "next")
        assert not one.request("tools/call", DELETING)["result"]["isError"]
