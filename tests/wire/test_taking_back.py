"""What happens to a call whose client takes it back, or is gone? It stops, says so once, and holds nothing."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import ERAS
from tests.clients.line import HttpLine, Speaker, request
from tests.clients.pipe import META, Pipe, pipe
from tests.clients.served import PATIENCE, Served, environment, served
from tests.clients.waiting import wait_until
from tests.wire.faulty import MODE

RUN = [sys.executable, "-m", "tests.wire.faulty"]


def rows(workspace: Path) -> list[dict[str, Any]]:
    state = sqlite3.connect(f"file:{workspace}/.menugate/state.db?mode=ro", uri=True)
    try:
        return [json.loads(body) for (body,) in state.execute("SELECT body FROM ledger ORDER BY seq")]
    finally:
        state.close()


def outcomes(workspace: Path, tool: str) -> list[str]:
    return [row["ending"] for row in rows(workspace) if row["kind"] == "outcome" and row["tool"] == tool]


def settled(workspace: Path, mark: Path, tool: str = "wait_for_ever") -> None:
    """The tool was stopped, and that stands in the ledger once."""
    wait_until(mark.with_suffix(".stopped").exists)
    wait_until(lambda: outcomes(workspace, tool) != [])
    intents = [row for row in rows(workspace) if row["kind"] == "intent" and row["tool"] == tool]
    assert len(intents) == 1
    assert outcomes(workspace, tool) == ["cancelled"]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


def waiting(mark: Path) -> dict[str, Any]:
    return {"name": "wait_for_ever", "arguments": {"mark": str(mark)}}


def begun(mark: Path) -> None:
    wait_until(mark.with_suffix(".begun").exists)


def cancel(line: Pipe, request_id: int | str) -> None:
    params = {"requestId": request_id, "reason": "not needed any more"}
    line.raw(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).encode() + b"\n")


@pytest.mark.parametrize("era", ERAS)
def test_a_call_taken_back_over_stdio(workspace: Path, home: Path, mark: Path, era: str) -> None:
    with pipe(workspace, home, "--mode", MODE, run=RUN) as line:
        line.hello("somebody", era)
        sent = line.send("tools/call", waiting(mark))
        begun(mark)
        cancel(line, sent)
        settled(workspace, mark)
        assert line.call("think", content="still there?")["isError"] is False
        assert line.quiet(), "nothing is said to a call that was taken back"


def test_a_call_taken_back_over_http_in_the_legacy_era(workspace: Path, home: Path, mark: Path) -> None:
    with served(workspace, home, "--mode", MODE, run=RUN) as here:
        speaker = Speaker(here).hello()
        with speaker.start("tools/call", waiting(mark)) as line:
            begun(mark)
            sent = json.loads(speaker.body("ping"))["id"] - 1
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": sent}}
            assert speaker.post(json.dumps(note).encode()).status == 202
            settled(workspace, mark)
            assert line.answer().status == 200, "its stream ends"
        assert speaker.call("think", content="still there?")["isError"] is False


def test_a_connection_that_closes_takes_its_call_back_in_the_modern_era(
    workspace: Path, home: Path, mark: Path
) -> None:
    with served(workspace, home, "--mode", MODE, run=RUN) as here:
        speaker = Speaker(here, ERAS[1])
        line = speaker.start("tools/call", waiting(mark))
        begun(mark)
        line.close()
        settled(workspace, mark)
        assert speaker.call("think", content="still there?")["isError"] is False


def test_a_stream_that_closes_takes_its_calls_back(workspace: Path, home: Path, mark: Path) -> None:
    with served(workspace, home, "--mode", MODE, run=RUN) as here:
        speaker = Speaker(here)
        line = speaker.open()
        line.send(request("GET", "/sse", speaker.headers(b"", content_length=None, content_type=None)))
        assert line.head()[0] == 200
        speaker.path = line.chunk().split(b"data: ")[1].split()[0].decode()
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert speaker.ask("initialize", about).status == 202
        assert line.event()["result"]
        assert speaker.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').status == 202
        assert speaker.ask("tools/call", waiting(mark)).status == 202
        begun(mark)
        line.close()
        settled(workspace, mark)


def test_a_session_that_is_ended_takes_its_calls_back(workspace: Path, home: Path, mark: Path) -> None:
    with served(workspace, home, "--mode", MODE, run=RUN) as here:
        speaker = Speaker(here).hello()
        with speaker.start("tools/call", waiting(mark)):
            begun(mark)
            with speaker.open() as line:
                line.send(request("DELETE", "/mcp", speaker.headers(b"")))
                assert line.answer().status == 200
            settled(workspace, mark)


@pytest.mark.heavy
@pytest.mark.parametrize("era", ERAS)
def test_the_end_of_stdin_takes_everything_back(workspace: Path, home: Path, mark: Path, era: str) -> None:
    with pipe(workspace, home, "--mode", MODE, run=RUN) as line:
        line.hello("somebody", era)
        line.send("tools/call", waiting(mark))
        begun(mark)
        assert line.process.stdin is not None
        line.process.stdin.close()
        since = time.monotonic()
        assert line.process.wait(PATIENCE) == 0
        assert time.monotonic() - since < 2
    settled(workspace, mark)
    assert rows(workspace)[-1]["kind"] == "stop"


def test_a_client_that_is_killed_takes_its_server_along(workspace: Path, home: Path, mark: Path) -> None:
    """The server's parent dies without a word; its pipes close, and that is all the server learns."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": waiting(mark) | {"_meta": META}}
    script = f"""
import subprocess
command = {[*RUN, "--workspace", str(workspace), "--mode", MODE]!r}
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
server.stdin.write({json.dumps(message).encode()!r} + bytes([10]))
server.stdin.flush()
server.wait()
"""
    client = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(home), cwd=home, stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    server = int(client.stdout.readline())
    begun(mark)
    client.kill()
    client.wait()
    client.stdout.close()
    settled(workspace, mark)
    wait_until(lambda: rows(workspace)[-1]["kind"] == "stop")
    wait_until(lambda: gone(server))


