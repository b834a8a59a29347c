"""R16: a program hides the server that started it after the first look, before the attempt is recorded."""

import fcntl
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from mcp_server.state.engine.sqlite import DatabaseLock
from mcp_server.state.processes import read_start_time
from mcp_server.state.servers import Server, publish_server, withdraw_server
from tests.attacks.test_r16_model_answers_its_own_question import recorded
from tests.clients.served import PATIENCE, command, environment
from tests.clients.typed import typed

ACTING = (
    ("call", "Write", '{"file_path": "new.md", "content": "x"}'),
    ("doctor", "fix"),
    ("serve",),
    ("stop",),
    ("trust",),
    ("approve", "abcdefgh"),
)


def is_waited_for(turn: Path) -> bool:
    """Does a process wait for the state's lock? It holds the turn meanwhile."""
    with turn.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("words", ACTING, ids=lambda words: words[0])
def test_the_first_look_counts(workspace: Path, home: Path, words: tuple[str, ...]) -> None:
    (workspace / "menugate.yaml").write_text("rules:\n  allow: [Read]\n")
    assert typed(workspace, home, "profile", "unrestricted").code == 0
    state = workspace / ".menugate"
    # This process poses as a server, and starts the command.
    publish_server(state, Server(os.getpid(), read_start_time(os.getpid())))
    lock = DatabaseLock(state / "state.lock")
    lock.acquire()
    with subprocess.Popen(
        [*command(*words), "--workspace", str(workspace)],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and not is_waited_for(state / "state.turn"):
            time.sleep(0.01)
        withdraw_server(state, os.getpid())
        lock.close()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, out + err
    assert "cannot act for you" in " ".join(err.split())
    assert not out
    assert not (workspace / "new.md").exists()
    (attempt,) = recorded(workspace, home, "attempt")
    assert words[0] in attempt["command"]
    assert not json.loads(typed(workspace, home, "trust", "--show", "--json").out)["trusted"]
