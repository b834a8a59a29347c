"""What does ripgrep print when it runs sandboxed? Bytes, limited in time and size; never through a shell.

ripgrep opens paths that it listed earlier, and someone who swaps a folder for a link in between would lead it outside.
So its sandbox leaves it only the folders we opened ourselves, and its own program.
"""

import os
import resource
import selectors
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_server.guards.sandbox.landlock import CONFINE, build_launcher_arguments, write_plan_file
from mcp_server.guards.search.matches import MOST_BYTES, EngineUnavailable, SearchDeadline

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
"""What the loader needs if ripgrep is not statically linked. None of it is secret."""
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
ANSWERS = (0, 1, 2)
"""Exit codes: found something, found nothing, complained. Any other, or a complaint with 1, means that it did not
run."""
THREADS = 2
MEMORY = 4 << 30
OUTSIDE = "/proc/self/status"
"""Readable for everyone outside the sandbox and for nobody inside."""
CHUNK = 1 << 16
MOST_COMPLAINT = 1 << 14


@dataclass(frozen=True, slots=True)
class RipgrepOutput:
    output: bytes
    complaint: str
    status: int
    cut: bool
    timed_out: bool


@dataclass(frozen=True, slots=True)
class RipgrepAccess:
    """What a run may read: paths below an open folder, and open files lent to it."""

    start: int
    paths: tuple[str, ...]
    lent: tuple[int, ...] = ()
    stdin: int | None = None


def find_ripgrep(search_path: str = os.defpath, configured: Path | None = None) -> Path | None:
    """Find the program: the configured one, one on the search path, or the wheel's. Relative search-path entries are
    ignored, because they would mean whatever lies in the workspace."""
    folders = os.pathsep.join(one for one in search_path.split(os.pathsep) if one.startswith("/"))
    found = str(configured) if configured else shutil.which("rg", path=folders or os.defpath)
    if found is None:
        wheel = Path(sysconfig.get_path("scripts")) / "rg"
        found = str(wheel) if os.access(wheel, os.X_OK) else None
    return Path(found).resolve() if found and os.access(found, os.X_OK) else None


def build_ripgrep_plan(reach: RipgrepAccess, seconds: int) -> dict[str, object]:
    return {
        "start": reach.start,
        "below": [path.removeprefix("./") or "." for path in reach.paths],
        "lent": list(reach.lent),
        "open": {"run": list(SYSTEM)},
        "outside": OUTSIDE,
        "bounds": {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_CPU: seconds,
            resource.RLIMIT_AS: MEMORY,
        },
    }


def run_ripgrep(
    program: Path, arguments: Sequence[str], reach: RipgrepAccess, deadline: SearchDeadline
) -> RipgrepOutput:
    plan = write_plan_file(build_ripgrep_plan(reach, max(int(deadline.seconds_left), 0) * THREADS + 2))
    try:
        process = subprocess.Popen(  # noqa: S603  # no shell; every word is ours or follows `-e` or `--`
            [*build_launcher_arguments(CONFINE, plan), str(program), *arguments],
            stdin=subprocess.DEVNULL if reach.stdin is None else reach.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(plan, reach.start, *reach.lent),
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(plan)
    with process:
        try:
            said = _read_output(process, deadline)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    stopped = said.cut or said.timed_out
    if not stopped and (process.returncode not in ANSWERS or (process.returncode == 1 and said.complaint)):
        raise EngineUnavailable(said.complaint or f"ended with {process.returncode}")
    return RipgrepOutput(said.output, said.complaint, process.returncode, said.cut, said.timed_out)


def _read_output(process: "subprocess.Popen[bytes]", deadline: SearchDeadline) -> RipgrepOutput:
    """Read until it ends, prints too much or takes too long."""
    output, complaint = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, into in ((process.stdout, output), (process.stderr, complaint)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, into)
        while selector.get_map():
            ready = selector.select(max(deadline.seconds_left, 0))
            if not ready and deadline.is_over:
                return RipgrepOutput(bytes(output), complaint.decode(errors="replace"), 0, False, True)
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(complaint) < MOST_COMPLAINT:
                    key.data.extend(chunk)
            if len(output) > MOST_BYTES:
                return RipgrepOutput(bytes(output), complaint.decode(errors="replace"), 0, True, False)
    try:
        process.wait(max(deadline.seconds_left, 0.1))
    except subprocess.TimeoutExpired:
        return RipgrepOutput(bytes(output), complaint.decode(errors="replace"), 0, False, True)
    return RipgrepOutput(bytes(output), complaint.decode(errors="replace"), 0, False, False)
