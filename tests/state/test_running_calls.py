"""Does a file say what runs where, and nothing that is no longer so?"""

import os
import subprocess
from pathlib import Path

from msgspec.structs import replace

from mcp_server.state.processes import read_start_time
from mcp_server.state.running_calls import (
    SUFFIX,
    RunningClient,
    RunningWork,
    read_running_calls,
    remove_running_calls,
    write_running_calls,
)
from mcp_server.state.servers import FOLDER

CLIENT = RunningClient("s1", "me", "opencode")
WORK = RunningWork("bash", "make", 7, "me", "s1", "opencode")


def test_what_was_written_is_read_oldest_first(tmp_path: Path) -> None:
    write_running_calls(tmp_path, [CLIENT], [WORK, replace(WORK, since=3)])
    clients, works = read_running_calls([tmp_path, tmp_path / "nowhere"])
    assert clients == [CLIENT]
    assert [(one.since, one.server) for one in works] == [(3, os.getpid()), (7, os.getpid())]
    remove_running_calls(tmp_path)
    assert read_running_calls([tmp_path]) == ([], [])


def test_a_call_that_is_over_counts_while_it_left_something_running(tmp_path: Path) -> None:
    over = replace(WORK, over=True)
    assert not over.is_running
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        left = replace(over, processes=((child.pid, read_start_time(child.pid)),))
        assert left.living_processes == [child.pid]
        write_running_calls(tmp_path, [], [over, left])
        assert len(read_running_calls([tmp_path])[1]) == 1
    assert read_running_calls([tmp_path])[1] == []


def test_what_a_server_that_died_left_is_not_believed(tmp_path: Path) -> None:
    write_running_calls(tmp_path, [CLIENT], [WORK])
    (mine,) = (tmp_path / FOLDER).iterdir()
    dead = mine.with_name(f"4000000{SUFFIX}")
    mine.rename(dead)
    assert read_running_calls([tmp_path]) == ([], [])
    remove_running_calls(tmp_path)
    assert not dead.exists()


def test_a_file_of_any_shape_is_no_fault_of_ours(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / f"{os.getpid()}{SUFFIX}"
    for text in ("", "[]", "null", "{}", '{"born": "1"}', '{"born": "x", "clients": 7, "works": []}'):
        path.write_text(text)
        assert read_running_calls([tmp_path]) == ([], [])
