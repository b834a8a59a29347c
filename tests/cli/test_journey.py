"""Does a person find again what happened, and is it noticed when somebody changes the record?"""

import asyncio
import fcntl
import json
import shlex
import signal
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_server.model.posture import WorkMode
from mcp_server.state.engine.chain import GENESIS, compute_row_hash, format_canonical_json
from mcp_server.state.engine.rows import LedgerFilter, Row
from mcp_server.state.reader import Reader
from tests.cli.conftest import Type
from tests.clients import warm
from tests.clients.person import choose
from tests.clients.pipe import pipe
from tests.clients.served import PATIENCE, command, environment


@pytest.fixture
def lived(menugate: Type) -> Type:
    """A workspace in which a little has happened: two calls that ran, one that was refused."""
    assert menugate('call fs_write_file \'{"path": "new.txt", "content": "x"}\'').code == 0
    assert menugate('call fs_read_file \'{"path": "new.txt"}\'').code == 0
    assert menugate('call fs_delete \'{"path": "new.txt"}\'').code == 1
    return menugate


def rows(menugate: Type, line: str = "audit tail -n 1000") -> list[dict[str, object]]:
    return [json.loads(one) for one in menugate(f"{line} --json").out.splitlines()]


def change(place: Path, sql: str) -> None:
    with sqlite3.connect(place / ".menugate" / "state.db") as file:
        assert file.execute(sql).rowcount == 1
    file.close()


def test_calls_leave_rows_that_verify(lived: Type, place: Path) -> None:
    assert (place / "new.txt").read_text() == "x"
    calls = [(row["kind"], row["tool"]) for row in rows(lived) if row.get("tool")]
    written, looked = ("fs_write_file", "fs_read_file")
    assert calls == [
        ("intent", written),
        ("outcome", written),
        ("intent", looked),
        ("outcome", looked),
        ("refusal", "fs_delete"),
    ]
    said = lived("audit verify")
    assert (said.code, "The record is intact" in said.out) == (0, True)


def test_a_call_on_the_command_line_says_where_it_came_from(lived: Type) -> None:
    (intent, *_) = rows(lived, "audit tail --kind intent")
    assert (intent["transport"], intent["mode"], intent["client"]) == ("cli", "data", "menugate call")
    assert str(intent["principal"]).startswith("local:")
    assert "content" not in intent


@pytest.mark.parametrize(
    ("sql", "finds"),
    [
        ("UPDATE ledger SET body = replace(body, 'fs_write_file', 'fs_read_file') WHERE seq = 2", "row 2"),
        ("DELETE FROM ledger WHERE seq = 3", "row 3"),
        ("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)", "the end of the ledger was cut off"),
    ],
    ids=["edited", "taken out", "cut off"],
)
def test_a_changed_record_is_found_and_named(sql: str, finds: str, lived: Type, place: Path) -> None:
    change(place, sql)
    said = lived("audit verify")
    assert said.code == 1
    assert "The record was tampered with" in said.out
    assert finds in said.out
    report = json.loads(lived("audit verify --json").out)
    assert (report["ok"], bool(report["faults"])) == (False, True)


def test_a_ledger_that_is_gone_is_not_a_ledger_that_never_was(lived: Type, place: Path) -> None:
    for path in (place / ".menugate").glob("state.db*"):
        path.unlink()
    said = lived("audit verify")
    assert (said.code, "the ledger was removed" in said.err) == (1, True)


def test_status_sees_that_the_end_was_cut_off(lived: Type, place: Path) -> None:
    change(place, "DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)")
    assert "are missing from its end" in lived("status").out


def test_an_export_can_be_checked_elsewhere(lived: Type, place: Path) -> None:
    said = lived("audit export --output ledger.jsonl")
    path = place / "ledger.jsonl"
    assert (said.code, said.out) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    seq, before = 0, GENESIS
    for line in path.read_text().splitlines():
        row = json.loads(line)
        seq, mark = row.pop("seq"), row.pop("hash")
        assert compute_row_hash(before, seq, format_canonical_json(row)) == mark
        before = mark
    assert seq == json.loads(lived("audit verify --json").out)["rows"]


def test_an_export_writes_over_nothing(lived: Type, place: Path) -> None:
    (place / "kept.txt").write_text("mine")
    said = lived("audit export --output kept.txt")
    assert (said.code, "does not overwrite" in said.err) == (1, True)
    assert (place / "kept.txt").read_text() == "mine"
    (place / "link.txt").symlink_to("elsewhere.txt")
    assert lived("audit export --output link.txt").code == 1
    assert not (place / "elsewhere.txt").exists()
    said = lived("audit export --output nowhere/at/all")
    assert (said.code, "cannot be created" in said.err) == (1, True)


