"""How is a child sandboxed without bubblewrap? With Landlock, a system call filter and a supervisor process.

Landlock opens folders and cannot close anything below them again. So a folder that contains something hidden or guarded
is opened part by part, and nothing new can be created directly in it. The workspace's top folder is one of these.
"""

import marshal
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.sandbox import limits
from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec
from mcp_server.guards.sandbox.limits import NICENESS, build_resource_limits
from mcp_server.guards.sandbox.proxy_socket import PORT

NAME = "landlock"
CONFINE = Path(__file__).parents[1] / "processes/programs/landlock_exec.py"
"""Run by path, not imported: its imports take milliseconds that a server start cannot spare."""
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"))
MAX_DEPTH = 12
UNSEEN = {"GIT_CONFIG_GLOBAL": "/dev/null"}
"""git stops if the file exists but cannot be read, so point it elsewhere."""


def write_plan_file(plan: Mapping[str, Any]) -> int:
    """Return the plan as an open file, for the one process that reads it."""
    with tempfile.TemporaryFile() as file:
        file.write(marshal.dumps(dict(plan)))
        file.seek(0)
        return os.dup(file.fileno())


def build_launcher_arguments(file: Path, plan: int) -> list[str]:
    return [sys.executable, "-I", "-S", str(file), str(plan)]


class Landlock(Struct, frozen=True):
    name: str = NAME
    leads_out: bool = True
    mounts: bool = False

    def build_launch(self, spec: LaunchSpec) -> Launch:
        private = tempfile.TemporaryDirectory(prefix="menugate-", ignore_cleanup_errors=True)
        try:
            launch = build_supervised_launch(spec.argv, spec.terminal, build_plan(spec, private.name), private)
        except BaseException:
            private.cleanup()
            raise
        if spec.proxy_socket is not None:
            launch = replace(launch, descriptors=(*launch.descriptors, spec.proxy_socket.theirs))
        own = {"TMPDIR": private.name, "XDG_CACHE_HOME": private.name, **UNSEEN}
        return replace(launch, counted=True, variables=own)


def build_plan(spec: LaunchSpec, private: str) -> dict[str, Any]:
    bounds = build_resource_limits(spec.limits, spec.seconds)
    # The kernel counts by user, not by child, so add what already runs.
    bounds[resource.RLIMIT_NPROC] += count_running_threads()
    proxy_plan = {}
    if spec.proxy_socket is not None:
        network_filter = limits.build_syscall_filter(limits.NETWORK) or b""
        proxy_plan = {"lane": (spec.proxy_socket.theirs, PORT), "lane_filter": network_filter}
    return {
        **proxy_plan,
        "open": build_open_paths(spec.access, private),
        "outside": next(one for one in spec.access.emptied if Path(one).is_dir()),
        "filter": limits.build_syscall_filter(()) or b"",
        "folder": spec.access.folder,
        "bounds": bounds,
    }


def build_supervised_launch(
    argv: tuple[str, ...],
    terminal: bool,
    restrictions: Mapping[str, Any] | None = None,
    private: "tempfile.TemporaryDirectory[str] | None" = None,
) -> Launch:
    """Launch with a supervisor that ends all the child's processes; sandboxed only if `restrictions` say so."""
    child_control, control = os.pipe()
    status, child_status = os.pipe()
    plan = {**(restrictions or {}), "nice": NICENESS, "keep": (child_status, child_control, os.getpid(), terminal)}
    return Launch(list(argv), LandlockTether(status, control, private), (child_control, child_status), plan=plan)


def count_running_threads() -> int:
    """How many threads run on this machine."""
    return int(Path("/proc/loadavg").read_text().split()[3].split("/")[1])


def build_open_paths(access: ChildAccess, private: str) -> dict[str, list[str]]:
    """List which paths are open for which access, by the names that `landlock_exec` knows."""
    closed = {*access.emptied, *access.hidden, *access.hidden_around, "/dev", access.workspace}
    # The `.gitignore` that keeps our own folder out of the user's repository is no secret, and git reads it.
    ours = [
        f"{one}/.gitignore"
        for one in (*access.hidden, *access.hidden_around)
        if os.access(f"{one}/.gitignore", os.R_OK)
    ]
    visible = find_open_parts(access.workspace, set(access.hidden))
    run = [*ours, *find_open_parts("/", closed), *access.lent, *visible, *access.shown, *access.own]
    installed = set(access.installed)
    write = [private, *access.own]
    for folder in (*access.caches, *access.entrusted):
        write += find_open_parts(folder, installed)
    for folder in access.opened:
        write += find_open_parts(folder, {*access.hidden, *access.guarded, *access.held, *installed})
    if access.writable:
        write += find_open_parts(access.workspace, {*access.hidden, *access.guarded, *access.held, *installed})
    return {"run": run, "list": [access.workspace], "use": list(DEVICES), "write": write}


def find_open_parts(folder: str, closed: set[str], depth: int = 0) -> Iterator[str]:
    """Yield the folder, or as much of it as is not closed."""
    if folder in closed and depth:
        return
    inside = folder.rstrip("/") + "/"
    if not any(one.startswith(inside) for one in closed):
        yield folder
    elif depth < MAX_DEPTH:
        with suppress(OSError):
            for entry in sorted(Path(folder).iterdir()):
                if not entry.is_symlink():
                    yield from find_open_parts(str(entry), closed, depth + 1)


@dataclass
class LandlockTether:
    """The tether of a child with a supervisor, which ends everything when its pipe closes."""

    status: int
    control: int
    private: "tempfile.TemporaryDirectory[str] | None"
    """The child's own temporary folder, removed with the child."""
    reason: str = ""

    async def release_child(self, process: "subprocess.Popen[bytes]") -> int:
        return process.pid

    def kill_all(self) -> None:
        if self.control >= 0:
            os.close(self.control)
            self.control = -1

    def find_exit_code(self) -> int | None:
        os.set_blocking(self.status, False)
        report = b""
        with suppress(BlockingIOError):
            while data := os.read(self.status, 4096):
                report += data
        # A process that could not become the command ends as well, with an exit code that is not the command's.
        if match := re.search(rb"^unable (.*)", report):
            self.reason = match[1].decode(errors="replace")
            return None
        match = re.search(rb"^exit (\d+)", report, re.MULTILINE)
        return int(match[1]) if match else None

    def close(self) -> None:
        self.kill_all()
        if self.status >= 0:
            os.close(self.status)
            self.status = -1
        if self.private is not None:
            self.private.cleanup()
