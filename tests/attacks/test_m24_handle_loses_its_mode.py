"""Does a handle open the mode it was given for, with its own reads and todos, whatever is entered on the connection?

Claude Code gives sub-agents their parent's connection and no mark: each enters its mode without a handle, and then one
agent's calls must not land in the other's mode, nor an agent edit what only another has read.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed
from tests.clients.waiting import wait_until
from tests.journeys.test_runs import THOUGHT, reader

CLIENTS = ["some-client", "gemini-cli-mcp-client", "claude-code"]
READ: dict[str, Any] = {"tool": "Read", "arguments": {"file_path": "notes.md"}}
CHANGE = {"file_path": "notes.md", "old_string": "first", "new_string": "second"}
EDIT: dict[str, Any] = {"tool": "Edit", "arguments": CHANGE}
TODO: dict[str, Any] = {"tool": "TodoCreate", "arguments": {"content": "mend it"}}


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def fine(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), said(answer)
    return said(answer)


def refused(answer: Mapping[str, Any], code: str) -> str:
    assert answer["isError"], said(answer)
    assert code in said(answer)
    return said(answer)


def enter(one: Pipe, mode: str, **more: Any) -> str:
    answer = one.call("menu_enter", mode=mode, **more)
    fine(answer)
    return answer["structuredContent"]["menu"]


def where(one: Pipe, **more: Any) -> str | None:
    return one.call("menu_list", **more)["structuredContent"]["mode"]


def until_paused(one: Pipe, menu: str, paused: bool = True) -> None:
    """What is typed elsewhere is heard of here within half a second."""
    wait_until(lambda: ("RUN_PAUSED" in said(one.call("menu_read", **READ, menu=menu))) is paused)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_handle_opens_its_mode_whatever_is_entered_later(client: str, era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello(client, era)
        first = enter(one, "swe")
        assert "first" in fine(one.call("menu_read", **READ, menu=first))
        second = enter(one, "git")
        assert second != first
        # The list goes with who came last, and so do calls that show no handle.
        assert "git_log" in one.names()
        assert "Edit" not in one.names()
        assert where(one) == "git"
        refused(one.call("Edit", **EDIT["arguments"]), "WRONG_MODE")
        # The first handle goes on through the carriers, in its mode and with what was read there.
        assert where(one, menu=first) == "swe"
        assert "first" in fine(one.call("menu_read", **READ, menu=first))
        fine(one.call("menu_call", **EDIT, menu=first))
        assert "second" in (workspace / "notes.md").read_text()
        assert where(one, menu=second) == "git"
        # Leaving, and a carrier that enters a mode, take nobody's place along either.
        fine(one.call("menu_read", tool="fs_file_info", arguments={"path": "notes.md"}, mode="data"))
        assert where(one) == "data"
        fine(one.call("menu_exit"))
        assert where(one) is None
        assert (where(one, menu=first), where(one, menu=second)) == ("swe", "git")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("client", CLIENTS)
def test_two_agents_in_one_mode_have_reads_and_todos_of_their_own(
    client: str, era: str, workspace: Path, home: Path
) -> None:
    with pipe(workspace, home) as one:
        one.hello(client, era)
        parent = enter(one, "swe")
        fine(one.call("menu_read", **READ, menu=parent))
        fine(one.call("menu_call", **TODO, menu=parent))
        child = enter(one, "swe")
        assert child != parent
        refused(one.call("menu_call", **EDIT, menu=child), "NOT_READ")
        refused(one.call("Edit", **EDIT["arguments"]), "NOT_READ")
        assert "first" in (workspace / "notes.md").read_text()
        assert "mend it" not in fine(one.call("menu_read", tool="TodoRead", arguments={}, menu=child))
        assert "mend it" in fine(one.call("menu_read", tool="TodoRead", arguments={}, menu=parent))
        fine(one.call("menu_call", **EDIT, menu=parent))
        # What the parent wrote meanwhile the child has not seen either.
        overwrite = {"file_path": "notes.md", "content": "mine"}
        refused(one.call("menu_call", tool="Write", arguments=overwrite, menu=child), "NOT_READ")


def test_who_comes_back_with_the_handle_finds_everything_and_is_told_that_he_could(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("opencode")
        first = enter(one, "swe")
        fine(one.call("Read", **READ["arguments"]))
        fine(one.call("TodoCreate", content="mend it"))
        enter(one, "git")
        again = one.call("menu_enter", mode="swe")
        assert first in fine(again)
        assert again["structuredContent"]["earlier"]["swe"] == first
        refused(one.call("Edit", **EDIT["arguments"]), "NOT_READ")
        enter(one, "git")
        assert enter(one, "swe", menu=first) == first
        # The connection stands there again: a host with a masked list has no other way back.
        assert "Edit" in one.names()
        assert "mend it" in fine(one.call("TodoRead"))
        fine(one.call("Edit", **EDIT["arguments"]))


@pytest.mark.parametrize("era", ERAS)
def test_who_shows_no_handle_at_all_goes_from_mode_to_mode_and_keeps_what_he_read(
    era: str, workspace: Path, home: Path
) -> None:
    """An agent that only names modes is one agent: nobody else could show that they were another."""
    with pipe(workspace, home) as one:
        one.hello("some-client", era)
        fine(one.call("menu_read", **READ, mode="swe"))
        fine(one.call("menu_read", tool="fs_file_info", arguments={"path": "notes.md"}, mode="data"))
        fine(one.call("menu_call", **EDIT, mode="swe"))


@pytest.mark.parametrize("era", ERAS)
def test_a_handle_of_another_connection_moves_that_place_alone(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one, pipe(workspace, home) as other:
        one.hello("some-client", era)
        other.hello("some-client", era)
        mine, theirs = enter(one, "swe"), enter(other, "git")
        fine(other.call("menu_read", **READ, menu=mine))
        assert enter(other, "swe", menu=mine) == mine
        assert where(other) == "git"
        fine(other.call("menu_call", **EDIT, menu=mine))
        refused(other.call("menu_call", **EDIT, menu=theirs), "WRONG_MODE")


# A further place is a way around nothing.


def test_a_budget_is_not_escaped_by_entering_again(workspace: Path, home: Path) -> None:
    config = home / "menugate.yaml"
    config.write_text("budget:\n  calls: 3\n")
    with pipe(workspace, home, "--config", str(config)) as one:
        one.hello("some-client")
        first = enter(one, "swe")
        fine(one.call("menu_read", **READ, menu=first))
        second = enter(one, "swe")
        fine(one.call("menu_read", **READ, menu=second))
        fine(one.call("menu_read", **READ, menu=first))
        third = enter(one, "swe")
        for menu in (third, second, first):
            assert one.call("menu_read", **READ, menu=menu)["isError"]
        refused(one.call("menu_read", **READ, menu=enter(one, "swe")), "RUN_PAUSED")
        # The person gives one more budget, and not one for every place.
        assert typed(workspace, home, "next").code == 0
        until_paused(one, first, paused=False)
        ran = 1
        for menu in (first, second, third) * 4:
            ran += not one.call("menu_read", **READ, menu=menu)["isError"]
        assert ran == 3


@pytest.mark.parametrize("by", ["session", "everybody"])
def test_a_pause_is_not_escaped_by_entering_again(by: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client")
        first = enter(one, "swe")
        fine(one.call("menu_read", **READ, menu=first))
        second = enter(one, "swe")
        with reader(workspace, home) as state:
            (session,) = {kept.session.id for kept in state.load_sessions()}
        named = ("--session", session) if by == "session" else ()
        assert typed(workspace, home, "pause", *named).code == 0
        until_paused(one, first)
        for menu in (first, second, enter(one, "swe"), enter(one, "data")):
            refused(one.call("menu_read", **READ, menu=menu, mode="swe"), "RUN_PAUSED")
        assert typed(workspace, home, "next", *named).code == 0
        until_paused(one, first, paused=False)
        fine(one.call("menu_read", **READ, menu=second))
        assert typed(workspace, home, "stop", *named).code == 0
        until_paused(one, second)
        for menu in (first, second, enter(one, "swe")):
            refused(one.call("menu_read", **READ, menu=menu), "RUN_PAUSED")


def test_an_assisted_unit_is_the_units_of_all_places(workspace: Path, home: Path) -> None:
    assert typed(workspace, home, "control", "assisted").code == 0
    with pipe(workspace, home) as one:
        one.hello("some-client")
        first = enter(one, "swe")
        fine(one.call("menu_call", tool="Write", arguments={"file_path": "a.txt", "content": "a"}, menu=first))
        second = enter(one, "swe")
        for menu in (first, second):
            write = {"file_path": "b.txt", "content": "b"}
            refused(one.call("menu_call", tool="Write", arguments=write, menu=menu), "RUN_PAUSED")
        assert not (workspace / "b.txt").exists()


def test_a_phase_is_not_escaped_by_entering_again(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client")
        first = enter(one, "swe")
        fine(one.call("menu_read", **READ, menu=first))
        fine(one.call("menu_call", tool="advance_phase", arguments={}, menu=first))
        refused(one.call("menu_call", **EDIT, menu=first), "WRONG_PHASE")
        second = enter(one, "swe")
        write = {"file_path": "b.txt", "content": "b"}
        refused(one.call("menu_call", tool="Write", arguments=write, menu=second), "WRONG_PHASE")
        # And what one place brings on, the other finds brought on.
        found = {"suspect_files": ["notes.md"], "hypothesis": "it says first"}
        fine(one.call("menu_call", tool="advance_phase", arguments=found, menu=second))
        assert "understanding" in fine(one.call("menu_read", tool="get_phase_status", arguments={}, menu=first))


def test_a_thought_is_owed_in_every_place(workspace: Path, home: Path) -> None:
    assert typed(workspace, home, "reasoning", "on").code == 0
    write = {"file_path": "b.txt", "content": "b"}
    with pipe(workspace, home) as one:
        one.hello("some-client")
        first, second = enter(one, "swe"), enter(one, "swe")
        for menu in (first, second):
            refused(one.call("menu_call", tool="Write", arguments=write, menu=menu), "WRONG_STAGE")
        fine(one.call("think", content=THOUGHT, menu=first))
        fine(one.call("menu_call", tool="Write", arguments=write, menu=second))
        # A unit is done, wherever it was done.
        more = {"file_path": "c.txt", "content": "c"}
        refused(one.call("menu_call", tool="Write", arguments=more, menu=first), "WRONG_STAGE")


def test_completing_ends_the_run_of_all_places_and_looks_at_all_of_them(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client")
        first = enter(one, "swe")
        fine(one.call("menu_call", **TODO, menu=first))
        refused(one.call("menu_call", **EDIT, menu=first), "NOT_READ")
        second = enter(one, "data")
        over = fine(one.call("complete", final_answer="Done", menu=second))
        assert "mend it" in over
        assert "NOT_READ" in over or "`Edit`" in over
        again = fine(one.call("complete", final_answer="Done once more", menu=first))
        assert "`Edit`" not in again, "another run has begun there too"
    report = json.loads(typed(workspace, home, "report", "--json").out)
    assert report["status"] == "success"


def test_what_the_person_allows_a_session_holds_in_all_of_its_places(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client")
        enter(one, "swe")
        asked = refused(one.call("bash", command="chmod 600 notes.md"), "APPROVAL_REQUIRED")
        id = asked.partition("menugate approve ")[2].split("`")[0]
        assert typed(workspace, home, "approve", id, "--for-session").code == 0
        enter(one, "swe")
        assert "APPROVAL_REQUIRED" not in said(one.call("bash", command="chmod 600 notes.md"))


def test_shells_are_the_sessions_and_end_with_it(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client")
        enter(one, "swe")
        fine(one.call("bash", command="echo there", bash_id="mine"))
        enter(one, "data")
        enter(one, "swe")
        fine(one.call("bash", command="pwd", bash_id="mine"))
        assert one.bye() == 0


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("era", ERAS)
def test_those_who_enter_at_the_same_moment_get_places_of_their_own(
    workspace: Path, home: Path, name: str, era: str
) -> None:
    """Sub-agents start together: nobody waits for the answer to somebody else's `menu_enter`."""
    with pipe(workspace, home) as one:
        one.hello(name, era)
        asked = [
            one.send("tools/call", {"name": "menu_enter", "arguments": {"mode": mode}})
            for mode in ("swe", "git", "swe")
        ]
        got: dict[int, dict[str, Any]] = {}
        while len(got) < len(asked):
            message = one.message()
            if message.get("id") in asked and "method" not in message:
                got[message["id"]] = message["result"]["structuredContent"]
        assert len({answer["menu"] for answer in got.values()}) == 3
        assert [got[number]["mode"] for number in asked] == ["swe", "git", "swe"]


