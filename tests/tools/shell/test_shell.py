"""Do commands run as their contract says? Over a real server: in front, behind, and in a shell that stays."""

import os
import re
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe, pipe
from tests.clients.waiting import wait_until
from tests.tools.shell.house import served, text


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("shell")
    for name in ("work", "home"):
        (root / name).mkdir()
    (root / "work" / "deep").mkdir()
    (root / "work" / "a.txt").write_text("one\ntwo\n")
    return root / "work", root / "home"


@pytest.fixture(scope="module")
def at(folders: tuple[Path, Path]) -> Generator[Pipe, None, None]:
    """At the profile trusted, where nobody is asked."""
    with served(*folders, "--profile", "trusted") as client:
        yield client


def bash(at: Pipe, command: str, **more: object) -> str:
    return text(at.call("bash", command=command, **more))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat a.txt", "one\ntwo"),
        ("true", "[no output]"),
        ("echo out; echo err >&2", "out\nerr"),
        ("exit 3", "[exit code 3]"),
        (
            "nowhere 2>&1 | tail -c 18; exit 127",
            "command not found\n\n[exit code 127, there is no such command]",
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


def test_a_long_output_keeps_its_ends_and_the_rest_in_a_file(at: Pipe) -> None:
    said = bash(at, "seq 1 100000")
    assert len(said) <= 30_000
    assert said.startswith("1\n2\n")
    assert "99999\n100000" in said
    path = re.search(r"Read (\{.*\})", said)
    assert path
    import json

    call = json.loads(path[1])
    rest = text(at.call("Read", **call, limit=3))
    assert str(call["offset"]) in rest


def test_what_outlasts_its_time_goes_on_behind(at: Pipe) -> None:
    result = at.call("bash", command="echo begun; sleep 0.6; echo over; sleep 50", timeout=0.3)
    assert text(result).startswith("begun\n\n[running]")
    name = result["structuredContent"]["bash_id"]
    assert len(name) > 20
    waited = at.call("wait", seconds=20, bash_id=name, until="ov.r")
    assert "`ov.r` was found" in text(waited)
    assert "nothing new" in text(at.call("bash_output", shell_id=name))
    assert text(at.call("bash_output", bash_id=name, offset=0)).startswith("begun\nover\n")
    assert text(at.call("bash_output", bash_id=name, offset=-5)).startswith("over\n")
    assert text(at.call("bash_output", bash_id=name, offset=0, filter="^be")).startswith("begun\n\n[running")
    assert "was ended" in text(at.call("kill_shell", shell_id=name))
    assert at.call("bash_output", bash_id=name)["isError"]


def test_in_a_shell_that_stays_folder_and_variables_last(at: Pipe, folders: tuple[Path, Path]) -> None:
    bash(at, "cd deep; x=5", bash_id="mine")
    assert bash(at, "pwd; echo $x; false", bash_id="mine").startswith(f"{folders[0]}/deep\n5\n\n[in shell bash_")
    assert "[exit code 1]" in bash(at, "false", shell_id="mine")
    assert "goes on in its shell" in bash(at, "cat", bash_id="mine", timeout=0.3)
    assert "hello" in text(at.call("write_to_shell", shell_id="mine", content="hello", press_enter=True))
    at.call("write_to_shell", bash_id="mine", content="\x04")
    assert bash(at, "echo $x", bash_id="mine").startswith("5")
    at.call("kill_shell", shell_id="mine")


def test_a_program_behind_is_interrupted_by_a_key(at: Pipe) -> None:
    name = at.call("bash", command="sleep 50", run_in_background=True)["structuredContent"]["bash_id"]
    assert "exit code 130" in text(at.call("write_to_shell", shell_id=name, content="\x03")) + text(
        at.call("wait", seconds=5, bash_id=name)
    )


def test_waiting_ends_when_it_should(at: Pipe) -> None:
    assert text(at.call("wait", seconds=0.01)) == "Waited 0.01 s."
    assert at.call("wait", seconds=301)["isError"]
    assert at.call("wait", seconds=1, until="x")["isError"]
    name = at.call("bash", command="echo a; sleep 0.5", run_in_background=True)["structuredContent"]["bash_id"]
    assert "[ended]" in text(at.call("wait", seconds=20, shell_id=name))
    assert "time over" not in text(at.call("wait", seconds=20, shell_id=name, until="never"))


@pytest.mark.heavy
def test_a_pattern_that_never_ends_is_stopped_and_others_go_on(at: Pipe) -> None:
    command = "printf 'a%.0s' {1..5000}; echo b; sleep 50"
    name = at.call("bash", command=command, run_in_background=True)["structuredContent"]["bash_id"]
    at.call("wait", seconds=20, bash_id=name, until="b")
    begun = time.monotonic()
    filtered = {"bash_id": name, "offset": 0, "filter": "(a|a)+$"}
    slow = at.send("tools/call", {"name": "bash_output", "arguments": filtered})
    at.request("ping")
    quick = time.monotonic() - begun
    answer, _ = at.until(slow)
    assert text(answer["result"]).startswith("Error TIMEOUT")
    assert quick < (time.monotonic() - begun) / 2
    assert "no regular expression" in text(at.call("bash_output", bash_id=name, filter="("))
    for bomb in ("(?:a{20000}){1000}", "(?:" * 330, "(?R)"):
        assert "is not looked for: it" in text(at.call("bash_output", bash_id=name, offset=0, filter=bomb)), bomb
        assert "is not looked for: it" in text(at.call("wait", seconds=1, bash_id=name, until=bomb)), bomb
    at.call("kill_shell", bash_id=name)


def test_a_shell_is_found_by_its_own_session_alone(folders: tuple[Path, Path], at: Pipe) -> None:
    name = at.call("bash", command="sleep 50", run_in_background=True)["structuredContent"]["bash_id"]
    with served(*folders, "--profile", "trusted") as other:
        for tool in ("bash_output", "kill_shell", "write_to_shell"):
            theirs, nobodys = (text(other.call(tool, bash_id=one)) for one in (name, "bash_" + "x" * 22))
            assert theirs.replace(name, "") == nobodys.replace("bash_" + "x" * 22, "")
            assert "NOT_FOUND" in theirs
    assert "running" in text(at.call("bash_output", bash_id=name))
    at.call("kill_shell", bash_id=name)


def test_a_call_taken_back_takes_its_command_along(at: Pipe, folders: tuple[Path, Path]) -> None:
    slow = at.send("tools/call", {"name": "bash", "arguments": {"command": "touch deep/begun; sleep 511.25"}})
    wait_until((folders[0] / "deep" / "begun").exists)
    import json

    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow}}
    at.raw(json.dumps(note).encode() + b"\n")
    wait_until(lambda: not sleeping("511.25"))


