"""How are server processes started, stopped and measured?"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

SETTLE, STOP, START = 2.0, 5.0, 30.0


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process we started: close its input, then terminate it, then kill it."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP)
    if process.stdout is not None:
        process.stdout.close()


def leave_nothing_running() -> None:
    """Turn SIGTERM into an exception, so that the servers are stopped as well."""

    def leave(_number: int, _frame: object) -> None:
        sys.exit(143)

    signal.signal(signal.SIGTERM, leave)


def build_environment(folder: Path) -> dict[str, str]:
    """Build an environment that neither reads nor writes the user's own settings."""
    # An installed server is compiled once, so Python may keep what it compiles, whatever the shell says.
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MENUGATE_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    return plain | {"MENUGATE_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def run_listening(argv: Sequence[str], address: tuple[str, int], log: Path) -> Generator[None, None, None]:
    """A server process, from the moment it accepts connections."""
    shelter = build_environment(log.parent)
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=shelter)
    try:
        wait_for(process, address, log)
        yield
    finally:
        stop(process)


def wait_for(process: subprocess.Popen[bytes], address: tuple[str, int], log: Path) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended before it listened:\n{log.read_text(errors='replace')[-2000:]}")
        with contextlib.suppress(OSError), socket.create_connection(address, 0.5):
            return
        time.sleep(0.02)
    raise RuntimeError(f"the server did not listen within {START:.0f} s; its log is {log}")


def measure_memory(pid: int) -> float:
    """Measure the memory of a process and its children, in bytes, once two readings agree; shared pages count in full,
    as in `ps`."""
    deadline, last = time.monotonic() + SETTLE, -1.0
    while time.monotonic() < deadline:
        now = sum(_read_memory(one) for one in list_family(pid))
        if now == last:
            break
        last = now
        time.sleep(0.1)
    return last


def list_family(pid: int) -> list[int]:
    """Find a process and its descendants; only the process if the system does not list them."""
    pids = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            pids += list_family(int(child))
    return pids


def _read_memory(pid: int) -> float:
    if sys.platform == "linux":
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                return float(line.split()[1]) * 1024
    output = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return float(output.stdout) * 1024
