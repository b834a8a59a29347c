"""What do clients see when the state cannot be kept? A clear refusal of each call, a live server, and then it heals."""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_server.state.reader import Reader
from tests.clients import warm
from tests.clients.line import Speaker
from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE, command, environment, served
from tests.clients.waiting import becomes_true
from tests.wire.test_jsonrpc import INSIDES

CHANGED = "notifications/tools/list_changed"


def state(workspace: Path) -> Path:
    return workspace / ".menugate" / "state.db"


def code(result: dict[str, Any]) -> str | None:
    """Why a call was refused; None where it ran. Its text is looked through for our insides."""
    if not result["isError"]:
        return None
    text = result["content"][0]["text"]
    assert text.startswith("Error "), text
    assert not INSIDES.search(text), text
    return result["_meta"]["menugate/refusal"]["code"]


def think(line: Pipe) -> str | None:
    return code(line.call("think", content="x"))


def heals(line: Pipe) -> bool:
    return becomes_true(lambda: think(line) is None)


def said(line: Pipe) -> str:
    line.process.terminate()
    assert line.process.stderr is not None
    return line.process.stderr.read().decode()


def sql(workspace: Path, statement: str) -> None:
    database = sqlite3.connect(state(workspace))
    with database:
        database.execute(statement)
    database.close()


def reader(workspace: Path, home: Path) -> Reader:
    return Reader.open(f"sqlite:///{state(workspace)}", secrets=home / ".local" / "state" / "menugate")


def prepared(workspace: Path, home: Path) -> None:
    """A workspace that somebody has worked in."""
    with pipe(workspace, home) as line:
        line.hello("somebody")
        for _ in range(30):
            assert think(line) is None
        assert line.call("menu_enter", mode="data")["isError"] is False
        assert line.process.stdin is not None
        line.process.stdin.close()
        line.process.wait(PATIENCE)


def refused_to_start(workspace: Path, home: Path, *flags: str, run: list[str] | None = None) -> str:
    """What a person sees of a server that cannot be: a line that says why, and no trace."""
    done = warm.run(
        [*(run or command("serve")), "--workspace", str(workspace), *flags],
        environment(home),
        cwd=home,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode != 0, done
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout == ""
    return done.stderr


# A disk without room.


@contextmanager
def small_disk(workspace: Path, home: Path) -> Generator[tuple[Pipe, Path]]:
    """A server whose workspace is a disk of 6 MB, and the way to that disk from outside."""
    serve = " ".join(command("serve"))
    script = f'mount -t tmpfs -o size=6m none "{workspace}" && exec {serve} "$@"'
    run = ["unshare", "-rm", "sh", "-c", script, "sh"]
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(workspace)], capture_output=True)
    if probe.returncode:
        pytest.skip("no small disk can be made here: " + probe.stderr.decode().strip())
    with pipe(workspace, home, "--listing", "flat", run=run) as line:
        yield line, Path(f"/proc/{line.process.pid}/root{workspace}")


