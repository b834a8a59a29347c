"""Does the record say of each call how the person was connected? Over every way in, with real clients."""

import io
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients import warm
from tests.clients.clients import ERAS
from tests.clients.person import typed
from tests.clients.pipe import pipe
from tests.clients.raw import raw
from tests.clients.served import PATIENCE, command, environment, served

FORM: dict[str, Any] = {"elicitation": {"form": {}}}
PAGE = "http://localhost:5173"


def surfaces(workspace: Path, home: Path) -> list[str]:
    """Of every decision so far, in order."""
    flags = ("--kind", "intent", "--kind", "refusal", "-n", "100")
    shown = typed(workspace, home, "audit", "tail", "--json", *flags).splitlines()
    return [json.loads(line)["surface"] for line in shown]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("able", "surface"), [(FORM, "rpc"), ({}, "headless")])
def test_a_host_over_a_pipe(era: str, able: dict[str, Any], surface: str, workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--mode", "data") as one:
        one.able = able
        one.hello(era=era)
        assert not one.call("fs_list_directory", path=".")["isError"]
        assert one.call("nothing_of_that_name")["isError"]
        assert one.call("fs_delete", path="notes.md")["isError"]
    assert surfaces(workspace, home) == [surface] * 3


@pytest.mark.parametrize("era", ERAS)
def test_over_http_with_and_without_a_page(era: str, workspace: Path, home: Path) -> None:
    with served(workspace, home, "--mode", "data", "--allowed-origins", PAGE) as here:
        for able, page, surface in (({}, "", "headless"), (FORM, "", "rpc"), ({}, PAGE, "web"), (FORM, PAGE, "web")):
            with raw(here, era=era, able=able, headers={"Origin": page} if page else {}) as one:
                assert not one.call("fs_list_directory", path=".")["isError"]
            assert surfaces(workspace, home)[-1] == surface


def test_a_command_in_a_script_and_at_a_terminal(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("call", "fs_list_directory", '{"path": "."}')
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    typed(workspace, home, *words)
    # One end that is a terminal is enough: what is said there may be piped on.
    ours, theirs = pty.openpty()
    about: dict[str, Any] = {"env": environment(home), "cwd": workspace, "timeout": PATIENCE, "check": True}
    try:
        warm.run(command(*words), stdin=theirs, **about)
    finally:
        os.close(ours)
        os.close(theirs)
    assert surfaces(workspace, home) == ["headless", "tui"]
