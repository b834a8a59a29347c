"""A full disk keeps a server from reading the order; it is stopped by a signal, if it says that it understands one."""

import subprocess
from pathlib import Path

import pytest

from mcp_server.state.processes import get_own_pid, read_start_time
from mcp_server.state.running_calls import remove_running_calls, write_running_calls
from mcp_server.state.servers import Server, publish_server, stop_servers_by_signal, withdraw_server


def test_no_process_is_signalled_that_does_not_say_that_it_understands(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        for stoppable, since in ((False, read_start_time(other.pid)), (True, "1")):
            (tmp_path / "servers").mkdir(exist_ok=True)
            publish_server(tmp_path, Server(other.pid, since, stoppable=stoppable))
            did, silent = stop_servers_by_signal([tmp_path], 0.1)
            assert (did, silent) == ([], [other.pid] if since != "1" else [])
            assert other.poll() is None
        other.kill()


@pytest.mark.parametrize("linked", ["servers", "state", "above"])
def test_nothing_is_written_or_removed_through_a_link(tmp_path: Path, linked: str) -> None:
    """A server writes these files a moment after a call, and by then its state folder may be a link."""
    top, elsewhere = tmp_path / ".menugate", tmp_path / "elsewhere"
    state = top / "accounts" / "one"
    state.mkdir(parents=True)
    server = Server(get_own_pid(), read_start_time(get_own_pid()))
    publish_server(state, server)
    write_running_calls(state, (), ())
    assert {path.suffix for path in (state / "servers").iterdir()} == {".json", ".runs"}
    moved = {"servers": state / "servers", "state": state, "above": top}[linked]
    moved.rename(elsewhere)
    moved.symlink_to(elsewhere)
    theirs = elsewhere / (state / "servers").relative_to(moved)
    (theirs / "package.json").write_text("{}")
    (theirs / "1.runs").write_text("{}")
    before = {path: path.read_bytes() for path in theirs.iterdir()}
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        publish_server(state, Server(1, "1"))
    write_running_calls(state, (), ())
    withdraw_server(state, get_own_pid())
    remove_running_calls(state)
    assert {path: path.read_bytes() for path in theirs.iterdir()} == before
    moved.unlink()
    elsewhere.rename(moved)
    withdraw_server(state, get_own_pid())
    remove_running_calls(state)
    assert list((state / "servers").iterdir()) == []