def filled(path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_full_disk_refuses_each_call_and_heals(workspace: Path, home: Path, tmp_path: Path) -> None:
    with small_disk(workspace, home) as (line, disk):
        line.hello("somebody")
        assert think(line) is None
        names = line.names()
        ballast = disk / "ballast"
        filled(ballast)
        told = [think(line) for _ in range(300)]
        assert told[-1] == "STORE_FULL"
        assert set(told) <= {None, "STORE_FULL"}
        written = line.call("fs_write_file", path="new.txt", content="x" * 10_000)
        assert code(written) == "STORE_FULL"
        assert line.names() == names, "what needs no record goes on"
        ballast.unlink()
        assert heals(line)
        assert code(line.call("fs_write_file", path="new.txt", content="x" * 10_000)) is None
        shutil.copytree(disk / ".menugate", tmp_path / "copy" / ".menugate")
        assert said(line) == ""
    with reader(tmp_path / "copy", home) as kept:
        report = kept.verify()
        assert report.ok, report.faults
        intents = sum(row.kind == "intent" for row in kept.read_rows())
    assert intents >= told.count(None) + 3


def test_a_disk_that_is_full_at_the_start(workspace: Path, home: Path) -> None:
    """The file that a tool writes on a full disk is refused in words, too."""
    with small_disk(workspace, home) as (line, disk):
        line.hello("somebody")
        filled(disk / "ballast")
        assert think(line) in ("STORE_FULL", "STORE_UNAVAILABLE")
        assert line.names()
        (disk / "ballast").unlink()
        assert heals(line)


def test_files_that_may_not_grow(workspace: Path, home: Path) -> None:
    """Not full, and yet no byte more: a quota, a limit of the process."""
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody")
        assert think(line) is None
        size = (workspace / ".menugate" / "state.db-wal").stat().st_size
        resource.prlimit(line.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        told = [think(line) for _ in range(20)]
        assert told[-1] in ("STORE_UNAVAILABLE", "STORE_FULL")
        assert code(line.call("fs_write_file", path="new.txt", content="x")) == told[-1]
        assert not (workspace / "new.txt").exists()
        resource.prlimit(line.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert heals(line)
        assert said(line) == ""
    with reader(workspace, home) as kept:
        report = kept.verify()
        assert report.ok, report.faults


# A file that is damaged, newer, gone, or somebody else's.

SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "its first page": lambda data: b"\xff" * 4096 + data[4096:],
    "its tree": lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
    "everything": lambda data: b"no database at all",
    "its end": lambda data: data[:4096],
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_file_damaged_before_the_start(workspace: Path, home: Path, what: str) -> None:
    prepared(workspace, home)
    state(workspace).write_bytes(SPOILED[what](state(workspace).read_bytes()))
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody")
        assert line.names()
        assert think(line) is None
        refused = code(line.call("fs_write_file", path="new.txt", content="x"))
        assert refused == "READ_ONLY_WORK", "what the person chose is lost, so the least there is holds"
        assert code(line.call("Read", file_path="notes.md")) == "APPROVAL_REQUIRED"
        assert "Traceback" not in said(line)
    assert list(state(workspace).parent.glob("state.db.corrupt-*"))
    assert not (workspace / "new.txt").exists()


@pytest.mark.parametrize("what", ["its tree", "everything"])
def test_a_file_damaged_while_it_is_used(workspace: Path, home: Path, what: str) -> None:
    prepared(workspace, home)
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody")
        assert think(line) is None
        database = sqlite3.connect(state(workspace))
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        with state(workspace).open("r+b") as file:
            spoiled = SPOILED[what](file.read())
            file.seek(0)
            file.write(spoiled)
            file.truncate(len(spoiled))
        told = None
        for number in range(12):
            told = code(line.call("fs_write_file", path=f"new{number}.txt", content="x"))
            assert told in ("STORE_UNAVAILABLE", "READ_ONLY_WORK"), "never under a posture that is lost"
        assert told == "READ_ONLY_WORK"
        assert think(line) is None
        assert line.names()
        assert "Traceback" not in said(line)


def test_a_state_of_a_newer_version(workspace: Path, home: Path) -> None:
    prepared(workspace, home)
    sql(workspace, "UPDATE workspace SET schema_version = 99")
    before = state(workspace).read_bytes()
    with pipe(workspace, home) as line:
        line.hello("somebody")
        assert line.names()
        for _ in range(3):
            told = line.call("think", content="x")
            assert code(told) == "STORE_UNAVAILABLE"
            assert "newer menugate" in told["content"][0]["text"]
        assert "Traceback" not in said(line)
    assert "newer menugate" in refused_to_start(workspace, home, "--http", "127.0.0.1:0")
    assert state(workspace).read_bytes() == before


def test_a_database_of_somebody_else(workspace: Path, home: Path) -> None:
    state(workspace).parent.mkdir()
    database = sqlite3.connect(state(workspace))
    with database:
        database.execute("CREATE TABLE accounts (x)")
    database.close()
    with pipe(workspace, home) as line:
        line.hello("somebody")
        assert think(line) == "STORE_UNAVAILABLE"
    assert "not menugate's" in refused_to_start(workspace, home, "--http", "127.0.0.1:0")


def test_a_state_folder_that_is_taken_away(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody")
        assert think(line) is None
        shutil.rmtree(workspace / ".menugate")
        assert code(line.call("fs_write_file", path="new.txt", content="x")) == "READ_ONLY_WORK"
        assert think(line) is None
        assert (workspace / ".menugate" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_workspace_folder_that_is_moved_away_is_not_made_anew(
    workspace: Path, home: Path, tmp_path: Path, era: str
) -> None:
    """A second folder of its name would be taken for it, with a record and a posture that begin anew."""
    moved = tmp_path / "moved"
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody", era)
        assert think(line) is None
        workspace.rename(moved)
        refused = [line.call("think", content="x") for _ in range(3)]
        assert {code(one) for one in refused} == {"STORE_UNAVAILABLE"}
        assert "moved, renamed or deleted" in refused[-1]["content"][0]["text"]
        assert not workspace.exists()
        moved.rename(workspace)
        assert heals(line)
        assert "Traceback" not in said(line)
    with Reader.open(f"sqlite:///{state(workspace)}", secrets=home / ".local" / "state" / "menugate") as kept:
        assert kept.verify().ok, kept.verify()


# A folder that is not there to be written.


def test_a_file_where_the_state_folder_should_be(workspace: Path, home: Path) -> None:
    (workspace / ".menugate").write_text("x")
    assert ".menugate" in refused_to_start(workspace, home)
    assert ".menugate" in refused_to_start(workspace, home, "--http", "127.0.0.1:0")


@pytest.mark.parametrize("known", [False, True], ids=["new", "worked in"])
@pytest.mark.parametrize("flags", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_a_workspace_that_cannot_be_written(workspace: Path, home: Path, known: bool, flags: tuple[str, ...]) -> None:
    if known:
        prepared(workspace, home)
    script = f'mount --bind "{workspace}" "{workspace}" && mount -o remount,bind,ro "{workspace}" && exec "$@"'
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("nothing can be made read-only here: " + probe.stderr.decode().strip())
    run = ["unshare", "-rm", "sh", "-c", script, "sh", *command("serve")]
    if known and not flags:
        with pipe(workspace, home, run=run) as line:
            line.hello("somebody")
            assert line.names()
            assert think(line) == "STORE_UNAVAILABLE"
            assert "Traceback" not in said(line)
        return
    told = refused_to_start(workspace, home, *flags, run=run)
    assert "Read-only" in told or "read-only" in told or "readonly" in told, told


@pytest.mark.parametrize("flags", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_a_state_folder_that_is_a_link(workspace: Path, home: Path, tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A folder that somebody sends may hold a link in the place of our state: what it leads to is not ours."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (workspace / ".menugate").symlink_to(elsewhere)
    told = refused_to_start(workspace, home, *flags)
    assert ".menugate" in told
    assert "link" in told
    assert list(elsewhere.iterdir()) == []


def test_a_state_folder_that_becomes_a_link(workspace: Path, home: Path, tmp_path: Path) -> None:
    elsewhere = workspace / "src" / "elsewhere"
    elsewhere.mkdir()
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody")
        assert think(line) is None
        (workspace / ".menugate").rename(tmp_path / "moved")
        (workspace / ".menugate").symlink_to(elsewhere)
        told = {think(line) for _ in range(3)}
        assert told == {"STORE_UNAVAILABLE"}
        assert list(elsewhere.iterdir()) == [], "nothing of ours was put where a tool can read it"
        (workspace / ".menugate").unlink()
        (tmp_path / "moved").rename(workspace / ".menugate")
        assert heals(line)
        assert "Traceback" not in said(line)


# Another process.


@pytest.mark.heavy
@pytest.mark.parametrize("how", ["over HTTP", "over stdio"])
def test_a_move_by_handle_in_another_process_is_heard_of(workspace: Path, home: Path, how: str) -> None:
    with pipe(workspace, home) as one, served(workspace, home) as here, pipe(workspace, home) as other:
        one.hello("somebody")
        other.hello("somebody")
        handle = one.call("menu_enter", mode="swe")["structuredContent"]["menu"]
        call = Speaker(here).hello().call if how == "over HTTP" else other.call
        assert call("menu_enter", mode="data", menu=handle)["isError"] is False
        since = time.monotonic()
        assert one.message()["method"] == CHANGED
        assert time.monotonic() - since < 0.5
        assert "fs_list_directory" in one.names()
        assert code(one.call("fs_list_directory", path=".")) is None
        assert code(call("menu_exit", menu=handle)) is None
        assert one.message()["method"] == CHANGED
        assert code(one.call("fs_list_directory", path=".")) == "WRONG_MODE"


HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "r+"); fcntl.flock(file, fcntl.LOCK_EX); print("holding", flush=True); time.sleep(60)
"""


@pytest.mark.heavy
def test_a_stopped_process_that_holds_the_lock(workspace: Path, home: Path) -> None:
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody")
        assert think(line) is None
        lock = str(workspace / ".menugate" / "state.lock")
        holder = subprocess.Popen([sys.executable, "-c", HOLD, lock], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "holding\n"
            os.kill(holder.pid, signal.SIGSTOP)
            since = time.monotonic()
            calls = [line.send("tools/call", {"name": "think", "arguments": {"content": str(n)}}) for n in range(5)]
            assert line.names(), "and meanwhile lists are shown"
            assert time.monotonic() - since < 1
            told = [line.until(number)[0]["result"] for number in calls]
            assert [code(result) for result in told] == ["BUSY"] * 5
            assert time.monotonic() - since < 6
        finally:
            holder.kill()
            holder.communicate()
        assert heals(line)
        assert said(line) == ""
    kinds = [
        json.loads(body)["kind"] for (body,) in sqlite3.connect(state(workspace)).execute("SELECT body FROM ledger")
    ]
    assert kinds[-1] == "stop"
