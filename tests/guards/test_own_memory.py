"""Can another program of this account read the memory of a process that holds secrets, and do its own still run?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.test_h11_accounts_of_one_folder import FIRST, LIBRARIES, ROOT, SYSTEM, as_account, shared, usable

HOLDER = """
import os, subprocess, sys
from pathlib import Path
from mcp_server.guards.own_memory import forbid_memory_reading
assert forbid_memory_reading()
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(b".")
child.stdin.flush()
child.stdout.read(1)  # it runs by now
Path(f"/proc/{child.pid}/oom_score_adj").write_text("500")
Path(f"/proc/{child.pid}/cwd").readlink()
own = Path("/proc/self")
folder = os.open("/", os.O_RDONLY)
for name in ("ns/pid", f"fd/{folder}"):
    (own / name).readlink()
for name in ("stat", "status", "cmdline", "cgroup", "mountinfo"):
    (own / name).read_bytes()
print(os.getpid(), child.pid, flush=True)
sys.stdin.read()
child.stdin.close()
child.wait()
"""
LOOKER = """
import sys
from pathlib import Path
for pid in sys.argv[1:]:
    for name in ("environ", "mem", "maps", "fd", "stat", "cmdline"):
        path = Path("/proc") / pid / name
        try:
            list(path.iterdir()) if name == "fd" else path.open("rb").close()
            print("open", end=" ")
        except OSError:
            print("shut", end=" ")
"""
__all__ = ["shared", "usable"]

pytestmark = pytest.mark.skipif(
    'sys.platform != "linux" or (os.geteuid() == 0 and not usable())', reason="no other account can run menugate here"
)


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """As an account that is not root, from which nothing is hidden."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{LIBRARIES}", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [*as_account(FIRST), SYSTEM] if os.geteuid() == 0 else [sys.executable]
    process = subprocess.Popen(
        [*words, "-c", HOLDER], env=env, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.communicate(timeout=60)


def test_memory_and_environment_are_shut_and_what_ps_reads_is_open(holder: subprocess.Popen[str]) -> None:
    assert holder.stdout is not None
    own, child = holder.stdout.readline().split()
    words = as_account(FIRST) if os.geteuid() == 0 else []
    found = subprocess.run([*words, SYSTEM, "-c", LOOKER, own, child], cwd="/", capture_output=True, text=True)
    answers = found.stdout.split()
    assert answers[:6] == ["shut"] * 4 + ["open"] * 2, found.stderr
    assert answers[6:] == ["open"] * 6, "a program that we start is as readable as any"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_a_server_of_an_account_still_runs_commands_in_every_sandbox(shared: Path) -> None:
    """Nothing that starts a child reads what is shut."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{LIBRARIES}", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"MENUGATE_STATE_HOME": str(shared / "keys" / "own")}
    line = [*as_account(FIRST), SYSTEM, "-m", "mcp_server", "call", "--mode", "swe", "--profile", "trusted"]
    line += ["--workspace", str(shared / "work"), "bash", '{"command": "echo still running"}']
    found = subprocess.run(line, env=env, cwd=shared / "work", capture_output=True, text=True, timeout=300)
    assert "still running" in found.stdout, found.stdout + found.stderr