def gone(process: int) -> bool:
    """Ended, whoever has to bury it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("era", ERAS)
def test_a_call_taken_back_at_once_has_its_outcome_too(workspace: Path, home: Path, era: str) -> None:
    """Taken back in the same breath: while it is looked for, decided, recorded, run or shown."""
    with pipe(workspace, home, "--listing", "flat") as line:
        line.hello("somebody", era)
        line.call("think", content="so that the state is open")
        for number in range(60):
            sent = line.send("tools/call", {"name": "fs_write_file", "arguments": {"path": f"{number}", "content": ""}})
            if number % 3:
                time.sleep(0.0004 * (number % 8))
            cancel(line, sent)
        assert line.call("menu_enter", mode="swe")["isError"] is False
        assert line.call("fs_write_file", path="last", content="")["isError"] is False
        assert line.process.stdin is not None
        line.process.stdin.close()
        line.process.wait(PATIENCE)
    told = rows(workspace)
    intents = [seq for seq, row in enumerate(told, 1) if row["kind"] == "intent"]
    concluded = [row["intent"] for row in told if row["kind"] == "outcome"]
    assert sorted(concluded) == intents
    endings = {row["ending"] for row in told if row["kind"] == "outcome"}
    assert endings == {"done", "cancelled"}


def test_locks_are_free_after_a_call_was_taken_back(workspace: Path, home: Path) -> None:
    """A session moves on after a move was taken back, and so does another process on this workspace."""
    with pipe(workspace, home) as line, pipe(workspace, home) as other:
        line.hello("somebody")
        other.hello("somebody")
        for number in range(20):
            sent = line.send("tools/call", {"name": "menu_enter", "arguments": {"mode": ("swe", "data")[number % 2]}})
            cancel(line, sent)
        assert line.call("menu_enter", mode="swe")["isError"] is False
        assert other.call("menu_enter", mode="data")["isError"] is False
        assert line.call("Read", file_path="notes.md")["isError"] is False


@pytest.mark.parametrize("era", ERAS)
def test_progress_comes_to_who_asked_over_stdio(workspace: Path, home: Path, era: str) -> None:
    with pipe(workspace, home, "--mode", MODE, run=RUN) as line:
        line.hello("somebody", era)
        for token in ("t1", 7, 0):
            line.raw(asking(line, 1000, token))
            answer, before = line.until(1000)
            assert answer["result"]["isError"] is False
            assert [note["params"] for note in before] == reports(token)
        answer, before = line.until(line.send("tools/call", {"name": "report_progress", "arguments": {}}))
        assert before == [], "nobody asked"


def asking(line: Pipe, request_id: int, token: str | int) -> bytes:
    meta = ({} if line.era == "legacy" else META) | {"progressToken": token}
    params = {"name": "report_progress", "arguments": {}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}).encode() + b"\n"


def reports(token: str | int) -> list[dict[str, Any]]:
    return [
        {"progressToken": token, "progress": done, "total": 100, "message": f"{done} of 100"} for done in (0, 50, 100)
    ]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("progress")
    for name in ("work", "home"):
        (folder / name).mkdir()
    with served(folder / "work", folder / "home", "--mode", MODE, run=RUN) as one:
        yield one


@pytest.mark.parametrize("era", ERAS)
def test_progress_comes_to_who_asked_over_http(house: Served, era: str) -> None:
    speaker = Speaker(house, era).hello()
    params: dict[str, Any] = {"name": "report_progress", "arguments": {}}
    *notes, result = speaker.ask("tools/call", params | {"_meta": {"progressToken": "t"}}).messages
    assert [note["params"] for note in notes] == reports("t")
    assert result["result"]["isError"] is False
    assert len(speaker.ask("tools/call", params).messages) == 1, "nobody asked"


# Signals.


@contextmanager
def busy(here: Served, mark: Path) -> Generator[list[HttpLine]]:
    """Everything that can be open is: streams of all three kinds, and a call in flight in either era."""
    with ExitStack() as stack:
        older, newer = Speaker(here).hello(), Speaker(here, ERAS[1])
        held: list[HttpLine] = []
        for path in ("/mcp", "/sse"):
            line = stack.enter_context(older.open())
            line.send(request("GET", path, older.headers(b"", content_length=None, content_type=None)))
            held.append(line)
        listening = {"notifications": {"toolsListChanged": True}}
        held.append(stack.enter_context(newer.start("subscriptions/listen", listening)))
        for line in held:
            assert line.head()[0] == 200
        for number, speaker in enumerate((older, newer)):
            one = mark.with_name(f"mark{number}")
            stack.enter_context(speaker.start("tools/call", waiting(one)))
            begun(one)
        yield held


@pytest.mark.heavy
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_over_http(workspace: Path, home: Path, mark: Path, signum: int) -> None:
    with served(workspace, home, "--mode", MODE, run=RUN) as here, busy(here, mark):
        assert here.process is not None
        since = time.monotonic()
        here.process.send_signal(signum)
        assert here.process.wait(PATIENCE) == 0
        assert time.monotonic() - since < 5
        assert here.process.stdout is not None
        assert "ASGI" not in here.process.stdout.read(), "that somebody was there is no fault"
    told = rows(workspace)
    assert [row["ending"] for row in told if row["kind"] == "outcome"] == ["cancelled", "cancelled"]
    assert told[-1]["kind"] == "stop"
    assert mark.with_name("mark0.stopped").exists()
    assert mark.with_name("mark1.stopped").exists()


@pytest.mark.heavy
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("era", ERAS)
def test_a_signal_ends_a_server_over_stdio(workspace: Path, home: Path, mark: Path, era: str, signum: int) -> None:
    with pipe(workspace, home, "--mode", MODE, run=RUN) as line:
        line.hello("somebody", era)
        line.send("tools/call", waiting(mark))
        begun(mark)
        since = time.monotonic()
        line.process.send_signal(signum)
        assert line.process.wait(PATIENCE) == 0
        assert time.monotonic() - since < 2
    settled(workspace, mark)
    assert rows(workspace)[-1]["kind"] == "stop"


@pytest.mark.heavy
def test_a_second_signal_does_not_cut_the_end_short(workspace: Path, home: Path, mark: Path) -> None:
    with served(workspace, home, "--mode", MODE, run=RUN) as here, busy(here, mark):
        assert here.process is not None
        for _ in range(20):
            here.process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        assert here.process.wait(PATIENCE) == 0
    assert rows(workspace)[-1]["kind"] == "stop"


@pytest.mark.heavy
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_person_at_a_terminal_ends_it(workspace: Path, home: Path, signum: int) -> None:
    """A terminal is no pipe: what reads from it waits in a thread that nobody can wake."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcp_server", "serve", "--workspace", str(workspace)],
        env=environment(home),
        cwd=home,
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    try:
        os.write(master, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == 1
        since = time.monotonic()
        process.send_signal(signum)
        assert process.wait(PATIENCE) == 0
        assert time.monotonic() - since < 2
    finally:
        process.kill()
        process.communicate()
        os.close(master)
