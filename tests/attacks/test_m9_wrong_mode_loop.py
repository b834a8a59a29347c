"""Does the advice after WRONG_MODE lead somewhere, for a client whose list of tools never changes?

Over HTTP in the 2026-07-28 era a model that entered a mode and called its tool by name, with the handle where it looks
as if it belonged there, was told for ever to enter the mode and make the same call again.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.pipe import pipe
from tests.clients.raw import raw
from tests.clients.served import served

CALL = re.compile(r"(menu_call|menu_read) (\{.*\})")
EDIT = {"file_path": "notes.md", "old_string": "first", "new_string": "second"}


def said(answer: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


def fine(answer: Mapping[str, Any]) -> str:
    assert not answer.get("isError"), said(answer)
    return said(answer)


def refused(answer: Mapping[str, Any], code: str = "WRONG_MODE") -> str:
    assert answer["isError"], said(answer)
    assert code in said(answer)
    return said(answer)


def example(text: str) -> tuple[str, dict[str, Any]]:
    """The one complete call in it, as a model would copy it."""
    found = [CALL.search(line) for line in text.splitlines()]
    (call,) = [one for one in found if one]
    return call[1], json.loads(call[2])


def test_entering_shows_a_call_that_works_as_it_is_written(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        answer = one.call("menu_enter", mode="swe")
        handle = answer["structuredContent"]["menu"]
        tool, whole = example(fine(answer))
        assert whole == {"tool": "Read", "arguments": {"file_path": "…"}, "menu": handle}
        assert example(answer["structuredContent"]["call"]) == (tool, whole), "half of the hosts show only this part"
        whole["arguments"]["file_path"] = "notes.md"
        assert "first" in fine(one.call(tool, **whole))


@pytest.mark.parametrize("mode", ["swe", "git", "data", "project"])
def test_every_mode_shows_one_whose_arguments_fit(mode: str, workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        tool, whole = example(fine(one.call("menu_enter", mode=mode)))
        assert "do not fit" not in said(one.call(tool, **whole))


def test_a_refused_call_shows_itself_as_it_would_work(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        tool, whole = example(refused(one.call("Read", file_path="notes.md", limit=3)))
        assert whole == {"tool": "Read", "arguments": {"file_path": "notes.md", "limit": 3}, "mode": "swe"}
        assert "first" in fine(one.call(tool, **whole))
        # The same through a carrier without a mode.
        tool, whole = example(refused(one.call("menu_read", tool="Read", arguments={"file_path": "notes.md"})))
        assert "first" in fine(one.call(tool, **whole))
        # And with a handle that leads to another mode: the example moves that place.
        handle = one.call("menu_enter", mode="git")["structuredContent"]["menu"]
        for call in (
            ("menu_call", {"tool": "Read", "arguments": {"file_path": "notes.md"}, "menu": handle}),
            ("Read", {"file_path": "notes.md", "menu": handle}),
        ):
            fine(one.call("menu_enter", mode="git", menu=handle))
            tool, whole = example(refused(one.call(call[0], **call[1])))
            assert (whole["mode"], whole["menu"]) == ("swe", handle)
            assert "first" in fine(one.call(tool, **whole))


def test_what_is_long_is_not_repeated(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        text = refused(one.call("Write", file_path="a.txt", content="x" * 5000))
        assert example(text)[1]["arguments"] == {"file_path": "…", "content": "…"}
        assert "xxxx" not in text


@pytest.mark.parametrize("era", ERAS)
def test_a_handle_among_the_arguments_is_understood(era: str, workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=era) as one:
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        if era == "legacy":
            fine(one.call("menu_exit"))
        inside = {"file_path": "notes.md", "menu": handle}
        assert "first" in fine(one.call("menu_read", tool="Read", arguments=inside))
        assert "first" in fine(one.call("Read", **inside))
        # It is the same place: what was read there may be changed there, and the handle is no argument of the tool.
        fine(one.call("Edit", **EDIT, menu=handle))
        assert "second" in (workspace / "notes.md").read_text()
        fine(one.call("menu_call", tool="Read", arguments=inside, menu=handle))
        fine(one.call("message_user", message="Hello", menu=handle))


def test_a_handle_among_the_arguments_opens_no_more_than_one_beside_them(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        mine, other = (one.call("menu_enter", mode=mode)["structuredContent"]["menu"] for mode in ("swe", "git"))
        made_up = {"file_path": "notes.md", "menu": "menu_made_up"}
        refused(one.call("Read", **made_up), "UNKNOWN_HANDLE")
        refused(one.call("menu_call", tool="Read", arguments=made_up), "UNKNOWN_HANDLE")
        # Two that contradict each other are not chosen from, and what is no handle is no argument either.
        both = {"tool": "Read", "arguments": {"file_path": "notes.md", "menu": other}, "menu": mine}
        refused(one.call("menu_call", **both), "INVALID_ARGUMENTS")
        nothing = {"file_path": "notes.md", "menu": "swe"}
        refused(one.call("menu_call", tool="Read", arguments=nothing, menu=mine), "INVALID_ARGUMENTS")
    with served(workspace, home) as here, raw(here, name="some-client", path="/git", era=MODERN) as pinned:
        refused(pinned.call("Read", file_path="notes.md", menu=mine))


@pytest.mark.parametrize("era", ERAS)
def test_a_list_that_changes_keeps_the_advice_to_call_by_name(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("opencode", era)
        assert "`menu_enter` with" in refused(one.call("Read", file_path="notes.md"))
        entered = one.call("menu_enter", mode="swe")
        assert not CALL.search(fine(entered))
        assert "call" not in entered["structuredContent"]
        fine(one.call("Read", file_path="notes.md"))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("client", ["opencode", "kilo"])
def test_the_advice_moves_the_place_whose_handle_was_shown(client: str, era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello(client, era)
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        told = refused(one.call("index_search", query="first", menu=handle))
        arguments = json.loads(told.partition("`menu_enter` with ")[2].partition(", then make")[0])
        assert arguments == {"mode": "project", "menu": handle}
        assert one.call("menu_enter", **arguments)["structuredContent"]["menu"] == handle
        fine(one.call("index_search", query="first", menu=handle))


def test_a_list_without_carriers_is_told_of_none(workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("opencode")
        assert not {"menu_read", "menu_call"} & set(one.names())
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        for answer in (
            one.call("menu_enter", mode="swe", menu=handle),
            one.call("menu_list"),
            one.call("git_branch_list", menu=handle),
            one.call("git_branch_list"),
            one.call("Edit", **EDIT),
            one.call("Edit", **EDIT, menu=handle),
        ):
            assert not re.search("menu_read|menu_call", said(answer)), said(answer)


def test_what_only_reads_is_shown_through_the_reader(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        assert example(refused(one.call("Read", file_path="notes.md")))[0] == "menu_read"
        assert example(refused(one.call("Edit", **EDIT)))[0] == "menu_call"


@pytest.mark.parametrize("era", ERAS)
def test_who_lists_once_and_never_again_is_shown_a_call_too(era: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home) as one:
        one.hello("codex-mcp-client", era)
        tool, whole = example(refused(one.call("Read", file_path="notes.md")))
        assert "first" in fine(one.call(tool, **whole))
        example(fine(one.call("menu_enter", mode="swe")))


MISSHAPEN: list[dict[str, Any]] = [
    {"file_path": "notes.md", "mode": "swe"},
    {"file_path": "notes.md", "menu": "zzz"},
    {"file_path": "notes.md", "limit": "many"},
    {"path": "notes.md"},
    {"file_path": 5},
    {},
]


@pytest.mark.parametrize("carried", [True, False], ids=["carried", "by name"])
@pytest.mark.parametrize("given", MISSHAPEN, ids=json.dumps)
def test_the_example_fits_whatever_was_given(given: dict[str, Any], carried: bool, workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        handle = one.call("menu_enter", mode="git")["structuredContent"]["menu"]
        if carried:
            answer = one.call("menu_read", tool="Read", arguments=given, mode="git", menu=handle)
            if given.get("mode"):
                # Two modes that contradict each other are not chosen from.
                given = {**given, "mode": "git"}
                answer = one.call("menu_read", tool="Read", arguments=given, menu=handle)
        else:
            answer = one.call("Read", **{"menu": handle, **given})
        tool, whole = example(refused(answer))
        again = one.call(tool, **whole)
        assert "INVALID_ARGUMENTS" not in said(again)
        assert ("first" in said(again)) is (given.get("file_path") == "notes.md")


def test_a_mode_among_the_arguments_is_understood(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        inside = {"file_path": "notes.md", "mode": "swe"}
        assert "first" in fine(one.call("menu_read", tool="Read", arguments=inside))
        assert "first" in fine(one.call("menu_read", tool="Read", arguments=inside, mode="swe"))
        refused(one.call("menu_read", tool="Read", arguments=inside, mode="git"), "WRONG_MODE")
        refused(one.call("menu_read", tool="Read", arguments={**inside, "mode": "no mode"}, mode="swe"), "INVALID_AR")


@pytest.mark.parametrize("carrier", ["menu_read", "menu_call"])
def test_arguments_written_out_as_a_text_are_understood(carrier: str, workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        written = json.dumps({"file_path": "notes.md"})
        assert "first" in fine(one.call(carrier, tool="Read", arguments=written, menu=handle))
        within = json.dumps({"file_path": "notes.md", "menu": handle})
        assert "first" in fine(one.call(carrier, tool="Read", arguments=within))
        # What two parsers read differently, and what is no object, are not.
        for text in ('{"file_path":"notes.md","file_path":"other.md"}', "notes.md", '["notes.md"]', '{"offset":NaN}'):
            refused(one.call(carrier, tool="Read", arguments=text, menu=handle), "INVALID_ARGUMENTS")


def test_arguments_beside_the_tool_are_shown_where_they_belong(workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=MODERN) as one:
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        for beside in ({"tool": "Read", "file_path": "notes.md"}, {"tool": "Read", "arguments": "x", "file_path": 1}):
            answer = one.call("menu_call", **beside, menu=handle)
            tool, whole = example(refused(answer, "INVALID_ARGUMENTS"))
            assert whole["menu"] == handle
            assert "INVALID_ARGUMENTS" not in said(one.call(tool, **whole))
        tool, whole = example(refused(one.call("menu_read", tool="Read", file_path="notes.md", mode="swe"), "INVALID"))
        assert "first" in fine(one.call(tool, **whole))
