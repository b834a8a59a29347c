"""Does today's code open what an older one left behind, read all of it, and go on where that stopped?

tests/data/state_5b4ca16/README.md says who did what in it.
"""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import warm
from tests.clients.pipe import Pipe
from tests.clients.served import PATIENCE, command, environment, state_home

OLDER = Path(__file__).parents[1] / "data" / "state_5b4ca16"
ROWS = 73


@dataclass
class Older:
    """A copy of it, with the account it belongs to."""

    work: Path
    home: Path

    @property
    def env(self) -> dict[str, str]:
        return {**environment(self.home), "LOGNAME": "ada"}

    def menugate(self, *words: str) -> str:
        done = warm.run(
            command(*words, "--workspace", str(self.work)), self.env, cwd=self.home, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.menugate(*words, "--json"))

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.menugate("audit", "tail", "-n", "500", "--json").splitlines()]

    @contextmanager
    def served(self) -> Generator[Pipe]:
        process = warm.start(
            command("serve", "--workspace", str(self.work)),
            self.env,
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            one = Pipe(process)
            one.hello()
            yield one
            assert one.bye() == 0
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()


@pytest.fixture
def older(workspace: Path, home: Path) -> Older:
    state, keys = workspace / ".menugate", state_home(home)
    for folder, copied in ((state, ("state.db", "ledger.anchor")), (keys, ("ledger.key", "request-state.key"))):
        folder.mkdir(mode=0o700, parents=True)
        for name in copied:
            shutil.copyfile(OLDER / name, folder / name)
            os.chmod(folder / name, 0o600)
    return Older(workspace, home)


@pytest.fixture
def upgraded(older: Older) -> Older:
    """The same after a server of today was called in it once."""
    with older.served() as one:
        one.call("menu_list")
    return older


def test_a_command_reads_it_and_does_not_change_it(older: Older) -> None:
    """A server brings it up to date."""
    before = (older.work / ".menugate" / "state.db").read_bytes()
    assert f"{ROWS} rows" in older.menugate("audit", "verify")
    assert len(older.rows()) == ROWS
    for words in (
        ("status",),
        ("messages", "--all", "--keep"),
        ("approvals", "--all"),
        ("steer",),
        ("audit", "why", "4"),
    ):
        older.menugate(*words)
    assert (older.work / ".menugate" / "state.db").read_bytes() == before


def test_its_chain_is_whole(older: Older) -> None:
    before = stored_rows(older)
    with older.served() as one:
        one.call("menu_list")
    assert len(before) == ROWS and stored_rows(older)[:ROWS] == before
    assert f"{len(stored_rows(older))} rows" in older.menugate("audit", "verify")


def stored_rows(older: Older) -> list[tuple[int, str, str]]:
    database = sqlite3.connect(older.work / ".menugate" / "state.db")
    try:
        return database.execute("SELECT seq, body, hash FROM ledger ORDER BY seq").fetchall()
    finally:
        database.close()


def test_one_changed_word_in_it_is_noticed(upgraded: Older) -> None:
    """Or the test above could not fail."""
    older = upgraded
    file = older.work / ".menugate" / "state.db"
    data = file.read_bytes()
    assert b"READ_ONLY_WORK" in data
    file.write_bytes(data.replace(b"READ_ONLY_WORK", b"READ_ONLY_WORD"))
    words = command("audit", "verify", "--workspace", str(older.work))
    assert warm.run(words, older.env, timeout=PATIENCE).returncode == 1


def test_calls_of_today_get_a_line_and_older_ones_have_none(upgraded: Older) -> None:
    older = upgraded
    with older.served() as one:
        one.call("menu_enter", mode="swe")
        one.call("Read", file_path="notes.md")
    rows = older.rows()
    assert [row["seq"] for row in rows[:ROWS] if "glance" in row] == []
    assert [row["glance"] for row in rows[ROWS:] if "glance" in row] == ["menu_list", "menu_enter", 'Read "notes.md"']


def test_everything_in_it_is_listed(upgraded: Older) -> None:
    older = upgraded
    rows = older.rows()
    assert [row["seq"] for row in rows[:ROWS]] == list(range(1, ROWS + 1))
    refused = [(row["tool"], row["code"]) for row in rows if row["kind"] == "refusal"]
    assert refused == [
        ("fs_delete", "WRONG_MODE"),
        ("message_user", "INVALID_ARGUMENTS"),
        ("Write", "READ_ONLY_WORK"),
    ]
    asked = {row["question"]: row["tool"] for row in rows if row["kind"] == "question"}
    assert list(asked.values()) == ["bash", "fs_delete"]
    assert [(asked[row["question"]], row["answer"]) for row in rows if row["kind"] == "answer"] == [("bash", "no")]
    done, pending = older.menugate("todos", "list").splitlines()[1:3]
    assert "[x]  Write done.txt" in done
    assert "[ ]  Read the notes again" in pending
    memory = older.menugate("memory", "list")
    assert "done.txt is written; `notes.md` says first." in memory
    assert "notes.md is read before anything is written" in memory
    assert "The file is written." in older.menugate("messages")
    assert "still pending: Read the notes again" in older.menugate("report")
    assert older.menugate("mode").split()[-2:] == ["build", "chosen"]
    assert older.menugate("profile").split()[-2:] == ["trusted", "chosen"]
    assert "0 rules" in older.menugate("doctor")


def test_it_goes_on_where_it_stopped(older: Older) -> None:
    with older.served() as one:
        one.call("menu_enter", mode="swe")
        paused = one.call("Write", file_path="later.txt", content="later\n")
        assert paused["_meta"]["menugate/refusal"]["code"] == "RUN_PAUSED"
        assert not (older.work / "later.txt").exists()
        older.menugate("next")
        assert not one.call("Write", file_path="later.txt", content="later\n")["isError"]
        assert (older.work / "later.txt").read_text() == "later\n"
        one.call("menu_enter", mode="project")
        assert "notes.md is read before anything is written" in json.dumps(one.call("memory_search", query="notes"))
    rows = older.rows()
    written = [row for row in rows[ROWS:] if row["kind"] == "intent" and row["tool"] == "Write"]
    assert len(written) == 1, "it stands in the same chain, behind what the older one wrote"
    assert f"{len(rows)} rows" in older.menugate("audit", "verify")
