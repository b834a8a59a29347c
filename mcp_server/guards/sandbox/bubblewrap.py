"""How does bubblewrap sandbox a child? Its command line, and the pipe on which it reports the child's status."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio

from mcp_server.guards.sandbox import limits
from mcp_server.guards.sandbox.access import ChildAccess, is_folder, is_there
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec
from mcp_server.guards.sandbox.limits import NICENESS, apply_resource_limits, build_resource_limits

NAME = "bubblewrap"
ROOM = 512 << 20
"""Bytes for the child's own temporary folders, which are in memory."""
SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "scsi", "acpi", "driver", "mtrr", "pressure", "tty")
"""Below `/proc`: writing there affects the whole machine, and root needs no further right to do it."""
ALWAYS = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *(word for one in SETTINGS for word in ("--ro-bind-try", f"/proc/{one}", f"/proc/{one}")),
)
EMPTY = ("--perms", "0555", "--size", "4096", "--tmpfs")


@dataclass(frozen=True)
class Bubblewrap:
    program: str
    name: str = NAME
    leads_out: bool = True

    def build_launch(self, start: LaunchSpec) -> Launch:
        status, their_status = os.pipe()
        their_block, block = os.pipe()
        lent = [their_status, their_block]
        if filter_ := limits.build_syscall_filter(limits.NETWORK):
            their_filter, filling = os.pipe()
            os.write(filling, filter_)
            os.close(filling)
            lent.append(their_filter)
        lane, reach = start.lane, start.reach
        if lane is not None:
            reach = replace(reach, lent=(*reach.lent, *lane.needed_paths))
        tether = BubblewrapTether(status, block, build_resource_limits(start.limits, start.seconds))
        # The kernel enforces every other limit, but not how many processes root starts.
        return Launch(
            [
                *build_bubblewrap_arguments(self.program, reach, lent),
                *(lane.words if lane else ()),
                *build_command_prefix(start.terminal),
                *start.argv,
            ],
            tether,
            (*lent, lane.theirs) if lane else tuple(lent),
            counted=os.geteuid() == 0,
        )


def build_command_prefix(terminal: bool) -> tuple[str, ...]:
    """Give the child its own controlling terminal: without one it has no job control and cannot be interrupted. Lower
    its priority last: a nice process waits long on a busy machine, and we wait for the sandbox."""
    setsid = shutil.which("setsid", path=os.defpath) if terminal else None
    nice = shutil.which("nice", path=os.defpath)
    return (*((setsid, "--ctty") if setsid else ()), *((nice, "-n", str(NICENESS)) if nice else ()))


def build_bubblewrap_arguments(program: str, reach: ChildAccess, fds: list[int]) -> list[str]:
    """Build everything before the command itself. If several arguments name a path, the last one counts."""
    found = [program, *ALWAYS]
    for option, descriptor in zip(("--json-status-fd", "--block-fd", "--seccomp"), fds, strict=False):
        found += [option, str(descriptor)]
    for one in reach.emptied:
        found += ["--size", str(ROOM), "--tmpfs", one]
    for one in reach.lent:
        found += ["--ro-bind-try", one, one]
    for one in reach.caches:
        found += ["--bind-try", one, one]
    # The workspace is mounted into the empty folder that hides its parent, which is made read-only after that.
    found += [word for one in reach.hidden_above_workspace for word in (*EMPTY, one)]
    found += ["--bind" if reach.writable else "--ro-bind", reach.workspace, reach.workspace]
    if reach.writable:
        # Of nested places mount the outer one first; otherwise it would cover the inner one.
        for one in sorted({*reach.pinned, *reach.held, *reach.guarded}):
            kept = one in reach.guarded and one not in reach.held
            found += ["--ro-bind-try" if kept else "--bind-try", one, one]
    for one in reach.installed:
        found += ["--ro-bind-try", one, one]
    found += list(_build_hiding_arguments(reach.hidden_elsewhere))
    found += [word for one in reach.hidden_above_workspace for word in ("--remount-ro", one)]
    return [*found, "--chdir", reach.folder, "--"]


def _build_hiding_arguments(paths: tuple[str, ...]) -> Iterator[str]:
    for one in paths:
        if is_folder(one):
            yield from (*EMPTY, one, "--remount-ro", one)
        elif is_there(one):
            yield from ("--ro-bind", "/dev/null", one)


@dataclass
class BubblewrapTether:
    """The tether of a bubblewrap child: the first process of its namespace, with which all others end."""

    status: int
    block: int
    bounds: dict[int, int]
    reason: str = ""
    _said: bytes = b""
    _first: int | None = None

    async def release_child(self, process: "subprocess.Popen[bytes]") -> int:
        while b"}" not in self._said:
            await anyio.wait_readable(self.status)
            data = os.read(self.status, 4096)
            if not data:
                return process.pid  # it is about to end, and says why on stderr
            self._said += data
        pid = int(json.loads(self._said[: self._said.index(b"}") + 1])["child-pid"])
        with suppress(OSError):
            self._first = os.pidfd_open(pid)
            apply_resource_limits(pid, self.bounds)
        with suppress(OSError):
            os.write(self.block, b"1")
        return pid

    def kill_all(self) -> None:
        if self._first is None:
            return
        with suppress(OSError):
            signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def find_exit_code(self, ended: int, /) -> int | None:
        """Return the exit code that bubblewrap reports. If it reports none, the command never began or was killed."""
        os.set_blocking(self.status, False)
        with suppress(BlockingIOError):
            while data := os.read(self.status, 4096):
                self._said += data
        found = re.search(rb'"exit-code": (\d+)', self._said)
        return int(found[1]) if found else None

    def close(self) -> None:
        for one in (self.status, self.block, self._first):
            if one is not None:
                os.close(one)
        self._first = None
