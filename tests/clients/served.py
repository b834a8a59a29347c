"""A folder served for a test: over HTTP from a process of its own, on a free loopback port."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clients import warm

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds after which something hangs. Nothing is measured by it: a test that asks how long is marked `heavy`."""


def state_home(home: Path) -> Path:
    """Where the account of this home keeps its keys."""
    return home / ".local" / "state" / "menugate"


def environment(home: Path) -> dict[str, str]:
    """An empty home, and nothing of what the person at this machine has set."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "MENUGATE_STATE_HOME": str(state_home(home)),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "LC_ALL": "C.UTF-8",
    }


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mcp_server", *arguments]


@dataclass
class Served:
    url: str
    token: str
    workspace: Path
    process: subprocess.Popen[str] | None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@contextmanager
def served(workspace: Path, home: Path, *flags: str, run: Sequence[str] = ()) -> Generator[Served, None, None]:
    started = [*(run or command("serve")), "--workspace", str(workspace), "--http", "127.0.0.1:0", *flags]
    process = warm.start(
        started,
        environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _announced(process, workspace)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise


def _announced(process: subprocess.Popen[str], workspace: Path) -> Served:
    """What the server says of itself when it is ready."""
    assert process.stdout is not None
    said = ""
    stopped = threading.Timer(PATIENCE, process.kill)
    stopped.start()
    for line in process.stdout:
        said += line
        if "ready" in line:
            stopped.cancel()
            url, token = re.search(r"(http://\S+/mcp)\b", said), re.search(r"token\s+(\S+)", said)
            assert url is not None, said
            return Served(url[1], token[1] if token else "", workspace, process)
    raise AssertionError(f"the server did not start:\n{said}")
