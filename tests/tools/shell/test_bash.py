"""Do commands run as their contract says, at each profile, and is that said which they made or could not do?"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.waiting import wait_until
from tests.tools.shell.house import bash, served, sleeping, text


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat a.txt", "one\ntwo"),
        ("true", "[no output]"),
        ("echo out; echo err >&2", "out\nerr"),
        ("exit 3", "[exit code 3]"),
        (
            "nowhere 2>&1 | tail -c 18; exit 127",
            "command not found\n\n[exit code 127, command not found]",
        ),
        ("kill -9 $$", "[exit code 137, killed]"),
        ("echo a \\", "a"),
        ("echo a # b", "a"),
        ("cat <<X\nhere\nX", "here"),
        ("printf '\\033[31mred\\033[0m\\033]52;c;eA==\\007\\033]0;title\\007'", "red"),
        ("printf '10%%\\r50%%\\r100%%\\n'", "100%"),
        ("printf 'a\\377b'", "a\N{REPLACEMENT CHARACTER}b"),
        ("head -c 5000 /dev/urandom", "characters of output that is not text]"),
    ],
)
def test_what_a_command_says(at: Pipe, command: str, shown: str) -> None:
    said = bash(at, command)
    assert said.startswith(shown) or (shown.startswith("characters") and shown in said), said


@pytest.fixture(scope="module")
def normal(folders: tuple[Path, Path]) -> Generator[Pipe]:
    with served(*folders) as client:
        yield client


def test_a_call_taken_back_takes_its_command_along(at: Pipe, folders: tuple[Path, Path]) -> None:
    slow = at.send("tools/call", {"name": "bash", "arguments": {"command": "touch deep/begun; sleep 511.25"}})
    wait_until((folders[0] / "deep" / "begun").exists)
    import json

    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}}
    at.raw(json.dumps(note).encode() + b"\n")
    wait_until(lambda: not sleeping("511.25"))


def test_progress_is_told_while_a_command_runs(at: Pipe) -> None:
    params = {"name": "wait", "arguments": {"seconds": 1.2}, "_meta": {"progressToken": "p"}}
    _, before = at.until(at.send("tools/call", params))
    assert [one for one in before if one.get("method") == "notifications/progress"]


def test_progress_tells_no_more_than_the_answer_shows(at: Pipe) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    arguments = {"command": f"printf 'a\\n\\033[31mtoken {secret[:9]}''{secret[9:]}\\n'; sleep 2.5"}
    answer, before = at.until(
        at.send("tools/call", {"name": "bash", "arguments": arguments, "_meta": {"progressToken": "p"}})
    )
    told = [one["params"]["message"] for one in before if one.get("method") == "notifications/progress"]
    assert set(told) == {"token [redacted]"}
    assert "token [redacted]" in text(answer["result"])


def test_below_trusted_what_is_not_known_is_asked_about(folders: tuple[Path, Path]) -> None:
    with served(*folders) as client:
        assert text(client.call("bash", command="cat a.txt")) == "one\ntwo"
        for command in ("rm a.txt", "cat a.txt > ../b.txt", "bash -c 'rm a.txt'"):
            assert text(client.call("bash", command=command)).startswith("Error APPROVAL_REQUIRED")
        name = client.call("bash", command="cat", run_in_background=True)["structuredContent"]["bash_id"]
        assert "APPROVAL_REQUIRED" in text(client.call("write_to_shell", shell_id=name, content="rm x"))
        assert not client.call("write_to_shell", shell_id=name, content="\x04")["isError"]
    assert (folders[0] / "a.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"command": "rm a\0b"}, "INVALID_ARGUMENTS"),
        ({"command": "rm \ud800"}, "INVALID_ARGUMENTS"),
        ({"command": "rm x", "exec_dir": "nowhere"}, "NOT_FOUND"),
        ({"command": "rm x", "exec_dir": "a.txt"}, "INVALID_ARGUMENTS"),
        ({"command": "rm x", "exec_dir": "/etc"}, "PATH_REFUSED"),
        ({"command": "rm x", "exec_dir": "a\0"}, "PATH_REFUSED"),
        ({"command": "rm x", "exec_dir": "nowhere", "run_in_background": True}, "NOT_FOUND"),
        ({"command": "rm x", "exec_dir": "nowhere", "bash_id": "new"}, "NOT_FOUND"),
    ],
)
def test_what_cannot_run_is_refused_and_not_asked_about(normal: Pipe, arguments: dict[str, object], code: str) -> None:
    assert text(normal.call("bash", **arguments)).startswith(f"Error {code}: ")


def test_what_builds_finds_the_programs_of_the_project_first(workspace: Path, home: Path) -> None:
    """A line that only reads does not: the project could have put its own `ls` there."""
    programs = workspace / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pytest", "ls"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} of the project $*\n")
        (programs / name).chmod(0o755)
    (programs / "activate").write_text('PATH="$PWD/.venv/bin:$PATH"\n')
    with served(workspace, home) as client:
        for line in ("pytest -q", "./.venv/bin/pytest -q", ". .venv/bin/activate && pytest -q"):
            assert bash(client, line) == "pytest of the project -q", line
        assert bash(client, "python -m pytest") == "python of the project -m pytest"
        assert bash(client, "pytest; ls") == "pytest of the project\nls of the project"
        assert "of the project" not in bash(client, "ls")


def test_restricted_has_no_commands(folders: tuple[Path, Path]) -> None:
    with served(*folders, "--profile", "restricted") as client:
        assert not {"bash", "write_to_shell", "kill_shell"} & set(client.names())
        assert {"bash_output", "wait"} <= set(client.names())
        assert "PROFILE_TOO_LOW" in text(client.call("bash", command="ls"))


def test_where_a_sandbox_is_required_and_there_is_none_nothing_runs(folders: tuple[Path, Path], tmp_path: Path) -> None:
    config = tmp_path / "menugate.yaml"
    config.write_text("sandbox: off\n")
    with pipe(*folders, "--config", str(config)) as client:
        client.hello()
        client.call("menu_enter", mode="swe")
        assert "bash" not in client.names()
        assert "no sandbox" in text(client.call("bash", command="ls"))
    with pipe(*folders, "--config", str(config), "--profile", "trusted") as client:
        client.hello()
        client.call("menu_enter", mode="swe")
        assert "bash" in client.names()
        assert text(client.call("bash", command="cat a.txt")) == "one\ntwo"


ASK = """python3 -c "
import urllib.error, urllib.request
try:
    urllib.request.urlopen('http://example.invalid')
