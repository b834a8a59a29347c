"""What does a call that nothing remembers leave behind? Over HTTP in the 2026-07-28 era calls share no connection.

A line in the background, or a shell that stays, started there without a handle and was reachable by nobody.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS, MODERN
from tests.clients.raw import raw
from tests.clients.served import served

STAYING: list[dict[str, Any]] = [
    {"command": "touch begun; sleep 100", "run_in_background": True},
    {"command": "touch begun", "bash_id": "mine"},
    {"command": "touch begun", "shell_id": "mine"},
]


def said(answer: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in answer["content"])


@pytest.mark.parametrize("arguments", STAYING, ids=str)
def test_a_shell_that_nobody_could_reach_is_not_started(arguments: dict[str, Any], workspace: Path, home: Path) -> None:
    flags = ("--profile", "trusted")
    with served(workspace, home, *flags) as here, raw(here, name="some-client", era=MODERN) as one:
        refused = one.call("menu_call", tool="bash", arguments=arguments, mode="swe")
        assert refused["isError"]
        assert "UNKNOWN_HANDLE" in said(refused)
        assert "`menu_enter`" in said(refused)
        assert not (workspace / "begun").exists()
        # As it says, it starts and is found again.
        menu = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        started = one.call("menu_call", tool="bash", arguments=arguments, menu=menu)
        assert not started["isError"], said(started)
        id = {"bash_id": started["structuredContent"]["bash_id"]}
        looked = one.call("menu_read", tool="bash_output", arguments=id, menu=menu)
        assert not looked["isError"], said(looked)


@pytest.mark.parametrize("era", ERAS)
def test_a_line_that_ends_needs_no_handle(era: str, workspace: Path, home: Path) -> None:
    with served(workspace, home) as here, raw(here, name="some-client", era=era) as one:
        answer = one.call("menu_call", tool="bash", arguments={"command": "ls"}, mode="swe")
        assert not answer["isError"], said(answer)


EDIT = {"file_path": "notes.md", "old_string": "first", "new_string": "second"}
WRITE = {"file_path": "notes.md", "content": "second"}


@pytest.mark.parametrize(("name", "path"), [("some-client", ""), ("opencode", ""), ("opencode", "/swe")])
@pytest.mark.parametrize(("tool", "arguments"), [("Edit", EDIT), ("Write", WRITE)])
def test_who_has_not_read_is_told_what_helps_there(
    tool: str, arguments: dict[str, str], name: str, path: str, workspace: Path, home: Path
) -> None:
    with served(workspace, home) as here, raw(here, name=name, path=path, era=MODERN) as one:
        change: tuple[str, dict[str, Any]] = ("menu_call", {"tool": tool, "arguments": arguments, "mode": "swe"})
        read: tuple[str, dict[str, Any]] = ("menu_read", {"tool": "Read", "arguments": {"file_path": "notes.md"}})
        if path == "/swe":
            change, read = (tool, dict(arguments)), ("Read", {"file_path": "notes.md"})
        else:
            read[1]["mode"] = "swe"
        # Read exactly as an earlier advice said; nothing remembers it.
        assert not one.call(read[0], **read[1])["isError"]
        told = said(one.call(change[0], **change[1]))
        assert told.startswith("Error NOT_READ")
        (enter,) = re.findall(r"`menu_enter` with (\{.*?\})", told)
        menu = one.call("menu_enter", **json.loads(enter))["structuredContent"]["menu"]
        ((name, whole),) = re.findall(r": (\w+) (\{.*\}), then this call", told)
        call = json.loads(whole.replace("menu_...", menu))
        assert call["menu"] == menu
        looked = one.call(name, **call)
        assert not looked["isError"], said(looked)
        change[1].pop("mode", None)
        done = one.call(change[0], **change[1], menu=menu)
        assert not done["isError"], said(done)
        assert "second" in (workspace / "notes.md").read_text()
