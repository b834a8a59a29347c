"""Does everything work for a client whose calls share nothing: a new process or a new session for each of them?"""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_server.model.menus import CARRIERS, META_TOOLS
from tests.clients.clients import MODERN
from tests.clients.pipe import Pipe, pipe
from tests.clients.raw import RawClient, raw
from tests.clients.served import Served, served
from tests.clients.shipped import SWE
from tests.clients.tokens import hire
from tests.clients.tuned import tuned
from tests.clients.waiting import wait_until

Call = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Ground:
    """One folder, served over HTTP to two people, and to whoever starts a process of their own on it."""

    work: Path
    home: Path
    here: Served
    stranger: str

    def alone(self, way: str) -> Call:
        """A client that makes each call over a connection of its own."""
        transport, era = way.split(" ")

        def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
            if transport == "stdio":
                with pipe(self.work, self.home) as one:
                    one.hello("mcp", era)
                    answer = one.call(tool, **arguments)
                    assert one.bye() == 0
                    return answer
            with raw(self.here, name="mcp", era=era) as one:
                return one.call(tool, **arguments)

        return call


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ground]:
    folder = tmp_path_factory.mktemp("carriers")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    (stranger,) = hire(home, stranger="normal")
    with served(work, home) as here:
        yield Ground(work, home, here, stranger)


@pytest.fixture(autouse=True)
def notes(ground: Ground) -> Path:
    path = ground.work / "notes.md"
    path.write_text("# Notes\n\nfirst\n")
    return path


WAYS = ["stdio legacy", f"stdio {MODERN}", "http legacy", f"http {MODERN}"]
SOME_SLOW = [pytest.param(way, marks=pytest.mark.heavy) if way.startswith("stdio") else way for way in WAYS]
"""A process for every call takes its time."""
READ = {"tool": "Read", "arguments": {"file_path": "notes.md"}}
PLANT = {"tool": "fs_write_file", "arguments": {"path": "planted.txt", "content": "x"}}
EDIT = {"tool": "Edit", "arguments": {"file_path": "notes.md", "old_string": "first", "new_string": "second"}}


