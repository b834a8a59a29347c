"""Is it still the same process, and which one started it?"""

import os
import subprocess

from mcp_server.model.processes import MARK
from mcp_server.state.ids import make_process_name
from mcp_server.state.processes import (
    find_ancestors,
    get_own_pid,
    is_process_gone,
    read_server_mark,
    read_start_time,
)
from mcp_server.state.verify import is_process_running


def test_a_process_is_the_same_while_it_began_at_the_same_time() -> None:
    since = read_start_time(os.getpid())
    assert since
    assert not is_process_gone(os.getpid(), since)
    assert is_process_gone(os.getpid(), "1")


def test_one_that_ended_is_gone_also_before_anybody_asked_how() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        since = read_start_time(child.pid)
        assert not is_process_gone(child.pid, since)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_process_gone(child.pid, since), "a zombie"
    assert read_start_time(child.pid) == ""
    assert is_process_gone(child.pid, since)


def test_a_process_runs_by_its_name_while_it_is_that_process() -> None:
    name = make_process_name()
    number, _, rest = name.partition("-")
    id, at, born = rest.partition("@")
    assert (int(number), at, born) == (os.getpid(), "@", read_start_time(os.getpid()).replace(" ", "_"))
    assert is_process_running(name)
    assert is_process_running(f"{number}-{id}"), "an older menugate writes no start time"
    assert not is_process_running(f"{number}-{id}@1"), "the number is in use again"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        assert is_process_running(f"{child.pid}-{id}")
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_process_running(f"{child.pid}-{id}"), "a zombie"


def test_who_started_whom() -> None:
    assert get_own_pid() == os.getpid()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        above = find_ancestors(child.pid)
        assert list(above)[:2] == [os.getpid(), os.getppid()]
        assert above == {os.getpid(): read_start_time(os.getpid()), **find_ancestors(os.getpid())}
    assert find_ancestors(4_000_000) == {}


def test_a_mark_is_read_from_how_it_was_started() -> None:
    env = {"PATH": os.environ["PATH"], MARK: "4711-" + "x" * 50}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"x\n")
        child.stdin.flush()
        child.stdout.readline()  # it has become `cat` by now
        assert read_server_mark(child.pid) == "4711-" + "x" * 15
    assert read_server_mark(4_000_000) == ""