except urllib.error.HTTPError as refused:
    print(refused.code, refused.read().decode())
"
"""


def test_what_a_sandbox_takes_away_is_said_where_it_hurts(at: Pipe) -> None:
    said = bash(at, ASK)
    assert said.startswith("403 "), said
    assert "Connections to `example.invalid:80` are not allowed here" in said


def test_where_there_is_no_network_at_all_that_is_said_too(folders: tuple[Path, Path]) -> None:
    (folders[0] / "far.py").write_text("import socket\nsocket.getaddrinfo('example.invalid', 80)\n")
    with served(*folders) as client:
        said = text(client.call("bash", command="python3 far.py"))
    assert said.endswith("[commands have no network at the profile `normal`]\n[exit code 1]"), said


NEW = "[new since the command started: `deep/.mcp.json`. Such files control other programs: tell the user, and"


def test_what_other_programs_obey_and_a_command_made_is_said(at: Pipe, folders: tuple[Path, Path]) -> None:
    place = folders[0] / "deep" / ".mcp.json"
    plant, say = "echo {} > deep/.mcp.json", "echo nothing"
    for how in ({}, {"run_in_background": True}, {"bash_id": "stays"}):
        assert NEW in bash(at, plant, **how), how
        assert "new since" not in bash(at, say, **how), how
        place.unlink()
    name = at.call("bash", command=f"read; {plant}", run_in_background=True)["structuredContent"]["bash_id"]
    at.call("write_to_shell", shell_id=name, content="", press_enter=True)
    assert NEW in text(at.call("wait", seconds=10, bash_id=name))
    assert NEW in text(at.call("bash_output", bash_id=name))
    place.unlink()
    assert "new since" not in bash(at, "exit", bash_id="stays")


def test_a_file_number_is_not_handed_on(at: Pipe) -> None:
    assert bash(at, "ls /proc/self/fd | wc -l") in ("4", "5")
    assert os.path.exists("/proc/self/fd")


OFFLINE = "[commands have no network at the profile `normal`, and `{}` may need one]"


def test_a_line_that_may_download_is_told_of_the_network_even_if_its_failure_is_hidden(
    folders: tuple[Path, Path],
) -> None:
    with served(*folders) as client:
        said = text(
            client.call("bash", command="pip install --quiet --retries 0 nosuchthing 2>/dev/null | tail -1 || true")
        )
        assert OFFLINE.format("pip install") in said, said
        assert OFFLINE.format("pip install") in text(
            client.call("bash", command="pip install --quiet --retries 0 nosuchthing 2>/dev/null || true", bash_id="a")
        )
        assert "network" not in text(client.call("bash", command="pip --version || true"))


def test_the_question_says_that_commands_have_no_network(folders: tuple[Path, Path]) -> None:
    with served(*folders) as client:
        said = text(client.call("bash", command="npm ci; rm -r deep"))
    assert "APPROVAL_REQUIRED" in said
    assert "`rm` deletes files; `npm ci` may need a network, and commands have none at `normal`." in said, said


def test_a_program_that_reserves_too_much_memory_is_explained(folders: tuple[Path, Path]) -> None:
    with served(*folders) as client:
        said = text(client.call("bash", command="echo 'ERROR: ReserveShadowMemoryRange failed'; false"))
    assert "AddressSanitizer reserves many terabytes" in said, said