def said(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


def code(result: dict[str, Any]) -> str:
    assert result["isError"]
    return said(result).removeprefix("Error ").partition(":")[0]


@pytest.mark.parametrize("way", SOME_SLOW)
def test_with_a_mode_its_tools_run_and_nothing_else_does(ground: Ground, way: str) -> None:
    call = ground.alone(way)
    assert "first" in said(call("menu_read", **READ, mode="swe"))
    refused = call("menu_call", **PLANT, mode="swe")
    assert code(refused) == "WRONG_MODE"
    assert "`data`" in said(refused)
    lost = call("menu_read", **READ)
    assert code(lost) == "WRONG_MODE"
    assert "`swe`" in said(lost)
    assert not (ground.work / "planted.txt").exists()


@pytest.mark.parametrize("way", SOME_SLOW)
def test_with_the_handle_too_and_what_was_read_stays_read(ground: Ground, way: str) -> None:
    call = ground.alone(way)
    menu = call("menu_enter", mode="swe")["structuredContent"]["menu"]
    assert code(call("menu_call", **EDIT, menu=menu)) == "NOT_READ"
    assert "first" in said(call("menu_read", **READ, menu=menu))
    edited = call("menu_call", **EDIT, menu=menu)
    assert not edited["isError"], said(edited)
    assert "second" in (ground.work / "notes.md").read_text()
    assert code(call("menu_call", **PLANT, menu=menu)) == "WRONG_MODE"
    assert not (ground.work / "planted.txt").exists()


def test_a_handle_leads_from_every_transport_to_the_same_place(ground: Ground) -> None:
    ways = [ground.alone(way) for way in WAYS]
    menu = ways[0]("menu_enter", mode="swe")["structuredContent"]["menu"]
    assert "first" in said(ways[3]("menu_read", **READ, menu=menu))
    # What one process read, another one knows with the next batch that is written.
    wait_until(lambda: not ways[1]("menu_call", **EDIT, menu=menu)["isError"])
    # Who moves it moves it for all of them, and for those that run already within half a second.
    assert not ways[2]("menu_enter", mode="data", menu=menu)["isError"]
    assert code(ways[0]("menu_read", **READ, menu=menu)) == "WRONG_MODE"
    assert ways[3]("menu_list", menu=menu)["structuredContent"]["mode"] == "data"
    assert not ways[1]("menu_exit", menu=menu)["isError"]
    wait_until(lambda: ways[3]("menu_list", menu=menu)["structuredContent"]["mode"] is None)


@pytest.mark.parametrize("era", ["legacy", MODERN])
def test_editing_by_mode_alone_is_told_how_to_get_there(ground: Ground, era: str) -> None:
    call = ground.alone(f"http {era}")
    call("menu_read", **READ, mode="swe")
    refused = call("menu_call", **EDIT, mode="swe")
    assert code(refused) == "NOT_READ"
    assert "`menu_enter` with" in said(refused)
    assert "menu`" in said(refused) or '"menu"' in said(refused)
    assert "first" in (ground.work / "notes.md").read_text()


@pytest.mark.parametrize("era", ["legacy", MODERN])
def test_a_carrier_carries_what_it_is_there_for(ground: Ground, era: str) -> None:
    call = ground.alone(f"http {era}")
    for tool in ("Edit", "Write", "fs_delete", "fs_move"):
        mode = "swe" if tool in SWE else "data"
        refused = call("menu_read", tool=tool, arguments={}, mode=mode)
        assert code(refused) == "NOT_READ_ONLY"
        assert "`menu_call`" in said(refused)
    for carrier in CARRIERS:
        for tool in (*META_TOOLS, *CARRIERS):
            assert code(call(carrier, tool=tool, arguments={"mode": "swe"}, mode="swe")) == "NOT_CARRIED"
        assert code(call(carrier, tool="Raed", mode="swe")) == "UNKNOWN_TOOL"
        assert "`Read`" in said(call(carrier, tool="Raed", mode="swe"))
        assert code(call(carrier, tool="Read", mode="nowhere")) == "UNKNOWN_MODE"
        assert code(call(carrier, tool="Read", mode="search")) == "AMBIGUOUS_MODE"
        assert code(call(carrier, tool="Read", mode="swe", arguments={"path": 5})) == "INVALID_ARGUMENTS"
        assert code(call(carrier, mode="swe")) == "INVALID_ARGUMENTS"


# Handles that are none.

BAD: list[Any] = ["menu_made_up", " ", "menu_", "x" * 100_000, "menü", 5, [], {"menu": "x"}, True]


def calls(menu: Any) -> list[tuple[str, dict[str, Any]]]:
    """Every way to give a handle."""
    return [
        ("menu_list", {"menu": menu}),
        ("menu_enter", {"mode": "swe", "menu": menu}),
        ("menu_exit", {"menu": menu}),
        ("menu_read", {**READ, "menu": menu}),
        ("menu_read", {**READ, "menu": menu, "mode": "swe"}),
        ("menu_call", {**PLANT, "menu": menu, "mode": "data"}),
    ]


@pytest.mark.parametrize("era", ["legacy", MODERN])
def test_every_handle_that_is_none_gets_the_same_answer(ground: Ground, era: str) -> None:
    with raw(ground.here, name="mcp", era=era) as mine, raw(ground.here, era=era, token=ground.stranger) as other:
        handle = mine.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        answers = {json.dumps(other.call(tool, **arguments)) for tool, arguments in calls(handle)}
        answers |= {json.dumps(mine.call(tool, **arguments)) for bad in BAD for tool, arguments in calls(bad)}
        (answer,) = answers
        assert code(json.loads(answer)) == "UNKNOWN_HANDLE"
        assert "`menu_enter`" in said(json.loads(answer))
        assert not (ground.work / "planted.txt").exists()
        # Neither was the rightful owner's session touched by it.
        assert mine.call("menu_list", menu=handle)["structuredContent"]["mode"] == "swe"


def test_a_handle_dies_a_day_after_its_last_use(workspace: Path, home: Path, tmp_path: Path) -> None:
    hours = tmp_path / "hours"
    hours.write_text("0")
    with (
        pipe(workspace, home, run=tuned(hours=hours)) as one,
        pipe(workspace, home, run=tuned(hours=hours)) as other,
    ):
        for each in (one, other):
            each.hello("mcp", MODERN)
        menu = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        hours.write_text("23.9")
        assert not other.call("menu_read", **READ, menu=menu)["isError"]
        # The process that made it has not seen it used since, and knows all the same.
        hours.write_text("47.7")
        assert not one.call("menu_read", **READ, menu=menu)["isError"]
        hours.write_text("71.8")
        late = [json.dumps(each.call("menu_read", **READ, menu=menu)) for each in (one, other)]
        assert set(late) == {json.dumps(one.call("menu_read", **READ, menu="menu_made_up"))}
        # Entering again is what the answer says to do, and it helps.
        new = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        assert new != menu
        assert not other.call("menu_read", **READ, menu=new)["isError"]
        assert code(other.call("menu_read", **READ, menu=menu)) == "UNKNOWN_HANDLE"


def test_a_handle_does_not_widen_a_pinned_endpoint(ground: Ground) -> None:
    with raw(ground.here, name="mcp") as anywhere, raw(ground.here, name="mcp", path="/swe") as pinned:
        menu = anywhere.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        assert "first" in said(pinned.call("menu_read", **READ, menu=menu))
        assert pinned.call("menu_call", **PLANT, menu=menu, mode="data")["isError"]
        assert pinned.call("menu_enter", mode="data", menu=menu)["isError"]
        assert pinned.call("menu_exit", menu=menu)["isError"]
        assert anywhere.call("menu_list")["structuredContent"]["mode"] == "swe"
        assert not (ground.work / "planted.txt").exists()
        # Its own handle leads to the same one mode, from a new session as well.
        own = pinned.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        with raw(ground.here, name="mcp", path="/swe", era=MODERN) as again:
            assert not again.call("menu_read", **READ, menu=own)["isError"]
            assert not again.call("menu_call", **EDIT, menu=own)["isError"]


# What entering answers.


@pytest.fixture(scope="module")
def door(ground: Ground) -> Generator[RawClient]:
    with raw(ground.here, era=MODERN) as one:
        yield one


@pytest.mark.parametrize(
    ("wish", "mode"),
    [
        ("swe", "swe"),
        ("1", "swe"),
        ("3", "data"),
        ("Software Engineering", "swe"),
        ("coding", "swe"),
        ("FOLDERS", "data"),
    ],
)
def test_entering_answers_everything_twice_as_its_schema_says(door: RawClient, wish: str, mode: str) -> None:
    tools = {tool["name"]: tool for tool in door.request("tools/list")["result"]["tools"]}
    entered = door.call("menu_enter", mode=wish)
    data, text = entered["structuredContent"], said(entered)
    jsonschema_rs.validate(tools["menu_enter"]["outputSchema"], data)
    assert data["mode"] == mode
    assert data["title"] in text
    assert data["description"] in text
    assert data["menu"] in text
    assert data["menu_lives"] in text
    with raw(door.served, era=MODERN, path=f"/{mode}") as pinned:
        listed = {tool["name"]: tool for tool in pinned.request("tools/list")["result"]["tools"]}
    assert [*META_TOOLS, *(tool["name"] for tool in data["tools"])] == list(listed)
    for tool in data["tools"]:
        assert f"- {tool['name']}({tool['arguments']}): {tool['description']}" in text
        assert listed[tool["name"]]["description"].startswith(tool["description"])
        for name in listed[tool["name"]]["inputSchema"]["properties"]:
            assert name in tool["arguments"]


def test_an_unclear_wish_is_answered_with_numbers_and_a_number_answers_it(door: RawClient) -> None:
    unclear = door.call("menu_enter", mode="search")
    assert code(unclear) == "AMBIGUOUS_MODE"
    candidates = unclear["_meta"]["menugate/refusal"]["candidates"]
    numbers = [one["number"] for one in candidates]
    assert len(numbers) > 1
    assert "does not name exactly one mode: several modes " in said(unclear)
    assert numbers == sorted(numbers)
    for one in candidates:
        assert f"{one['number']}. {one['label']}" in said(unclear)
    (data,) = (one["number"] for one in candidates if "File Management" in one["label"])
    assert door.call("menu_enter", mode=str(data))["structuredContent"]["mode"] == "data"
    for nowhere in ("zzz", "", "  ", "\n", "😀"):
        missed = door.call("menu_enter", mode=nowhere)
        assert code(missed) == "UNKNOWN_MODE"
        assert "swe" in said(missed)
    out_of_range = door.call("menu_enter", mode="99")
    assert code(out_of_range) == "AMBIGUOUS_MODE"
    count = len(out_of_range["_meta"]["menugate/refusal"]["candidates"])
    assert f"numbers go from 1 to {count}." in said(out_of_range)


def test_a_handle_goes_on_with_who_shows_it_and_who_shows_none_gets_another(ground: Ground) -> None:
    with pipe(ground.work, ground.home) as one:
        one.hello("mcp")
        first = entered(one, "swe")
        assert {entered(one, mode, menu=first) for mode in ("data", "data", "swe")} == {first}
        assert len({first, *(entered(one, mode) for mode in ("swe", "data", "data", "swe"))}) == 5


def entered(one: Pipe, mode: str, **more: str) -> str:
    return one.call("menu_enter", mode=mode, **more)["structuredContent"]["menu"]