def test_a_place_that_a_carrier_made_is_gone_on_with(workspace: Path, home: Path) -> None:
    """Nobody was given its handle, so whoever enters is the one who read there."""
    with pipe(workspace, home) as one:
        one.hello("an-editor-nobody-knows")
        assert not one.call("menu_call", tool="Read", arguments={"file_path": "notes.md"}, mode="swe")["isError"]
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        edit = {"file_path": "notes.md", "old_string": "first", "new_string": "second"}
        edited = one.call("menu_call", tool="Edit", arguments=edit, menu=handle)
        assert not edited["isError"], edited
        # Who enters again has read nothing there, and is not handed the place of somebody else.
        one.call("menu_enter", mode="swe")
        refused = one.call("menu_call", tool="Edit", arguments=edit | {"new_string": "third"}, mode="swe")
        assert "NOT_READ" in str(refused)
        assert handle not in str(refused)


@pytest.mark.parametrize("client", ["opencode", "some-client", "codex-mcp-client"])
@pytest.mark.parametrize("era", ERAS)
def test_who_has_not_read_is_shown_the_read_that_helps_and_nobody_elses_handle(
    client: str, era: str, workspace: Path, home: Path
) -> None:
    with pipe(workspace, home) as one:
        one.hello(client, era)
        parent = enter(one, "swe")
        fine(one.call("menu_read", **READ, menu=parent))
        child = enter(one, "swe")
        for name, arguments in (("menu_call", {**EDIT, "menu": child}), ("Edit", {**CHANGE, "menu": child})):
            told = refused(one.call(name, **arguments), "NOT_READ")
            assert parent not in told
            assert child in told
        tool, whole = re.search(r"Call (\w+) (\{.*\}) first", told).groups()  # pyright: ignore[reportOptionalMemberAccess]
        assert tool == ("Read" if client == "opencode" else "menu_read")
        fine(one.call(tool, **json.loads(whole)))
        fine(one.call("menu_call", **EDIT, menu=child))


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "not in that mode": ("menu_read", {**READ, "mode": "git"}, "WRONG_MODE"),
    "no tool": ("menu_read", {"tool": "Raed", "arguments": {}, "mode": "git"}, "UNKNOWN_TOOL"),
    "not carried": ("menu_read", {"tool": "menu_list", "arguments": {}, "mode": "git"}, "NOT_CARRIED"),
    "not read only": ("menu_read", {"tool": "git_add", "arguments": {}, "mode": "git"}, "NOT_READ_ONLY"),
    "no mode": ("menu_read", {**READ, "mode": "nonsense"}, "UNKNOWN_MODE"),
    "arguments that do not fit": ("menu_read", {"tool": "git_log", "arguments": {"x": 1}, "mode": "git"}, "INVALID_A"),
    "arguments of its own": ("menu_read", {"tool": "git_log", "arguments": 5, "mode": "git"}, "INVALID_ARGUMENTS"),
    "above the profile": ("menu_call", {"tool": "fs_delete", "arguments": {"path": "x"}, "mode": "data"}, "PROFILE_T"),
}


@pytest.mark.parametrize("named", [True, False], ids=["handle", "connection"])
@pytest.mark.parametrize("era", ERAS)
def test_a_refused_call_moves_nothing(era: str, named: bool, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client", era)
        menu = {"menu": enter(one, "swe")} if named else {}
        if not named:
            fine(one.call("menu_call", **READ, mode="swe"))
        fine(one.call("menu_read", **READ, **menu))
        for what, (carrier, arguments, code) in REFUSED.items():
            refused(one.call(carrier, **arguments, **menu), code)
            assert where(one, **menu) == "swe", what
        fine(one.call("menu_call", **EDIT, **menu))


def test_what_is_said_of_it_is_true_and_helps(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("some-client")
        menu = enter(one, "swe")
        told = refused(one.call("menu_read", **READ, menu=menu, mode="git"), "WRONG_MODE")
        assert "this session is in mode `git`" not in told
        carrier, _, call = told.partition("own mode: ")[2].partition(" ")
        assert "first" in fine(one.call(carrier, **json.loads(call.splitlines()[0])))
