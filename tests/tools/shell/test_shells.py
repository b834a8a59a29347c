"""Which shells does a session have, and do they end with it?"""

import time
from pathlib import Path

import pytest

from tests.clients.pipe import Pipe
from tests.clients.waiting import wait_until
from tests.tools.shell.house import bash, served, sleeping, text


def test_in_a_shell_that_stays_folder_and_variables_last(at: Pipe, folders: tuple[Path, Path]) -> None:
    bash(at, "cd deep; x=5", bash_id="mine")
    assert bash(at, "pwd; echo $x; false", bash_id="mine").startswith(f"{folders[0]}/deep\n5\n\n[in shell bash_")
    assert "[exit code 1]" in bash(at, "false", shell_id="mine")
    assert "continues in its shell" in bash(at, "cat", bash_id="mine", timeout=0.3)
    assert "hello" in text(at.call("write_to_shell", shell_id="mine", content="hello", press_enter=True))
    at.call("write_to_shell", bash_id="mine", content="\x04")
    assert bash(at, "echo $x", bash_id="mine").startswith("5")
    at.call("kill_shell", shell_id="mine")


@pytest.mark.parametrize(
    "line",
    [
        "read -r x\n: '\ntouch planted #'",
        "python3 -c 'input()'\n: '\ntouch planted #'",
        ": '" + "é" * 1_900 + "'\n: '; touch planted #'",
    ],
    ids=["read", "a program", "a long line"],
)
def test_no_program_in_a_line_reads_the_rest_of_it(at: Pipe, folders: tuple[Path, Path], line: str) -> None:
    """What the user approves or a rule judges is what bash runs: the text is parsed whole before any of it runs."""
    bash(at, "true", bash_id="mine")
    at.call("bash", command=line, bash_id="mine", timeout=0.5)
    at.call("write_to_shell", bash_id="mine", content="answer", press_enter=True)
    bash(at, "true", bash_id="mine", timeout=0.5)
    at.call("kill_shell", bash_id="mine")
    assert not (folders[0] / "planted").exists()


def test_a_quote_left_open_ends_with_its_line(at: Pipe, folders: tuple[Path, Path]) -> None:
    assert "unexpected EOF" in bash(at, ": '", bash_id="mine")
    assert bash(at, "echo 'a; touch planted #'", bash_id="mine").startswith("a; touch planted #")
    long = "echo '" + "\\é\t" * 1_000 + "'"
    assert "\\é" * 10 in bash(at, long, bash_id="mine").replace("\t", "").replace(" ", "")
    assert bash(at, "-x", bash_id="mine").startswith("bash: -x: command not found")
    at.call("kill_shell", bash_id="mine")
    assert not (folders[0] / "planted").exists()


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
    assert "not a regular expression" in text(at.call("bash_output", bash_id=name, filter="("))
    for bomb in ("(?:a{20000}){1000}", "(?:" * 330, "(?R)"):
        assert "is not searched for: it" in text(at.call("bash_output", bash_id=name, offset=0, filter=bomb)), bomb
        assert "is not searched for: it" in text(at.call("wait", seconds=1, bash_id=name, until=bomb)), bomb
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


def test_everything_ends_with_the_client(folders: tuple[Path, Path]) -> None:
    with served(*folders, "--profile", "trusted") as client:
        client.call("bash", command="setsid sleep 522.25 & sleep 522.25", run_in_background=True)
        assert client.bye() == 0
    wait_until(lambda: not sleeping("522.25"))


def test_no_line_becomes_an_earlier_one(at: Pipe, folders: tuple[Path, Path]) -> None:
    """bash would put the earlier line between these quotes, and its first quote would end them."""
    bash(at, "echo 'a\"; touch fired; echo \"b'", bash_id="remembers")
    said = bash(at, 'echo "!echo"', bash_id="remembers")
    assert said.startswith("!echo\n")
    assert not (folders[0] / "fired").exists()
    at.call("kill_shell", shell_id="remembers")
