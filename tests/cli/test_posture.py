"""Does the terminal show what holds at a glance, and only a terminal get what is for terminals?"""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.conftest import Type
from tests.clients.served import PATIENCE, command, environment


def on_a_terminal(place: Path, home: Path, columns: int, *words: str) -> str:
    """What a terminal of that width is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        command(*words), env=environment(home) | {"TERM": "xterm"}, cwd=place, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # how a terminal says that nobody is left at the other end
        pass
    finally:
        os.close(ours)
    assert process.wait(PATIENCE) == 0
    return shown.decode()


def test_a_narrow_terminal_gets_codes_and_a_wide_one_words(place: Path, home: Path) -> None:
    wide, narrow = (on_a_terminal(place, home, columns, "status") for columns in (80, 79))
    assert wide.startswith("\x1b[32mbuild\x1b[0m | \x1b[32mautonomous\x1b[0m | \x1b[2mnormal\x1b[0m | smart")
    assert narrow.startswith("\x1b[32m[Bu]\x1b[0m\x1b[32m[Au]\x1b[0m\x1b[2m[No]\x1b[0m[Sm]")
    for shown in (wide, narrow):
        assert f"\x1b]0;menugate[build|AU|normal|smart] {place.name}\x07" in shown


def test_repair_is_in_full_however_narrow(place: Path, home: Path) -> None:
    shown = on_a_terminal(place, home, 30, "mode", "repair")
    assert "\x1b[31mrepair\x1b[0m | " in shown
    assert "\x1b]0;menugate[repair|" in shown


def test_a_pipe_gets_words_and_no_title(menugate: Type) -> None:
    said = menugate("status").out
    assert said.startswith("build | autonomous | normal | smart\n")
    assert "\x1b" not in said


def test_status_says_what_is_to_come_and_who_set_the_ceiling(menugate: Type) -> None:
    menugate("steer profile trusted for-next-unit")
    menugate("mode review --scope next-milestone --reason 'time to look'")
    said = menugate("status --max-profile trusted").out
    assert "pending: back to profile default when the unit ends" in said
    assert "pending: work mode review, next-milestone" in said
    assert "ceiling    trusted, set by `--max-profile`" in said
    facts = json.loads(menugate("status --json").out)
    assert facts["badge"] == "build | autonomous | trusted | smart"
    assert [one["reason"] for one in facts["to_come"]] == ["typed at a terminal", "time to look"]
    assert "transition time to look: waiting nothing -> work_mode review, next-milestone" in menugate("audit tail").out


@pytest.mark.parametrize(
    ("operators", "workspaces", "flag", "says"),
    [
        ("listing: auto", "", "", "unrestricted (no limit set)"),
        ("max_profile: trusted", "", "", "trusted, set by `max_profile` in {operators}"),
        ("max_profile: trusted", "", "--max-profile unrestricted", "trusted, set by `max_profile` in {operators}"),
        ("max_profile: trusted", "max_profile: normal", "", "normal, set by `max_profile` in {workspaces}"),
        (
            "listing: auto",
            "max_profile: normal",
            "--max-profile trusted",
            "normal, set by `max_profile` in {workspaces}",
        ),
        ("max_profile: trusted", "max_profile: trusted", "--max-profile normal", "normal, set by `--max-profile`"),
    ],
)
def test_whoever_set_the_ceiling_is_named(
    operators: str, workspaces: str, flag: str, says: str, place: Path, home: Path, menugate: Type
) -> None:
    files = {"operators": home / ".config" / "menugate" / "menugate.yaml", "workspaces": place / "menugate.yaml"}
    files["operators"].parent.mkdir(parents=True)
    files["operators"].write_text(operators + "\n")
    files["workspaces"].write_text(workspaces + "\n")
    wanted = says.format(**files)
    assert f"ceiling    {wanted}" in menugate(f"status {flag}").out
    if not flag and "nobody" not in says:
        assert wanted.partition("set by ")[2] in menugate("profile unrestricted").err


def test_choosing_one_axis_leaves_the_others_to_the_operator(menugate: Type) -> None:
    """What a server was started with is not undone by a word about something else."""
    menugate("mode plan")
    facts = json.loads(menugate("status --json --profile restricted").out)["posture"]
    assert facts["profile"] == {"value": "restricted", "from": "--profile"}
    assert facts["work_mode"] == {"value": "plan", "from": "chosen"}


@pytest.mark.parametrize("noun", ["mode", "control", "profile", "model", "ai-mode", "reasoning", "steer"])
def test_looking_changes_nothing(menugate: Type, place: Path, noun: str) -> None:
    assert menugate(noun).code == 0
    assert json.loads(menugate(f"{noun} --json").out)["posture"]["work_mode"]["value"] == "build"
    assert not (place / ".menugate").exists()
