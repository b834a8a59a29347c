"""Does a run pause for the person, go on when they say so, and end on record? With real servers and typed commands."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.model.reports import RunReport
from mcp_server.state.engine.rows import LedgerFilter
from mcp_server.state.reader import Reader
from tests.clients.clients import ERAS, MODERN
from tests.clients.person import choose
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import raw
from tests.clients.served import served
from tests.clients.typed import typed

pytestmark = pytest.mark.anyio
THOUGHT = (
    "Analyze: the notes need a line\nResearch: notes.md is short\nPlan: write, then look\n"
    "Reflect: nobody else writes here\nAction: Write notes.md\nDelivery: NEEDS_WORK"
)
POINTS = "- the file is written\n- next: read it once more\n- risk: somebody else may have changed it"
STATE = "menugate/state"


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def write(one: Pipe, name: str) -> dict[str, Any]:
    return one.call("fs_write_file", path=name, content="x")


def reader(workspace: Path, home: Path) -> Reader:
    secrets = home / ".local" / "state" / "menugate"
    return Reader.open(f"sqlite:///{workspace / '.menugate' / 'state.db'}", secrets=secrets)


def within(one: Pipe, wanted: bool) -> dict[str, Any]:
    """The answer of a reading call once it is, or is not, paused; the notice that the list changed comes first."""
    answer, before = one.until(one.send("tools/call", {"name": "fs_list_directory", "arguments": {"path": "."}}))
    while (("RUN_PAUSED" in said(answer["result"])) is not wanted) or not before:
        message = one.message() if not before else {}
        before = before or [message]
        answer, more = one.until(one.send("tools/call", {"name": "fs_list_directory", "arguments": {"path": "."}}))
        before += more
    assert any(note.get("method") == "notifications/tools/list_changed" for note in before)
    return answer["result"]


def test_the_person_pauses_and_lets_go_on_from_another_terminal(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        seen = one.names()
        assert "fs_write_file" in seen
        assert typed(workspace, home, "pause", "--reason", "lunch").code == 0
        refused = within(one, wanted=True)
        assert "the user paused it: lunch" in said(refused)
        assert "`menugate next`" in said(refused)
        assert one.names() == ["menu_list", "menu_enter", "menu_exit", "complete", "think", "message_user"]
        assert not one.call("think", content="hm")["isError"]
        assert not one.call("message_user", message="I would write the notes next.")["isError"]
        assert "lunch" in typed(workspace, home, "next").out
        assert not within(one, wanted=False)["isError"]
        assert one.names() == seen


def test_a_pause_outlives_the_server_and_the_end_of_a_run(workspace: Path, home: Path) -> None:
    assert typed(workspace, home, "pause").code == 0
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        assert "RUN_PAUSED" in said(write(one, "a.txt"))
        assert not one.call("complete", final_answer="nothing was done")["isError"]
        assert "RUN_PAUSED" in said(write(one, "a.txt"))
    assert not (workspace / "a.txt").exists()


async def test_assisted_runs_one_unit_and_waits(workspace: Path, home: Path) -> None:
    await choose(workspace, home, run_control="assisted")
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        # What only reads belongs to the unit it prepares.
        for _ in range(3):
            assert not one.call("fs_list_directory", path=".")["isError"]
        assert not write(one, "first.txt")["isError"]
        waiting = write(one, "second.txt")
        assert "RUN_PAUSED" in said(waiting)
        assert "a unit is done" in said(waiting)
        assert "RUN_PAUSED" in said(one.call("fs_list_directory", path="."))
        assert typed(workspace, home, "next", "2").code == 0
        within(one, wanted=False)
        assert not write(one, "second.txt")["isError"]
        assert not write(one, "third.txt")["isError"]
        assert "RUN_PAUSED" in said(write(one, "fourth.txt"))
        # Whoever chooses to be asked no more has said that it goes on.
        await choose(workspace, home, run_control="autonomous")
        within(one, wanted=False)
        assert not write(one, "fourth.txt")["isError"]


async def test_of_two_changes_at_once_assisted_lets_one_through(workspace: Path, home: Path) -> None:
    await choose(workspace, home, run_control="assisted")
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        one.call("fs_list_directory", path=".")
        numbers = [
            one.send("tools/call", {"name": "fs_write_file", "arguments": {"path": f"{name}.txt", "content": "x"}})
            for name in "abc"
        ]
        answers: dict[int, dict[str, Any]] = {}
        while answers.keys() < set(numbers):
            message = one.message()
            if "result" in message:
                answers[message["id"]] = message["result"]
        assert sorted("RUN_PAUSED" in said(answer) for answer in answers.values()) == [False, True, True]
        assert len(list(workspace.glob("?.txt"))) == 1


async def test_assisted_pauses_who_has_no_session_to_pause(workspace: Path, home: Path) -> None:
    await choose(workspace, home, run_control="assisted")
    with served(workspace, home, "--mode", "data") as here, raw(here, era=MODERN) as one:
        for name, paused in (("a.txt", False), ("b.txt", True)):
            call = {"name": "fs_write_file", "arguments": {"path": name, "content": "x"}}
            assert ("RUN_PAUSED" in said(one.request("tools/call", call)["result"])) is paused


def test_a_spent_budget_pauses_the_run_and_the_person_gives_another(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text("budget:\n  calls: 1\n")
    with pipe(workspace, home, "--mode", "data", "--config", str(config)) as one:
        one.hello()
        assert not write(one, "a.txt")["isError"]
        assert "BUDGET_SPENT" in said(write(one, "b.txt"))
        paused = said(write(one, "b.txt"))
        assert "RUN_PAUSED" in paused
        assert "budget of 1 call" in paused
        assert typed(workspace, home, "next").code == 0
        # The very next call knows of it.
        assert not write(one, "b.txt")["isError"]
        assert "BUDGET_SPENT" in said(write(one, "c.txt"))
        # The pause ends with the run it is about.
        assert not one.call("complete", final_answer="done")["isError"]
        assert not write(one, "c.txt")["isError"]


def test_stop_clears_the_run_and_waits(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello()
        handle = one.call("menu_enter", mode="data")["structuredContent"]["menu"]
        one.call("fs_list_directory", path=".")
        with reader(workspace, home) as state:
            (before,) = state.load_sessions()
        assert typed(workspace, home, "stop", "--session", before.session.id).code == 0
        refused = within(one, wanted=True)
        assert "the user stopped it" in said(refused)
        with reader(workspace, home) as state:
            (after,) = state.load_sessions()
        assert after.session.run != before.session.run
        assert after.session.mode == "data"
        assert handle
        assert typed(workspace, home, "next", "--session", before.session.id).code == 0
        within(one, wanted=False)


async def test_with_reasoning_a_run_thinks_before_and_between_its_units(workspace: Path, home: Path) -> None:
    await choose(workspace, home, reasoning=True)
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        assert "fs_write_file" not in one.names()
        assert not one.call("fs_read_file", path="notes.md")["isError"]
        early = write(one, "a.txt")
        assert "WRONG_STAGE" in said(early)
        assert "Analyze, Research, Plan, Reflect, Action, Delivery" in said(early)
        lacking = one.call("think", content="I will just do it.")
        assert "REASONING_INCOMPLETE" in said(lacking)
        assert "headings" in said(lacking)
        accepted = one.call("think", content=THOUGHT)
        assert accepted["structuredContent"]["next_action"] == "Write notes.md"
        assert "fs_write_file" in one.names()
        assert not write(one, "a.txt")["isError"]
        assert "fs_write_file" not in one.names()
        assert "3 to 8 points" in said(write(one, "b.txt"))
        assert "it has 1 point" in said(one.call("think", content="- on I go"))
        assert not one.call("think", content=POINTS)["isError"]
        assert not write(one, "b.txt")["isError"]
        assert not one.call("complete", final_answer="written")["isError"]
        assert "WRONG_STAGE" in said(write(one, "c.txt"))
        # It is the person's switch, and takes effect where the run stands.
        await choose(workspace, home, reasoning=False)
        while "WRONG_STAGE" in said(write(one, "c.txt")):
            one.message()
    rows = ledger(workspace, home, "transition", "delivery", "report")
    stages = [(row["from"]["stage"], row["to"]["stage"]) for row in rows if "stage" in row.get("to", {})]
    assert stages[:3] == [("warmup", "act"), ("act", "micro_step"), ("micro_step", "act")]
    assert ("delivery_check", "qa_review") in stages
    text = json.dumps(rows)
    assert "the notes need a line" not in text
    assert "nobody else writes here" not in text


def ledger(workspace: Path, home: Path, *kinds: str) -> list[dict[str, Any]]:
    with reader(workspace, home) as state:
        return [dict(row.fields) for row in state.read_rows(LedgerFilter(kinds=kinds))]


def test_a_finished_run_is_on_record_and_looked_over(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "data") as one:
        one.hello()
        assert one.call("fs_read_file", path="gone.md")["isError"]
        assert not write(one, "a.txt")["isError"]
        assert "PROFILE_TOO_LOW" in said(one.call("fs_delete", path="a.txt"))
        done = one.call("complete", final_answer="All is well.", status="partial")
        assert said(done).startswith("Recorded as partial. The run is over.")
        address = done["structuredContent"]["report"]
        read = one.request("resources/read", {"uri": address})["result"]["contents"][0]["text"]
        assert one.request("resources/read", {"uri": "menugate://report"})["result"]["contents"][0]["text"] == read
        assert "error" in one.request("resources/read", {"uri": "menugate://report/another"})
        for heading in ("Summary", "Issues", "Missing steps", "Suggested next actions"):
            assert f"## {heading}\n" in read
        assert "Ended as partial after 2 calls that ran and 1 that did not" in read
        assert "`fs_read_file` failed (NOT_FOUND)" in read
        assert "`fs_delete` was refused (PROFILE_TOO_LOW)" in read
        assert "`fs_write_file`" not in read
        # The next action belongs to another run.
        assert not one.call("fs_read_file", path="notes.md")["isError"]
    assert typed(workspace, home, "report").out.rstrip().endswith(read.rstrip())
    shown = json.loads(typed(workspace, home, "report", "--json").out)
    assert shown["status"] == "partial"
    assert {"issues", "missing_steps", "suggested_next_actions", "summary"} <= shown.keys()
    rows = ledger(workspace, home, "delivery", "report", "transition", "intent")
    delivered = next(row for row in rows if row["kind"] == "delivery")
    assert delivered["run"] == shown["run"]
    assert "All is well" not in json.dumps(rows)
    assert rows[-1]["kind"] == "intent"
    assert rows[-1]["run"] != delivered["run"]


def test_nobody_reads_the_report_of_somebody_else(workspace: Path, home: Path, tmp_path: Path) -> None:
    import hashlib

    token = "guest-token-of-thirty-two-characters"
    config = tmp_path / "menugate.yaml"
    digest = hashlib.sha256(token.encode()).hexdigest()
    config.write_text(f"tokens:\n  - {{principal: guest, sha256: {digest}}}\n")
    with served(workspace, home, "--config", str(config)) as here:
        with raw(here) as one:
            done = one.request("tools/call", {"name": "complete", "arguments": {"final_answer": "mine"}})["result"]
            uri = done["structuredContent"]["report"]
            assert "result" in one.request("resources/read", {"uri": uri})
        with raw(here, token=token) as guest:
            assert "error" in guest.request("resources/read", {"uri": uri})
            newest = guest.request("resources/read", {"uri": "menugate://report"})["result"]["contents"]
            assert newest[0]["text"].startswith("You have not finished a run yet")


@pytest.mark.parametrize("era", ERAS)
def test_whatever_is_offered_can_be_read_from_the_beginning(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client", era)
        for resource in one.request("resources/list")["result"]["resources"]:
            (found,) = one.request("resources/read", {"uri": resource["uri"]})["result"]["contents"]
            assert found.get("text") or found.get("blob"), resource


def test_a_report_says_all_four_things() -> None:
    text = RunReport("r", "p", "s", "success", "Ended.", issues=("one",), unchecked=("git",)).format_text()
    assert [line for line in text.splitlines() if line.startswith("##")] == [
        *("## Summary", "## Issues", "## Missing steps", "## Suggested next actions", "## Not checked"),
    ]
