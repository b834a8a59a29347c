"""R11: what a client, a model or a file calls itself began lines of its own in `status`, `pause` and `stop`, where the
person takes every line for menugate's.
"""

import json
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.typed import typed

FORGED = "ledger     0 rows, TAMPERED"
BREAKS = ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[2K\x1b[1A", "\u202e", "\t\n"]
FLAGS = ["--mode", "swe", "--profile", "unrestricted", "--max-profile", "unrestricted"]


def forged(mark: str) -> str:
    return f"x, local:root, server 1){mark}{FORGED}{mark}running    nothing"


def refuses_to_begin(said: str) -> None:
    """No line begins with what was forged, and nothing in it speaks to the terminal."""
    for line in said.splitlines():
        assert not line.lstrip().startswith(FORGED), said
        assert line.isprintable(), repr(line)


def begin(one: Pipe, name: str, command: str) -> None:
    one.hello(name)
    one.call("bash", command=command, run_in_background=True)


@pytest.mark.parametrize("mark", BREAKS, ids=ascii)
def test_a_clients_name_and_a_command_stay_on_their_line(workspace: Path, home: Path, mark: str) -> None:
    with pipe(workspace, home, *FLAGS) as one:
        begin(one, forged(mark), f"sleep 600 # {forged(mark)}")
        for words in (["status"], ["pause"], ["status"], ["approvals", "--all"], ["stop"], ["next"]):
            refuses_to_begin(typed(workspace, home, *words).out)


@pytest.mark.parametrize("mark", BREAKS, ids=ascii)
def test_an_argument_stays_in_its_question(workspace: Path, home: Path, mark: str) -> None:
    with pipe(workspace, home, "--mode", "data", "--profile", "normal") as one:
        one.hello(forged(mark))
        one.call("fs_delete", path=f"{mark}{FORGED}")
        one.call("Read", file_path=f"{mark}{FORGED}")
        for words in (["approvals", "--all"], ["status"], ["stop"]):
            refuses_to_begin(typed(workspace, home, *words).out)


@pytest.mark.parametrize("mark", BREAKS, ids=ascii)
def test_a_message_stands_behind_its_mark(workspace: Path, home: Path, mark: str) -> None:
    with pipe(workspace, home) as one:
        one.hello("mcp")
        one.call("message_user", message=forged(mark))
    told = typed(workspace, home, "messages", "--keep").out
    assert FORGED in told
    for line in told.splitlines():
        assert FORGED not in line or line.startswith("| "), told
        assert line.expandtabs(1).isprintable(), repr(line)


@pytest.mark.parametrize("mark", BREAKS, ids=ascii)
def test_a_models_question_is_no_form_of_menugates(workspace: Path, home: Path, mark: str) -> None:
    """With these lines a model asked for an approval of its own making."""
    with pipe(workspace, home) as one:
        one.able = {"elicitation": {}}
        one.hello("mcp")
        one.send("tools/call", {"name": "message_user", "arguments": {"message": forged(mark), "block_on_user": True}})
        while (asked := one.message()).get("method") != "elicitation/create":
            pass
    said = asked["params"]["message"]
    assert said.startswith("The model asks"), said
    assert FORGED in said
    for line in said.split("\n"):
        assert FORGED not in line or line.startswith("| "), said
        assert line.isprintable(), repr(line)


def test_what_stands_for_a_program_keeps_the_name_as_it_is(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, *FLAGS) as one:
        begin(one, forged("\n"), "sleep 600")
        (client,) = {call["client"] for call in json.loads(typed(workspace, home, "status", "--json").out)["calls"]}
        assert client == forged("\n")
