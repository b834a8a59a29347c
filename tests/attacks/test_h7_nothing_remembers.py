"""What does a call that nothing remembers leave behind? Over HTTP in the 2026-07-28 era calls share no connection.

A line in the background, or a shell that stays, started there without a handle and was reachable by nobody.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.doors.clients import ERAS, MODERN
from tests.doors.raw import raw
from tests.doors.served import served

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
