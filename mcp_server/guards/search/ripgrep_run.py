"""What does ripgrep print? Runs it in a sandbox and without a shell, limited in time and size.

ripgrep opens paths that it listed earlier. Swapping a folder for a link in between would lead it out of the workspace,
so its sandbox leaves it only its own program and the folders that we opened ourselves.
"""

import os
import resource
import selectors
import signal
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.sandbox.access import find_program
from mcp_server.guards.sandbox.landlock import CONFINE, build_launcher_arguments, write_plan_file
from mcp_server.guards.search.matches import MAX_OUTPUT_BYTES, EngineUnavailable, SearchDeadline

LOADER_PATHS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
"""The loader reads these if ripgrep is not statically linked. None of it is secret."""
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
EXIT_CODES = (0, 1, 2)
"""Matches, no matches, errors. Any other code, or errors together with 1, means that ripgrep itself did not run."""
THREADS = 2
MAX_MEMORY_BYTES = 4 << 30
OUTSIDE = "/proc/self/status"
"""Readable outside the sandbox and not inside, so the launcher can check that the sandbox holds."""
CHUNK_BYTES = 1 << 16
MAX_ERROR_BYTES = 1 << 14


class RipgrepOutput(Struct, frozen=True):
    output: bytes
    errors: str
    status: int
    truncated: bool
    timed_out: bool


class RipgrepAccess(Struct, frozen=True):
    """What one run may read: paths below an open folder, and files that we opened for it."""

    start: int
    paths: tuple[str, ...]
    lent: tuple[int, ...] = ()
    stdin: int | None = None


def find_ripgrep(search_path: str, workspace: Path, configured: Path | None = None) -> Path | None:
    """Find the program: the configured one, the first on the search path that is not from the workspace, or the
    wheel's."""
    program = str(configured) if configured else find_program("rg", search_path or os.defpath, workspace)
    if program is None:
        wheel = Path(sysconfig.get_path("scripts")) / "rg"
        program = str(wheel) if os.access(wheel, os.X_OK) else None
    return Path(program).resolve() if program and os.access(program, os.X_OK) else None


def build_ripgrep_plan(access: RipgrepAccess, seconds: int) -> dict[str, object]:
    return {
        "start": access.start,
        "below": [path.removeprefix("./") or "." for path in access.paths],
        "lent": list(access.lent),
        "open": {"run": list(LOADER_PATHS)},
        "outside": OUTSIDE,
        "bounds": {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_CPU: seconds,
            resource.RLIMIT_AS: MAX_MEMORY_BYTES,
        },
    }


def run_ripgrep(
    program: Path, arguments: Sequence[str], access: RipgrepAccess, deadline: SearchDeadline
) -> RipgrepOutput:
    plan = write_plan_file(build_ripgrep_plan(access, max(int(deadline.seconds_left), 0) * THREADS + 2))
    try:
        process = subprocess.Popen(  # noqa: S603  # no shell; every word is ours or follows `-e` or `--`
            [*build_launcher_arguments(CONFINE, plan), str(program), *arguments],
            stdin=subprocess.DEVNULL if access.stdin is None else access.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(plan, access.start, *access.lent),
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(plan)
    with process:
        try:
            output = _read_output(process, deadline)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    stopped = output.truncated or output.timed_out
    if not stopped and (process.returncode not in EXIT_CODES or (process.returncode == 1 and output.errors)):
        raise EngineUnavailable(output.errors or f"ended with {process.returncode}")
    return replace(output, status=process.returncode)


def _read_output(process: "subprocess.Popen[bytes]", deadline: SearchDeadline) -> RipgrepOutput:
    """Read until ripgrep ends, prints too much or takes too long."""
    output, errors = bytearray(), bytearray()
    truncated = timed_out = False
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((process.stdout, output), (process.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map() and not (truncated or timed_out):
            ready = selector.select(max(deadline.seconds_left, 0))
            timed_out = not ready and deadline.is_over
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(errors) < MAX_ERROR_BYTES:
                    key.data.extend(chunk)
            truncated = len(output) > MAX_OUTPUT_BYTES
    if not (truncated or timed_out):
        try:
            process.wait(max(deadline.seconds_left, 0.1))
        except subprocess.TimeoutExpired:
            timed_out = True
    return RipgrepOutput(bytes(output), errors.decode(errors="replace"), 0, truncated, timed_out)
