"""Is a command that goes on behind looked at, waited for, typed to and ended?"""

from tests.clients.pipe import Pipe
from tests.tools.shell.house import text


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
    assert "Ended shell" in text(at.call("kill_shell", shell_id=name))
    assert at.call("bash_output", bash_id=name)["isError"]


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
