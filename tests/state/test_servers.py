"""A full disk keeps a server from reading the order; it is stopped by a signal, if it says that it understands one."""

import subprocess
from pathlib import Path

from mcp_server.state.processes import read_start_time
from mcp_server.state.servers import Server, publish_server, stop_servers_by_signal


def test_no_process_is_signalled_that_does_not_say_that_it_understands(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        for stoppable, since in ((False, read_start_time(other.pid)), (True, "1")):
            (tmp_path / "servers").mkdir(exist_ok=True)
            publish_server(tmp_path, Server(other.pid, since, stoppable=stoppable))
            did, silent = stop_servers_by_signal([tmp_path], 0.1)
            assert (did, silent) == ([], [other.pid] if since != "1" else [])
            assert other.poll() is None
        other.kill()