def test_an_export_that_breaks_off_leaves_no_half_file(
    lived: Type, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(self: Reader, wanted: LedgerFilter, after: int = 0) -> Iterator[Row]:
        yield Row(1, "", "{}", {})
        raise KeyboardInterrupt

    monkeypatch.setattr(Reader, "read_rows", some)
    assert lived("audit export --output half.jsonl").code == 130
    assert not (place / "half.jsonl").exists()


def test_a_follower_sees_what_comes(lived: Type, place: Path, home: Path) -> None:
    with shell("audit tail --follow --json --tool fs_list_directory", place, home) as process:
        assert process.stdout is not None and process.stderr is not None
        lived("call fs_list_directory")
        kinds = [json.loads(process.stdout.readline())["kind"] for _ in range(2)]
        process.send_signal(signal.SIGINT)
        code, said = process.wait(PATIENCE), process.stderr.read()
        assert (code, said) == (130, ""), said[-1500:]
    assert kinds == ["intent", "outcome"]


def test_a_reader_that_goes_away_is_no_fault(lived: Type, place: Path, home: Path) -> None:
    with shell("audit export", place, home) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


def test_messages_are_new_until_they_were_shown(menugate: Type) -> None:
    for text in ("first", "second\nline"):
        menugate("call message_user", json.dumps({"message": text, "attachments": ["notes.md"]}))
    assert "2 unread" in menugate("status").out
    assert [one["text"] for one in json.loads(menugate("messages --json --keep").out)] == ["first", "second\nline"]
    said = menugate("messages").out
    assert "first" in said and "| second\n| line" in said and "attached: notes.md" in said
    assert "No new messages" in menugate("messages").out
    menugate("call message_user", json.dumps({"message": "third"}))
    every = json.loads(menugate("messages --all --json").out)
    assert [(one["text"], one["read"]) for one in every] == [
        ("third", False),
        ("first", True),
        ("second\nline", True),
    ]
    assert "0 unread" in menugate("status").out


def test_reading_messages_keeps_the_record_whole(menugate: Type) -> None:
    menugate("call message_user", json.dumps({"message": "hello"}))
    menugate("messages")
    assert menugate("audit verify").code == 0


@pytest.mark.heavy  # as long as the state is waited for
def test_messages_that_cannot_be_marked_are_still_shown(menugate: Type, place: Path) -> None:
    menugate("call message_user", json.dumps({"message": "hello"}))
    with (place / ".menugate" / "state.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = menugate("messages")
    assert (said.code, "hello" in said.out, "They stay unread" in said.err) == (0, True, True)
    assert "hello" in menugate("messages").out


def test_everything_can_be_read_beside_a_running_server(place: Path, home: Path, menugate: Type) -> None:
    with pipe(place, home) as line:
        line.hello()
        line.call("menu_enter", mode="data")
        line.call("fs_delete", path="notes.md")
        facts = json.loads(menugate("status --json").out)
        assert [one["pid"] for one in facts["running"]] == [line.process.pid]
        assert facts["refusals"][-1]["code"] == "PROFILE_TOO_LOW"
        assert facts["sessions"] == 1
        assert menugate("audit verify").code == 0
        assert f"process {line.process.pid}" in menugate("status").out
        assert menugate('call fs_file_info \'{"path": "notes.md"}\'').code == 0
    gone = json.loads(menugate("status --json").out)
    assert gone["running"] == []


def test_a_handle_from_the_command_line_leads_back(menugate: Type) -> None:
    entered = json.loads(menugate('call menu_enter \'{"mode": "data"}\' --json').out)
    handle = entered["structuredContent"]["menu"]
    assert "You are in File Management" in menugate("call menu_list", json.dumps({"menu": handle})).out


def test_an_intent_without_outcome_says_so(lived: Type, place: Path) -> None:
    intent = rows(lived, "audit tail --kind intent")[-1]["seq"]
    change(place, f"DELETE FROM ledger WHERE seq = {intent} + 1")
    assert "No outcome" in lived(f"audit show {intent}").out


def test_what_was_chosen_holds_and_is_named(menugate: Type, place: Path, home: Path) -> None:
    menugate("call menu_list")
    (intent, *_) = rows(menugate, "audit tail --kind intent")
    asyncio.run(choose(place, home, str(intent["principal"]), work_mode=WorkMode.REVIEW))
    assert "work mode    review       chosen" in menugate("status").out
    assert "READ_ONLY_WORK" in menugate("explain Write").out
    assert "allow" in menugate("explain Write --work-mode build").out
    assert "READ_ONLY_WORK" in menugate("call Write").err


def test_a_state_that_was_lost_leaves_the_least_there_is(lived: Type, place: Path) -> None:
    (place / ".menugate" / "state.db").write_bytes(b"damaged" * 1000)
    lived("call menu_list")
    said = lived("status").out
    assert "because an earlier state was lost" in said
    assert "The state file was damaged" in lived("messages").out
    assert "PROFILE_TOO_LOW" in lived("explain fs_write_file").out or "READ_ONLY" in lived("explain fs_write_file").out


@contextmanager
def shell(line: str, place: Path, home: Path) -> Generator[subprocess.Popen[str], None, None]:
    """The real command, beside the test; never longer than the patience of one."""
    process = warm.start(
        command(*shlex.split(line)),
        environment(home),
        cwd=place,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    watch = threading.Timer(PATIENCE, process.kill)
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