def test_everything_ends_with_the_client(folders: tuple[Path, Path]) -> None:
    with served(*folders, "--profile", "trusted") as client:
        client.call("bash", command="setsid sleep 522.25 & sleep 522.25", run_in_background=True)
        assert client.bye() == 0
    wait_until(lambda: not sleeping("522.25"))


def sleeping(seconds: str) -> list[str]:
    """The processes that sleep for so long; longer than any patience, so that none ends of its own accord."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                line = (folder / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
                found += [folder.name] if line == f"sleep {seconds}" else []
    return found


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
        for command in ("rm a.txt", "cat a.txt > b.txt", "bash -c 'cat a.txt'"):
            assert text(client.call("bash", command=command)).startswith("Error APPROVAL_REQUIRED")
        name = client.call("bash", command="cat", run_in_background=True)["structuredContent"]["bash_id"]
        assert "APPROVAL_REQUIRED" in text(client.call("write_to_shell", shell_id=name, content="rm x"))
        assert not client.call("write_to_shell", shell_id=name, content="\x04")["isError"]
    assert (folders[0] / "a.txt").exists()


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
    assert said.endswith("[commands have no network at the profile `normal` here]\n[exit code 1]"), said


NEW = "[new since this began: `deep/.mcp.json`. Other programs obey what stands there, unasked: tell the person, and"


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


def test_the_middle_of_a_long_output_is_had_back_part_by_part(at: Pipe) -> None:
    said = bash(at, "seq -f %07g 1 500000")
    found = re.search(
        r'(\d[\d,]*) characters in the middle.*bash_output (\{"bash_id": "([^"]+)", "offset": (\d+)\})', said
    )
    assert found is not None, said[-500:]
    offset, left = int(found[4]), int(found[1].replace(",", ""))
    assert 1_000_000 < left < 4_000_000 - offset
    parts = 0
    while (
        window := re.search(r"\[up to offset (\d+) of 4000000\]", shown := at_offset(at, found[3], offset))
    ) is not None:
        first = next(line for line in shown.splitlines() if re.fullmatch(r"\d{7}", line))
        assert 0 <= int(first) - offset // 8 <= 2
        offset, left, parts = int(window[1]), left - (int(window[1]) - offset), parts + 1
    assert (left, parts) == (0, 2)
    assert "0500000" in shown
    assert "[ended with exit code 0]" in shown


def at_offset(at: Pipe, name: str, offset: int) -> str:
    return text(at.call("bash_output", bash_id=name, offset=offset))


def test_a_file_number_is_not_handed_on(at: Pipe) -> None:
    assert bash(at, "ls /proc/self/fd | wc -l") in ("4", "5")
    assert os.path.exists("/proc/self/fd")
