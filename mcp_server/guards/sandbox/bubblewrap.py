"""How does bubblewrap sandbox a child? Its command line, and the pipe on which it reports the child's status."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import anyio
from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.sandbox import limits
from mcp_server.guards.sandbox.access import ChildAccess, is_folder, is_there
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec
from mcp_server.guards.sandbox.limits import NICENESS, apply_resource_limits, build_resource_limits
from mcp_server.guards.sandbox.pinned_files import PinnedFile

NAME = "bubblewrap"
TMPFS_BYTES = 512 << 20
"""The child's temporary folders are in memory, each limited to this size."""
KERNEL_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "scsi", "acpi", "driver", "mtrr", "pressure", "tty")
"""Names below `/proc` through which root can change the whole machine without any further capability."""
BASE_ARGUMENTS = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *(word for name in KERNEL_SETTINGS for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
)
EMPTY_FOLDER = ("--perms", "0555", "--size", "4096", "--tmpfs")


class Bubblewrap(Struct, frozen=True):
    program: str
    name: str = NAME
    leads_out: bool = True
    mounts: bool = True

    def build_launch(self, spec: LaunchSpec) -> Launch:
        status, child_status = os.pipe()
        child_block, block = os.pipe()
        descriptors = [child_status, child_block]
        if filter_ := limits.build_syscall_filter(limits.NETWORK):
            child_filter, filter_input = os.pipe()
            os.write(filter_input, filter_)
            os.close(filter_input)
            descriptors.append(child_filter)
        proxy, access = spec.proxy_socket, spec.access
        if proxy is not None:
            access = replace(access, lent=(*access.lent, *proxy.needed_paths))
        tether = BubblewrapTether(status, block, build_resource_limits(spec.limits, spec.seconds))
        # The kernel enforces every limit but one: how many processes root may start. So we count those.
        return Launch(
            [
                *build_bubblewrap_arguments(self.program, access, descriptors, spec.pinned),
                *(proxy.prefix if proxy else ()),
                *build_command_prefix(spec.terminal),
                *spec.argv,
            ],
            tether,
            (*descriptors, *(one.descriptor for one in spec.pinned), *((proxy.theirs,) if proxy else ())),
            counted=os.geteuid() == 0,
        )


@cache
def build_command_prefix(terminal: bool) -> tuple[str, ...]:
    """Build the commands that start the child's command.

    Without a controlling terminal of its own it has no job control and cannot be interrupted. `nice` comes after the
    sandbox is set up, because we wait for that, and a nice process waits long on a busy machine.
    """
    setsid = shutil.which("setsid", path=os.defpath) if terminal else None
    nice = shutil.which("nice", path=os.defpath)
    return (*((setsid, "--ctty") if setsid else ()), *((nice, "-n", str(NICENESS)) if nice else ()))


def build_bubblewrap_arguments(
    program: str, access: ChildAccess, descriptors: list[int], pinned: Sequence[PinnedFile] = ()
) -> list[str]:
    """Build everything before the command itself. Order matters: the last argument that names a path wins."""
    arguments = [program, *BASE_ARGUMENTS]
    for option, descriptor in zip(("--json-status-fd", "--block-fd", "--seccomp"), descriptors, strict=False):
        arguments += [option, str(descriptor)]
    for path in access.emptied:
        arguments += ["--size", str(TMPFS_BYTES), "--tmpfs", path]
    for path in access.lent:
        arguments += ["--ro-bind-try", path, path]
    for path in access.caches:
        arguments += ["--bind-try", path, path]
    # The workspace is mounted into the empty folder that hides its parent, so that folder turns read-only only later.
    arguments += [word for path in access.hidden_around for word in (*EMPTY_FOLDER, path)]
    arguments += ["--bind" if access.writable else "--ro-bind", access.workspace, access.workspace]
    arguments += [word for path in sorted(access.opened) for word in ("--bind", path, path)]
    # Sorted, so that an outer folder is mounted first; otherwise it would cover the inner one.
    for path in sorted(filter(access.is_opened, {*access.pinned, *access.held, *access.guarded})):
        read_only = path in access.guarded and path not in access.held
        arguments += ["--ro-bind-try" if read_only else "--bind-try", path, path]
    for path in access.installed:
        arguments += ["--ro-bind-try", path, path]
    for file in pinned:
        arguments += ["--perms", f"{file.mode:04o}", "--ro-bind-data", str(file.descriptor), file.path]
    arguments += list(_build_hiding_arguments(access))
    arguments += [word for path in access.hidden_around for word in ("--remount-ro", path)]
    return [*arguments, "--chdir", access.folder, "--"]


def _build_hiding_arguments(access: ChildAccess) -> Iterator[str]:
    for path in access.hidden:
        if is_folder(path):
            yield from (*EMPTY_FOLDER, path)
            yield from _build_showing_arguments(access, path)
            yield from ("--remount-ro", path)
        elif is_there(path):
            yield from ("--ro-bind", "/dev/null", path)
    yield from _build_showing_arguments(access, None)


def _build_showing_arguments(access: ChildAccess, hidden: str | None) -> Iterator[str]:
    """Mount what a child sees of a hidden folder, before that turns read-only; or what it sees elsewhere."""
    for option, paths in (("--ro-bind", access.shown), ("--bind", access.own)):
        for path in paths:
            around = next((one for one in access.hidden if path.startswith(f"{one}/")), None)
            if around == hidden:
                yield from (option, path, path)


@dataclass
class BubblewrapTether:
    """Holds a bubblewrap child by the first process of its namespace: when that ends, all the others do."""

    status: int
    block: int
    resource_limits: dict[int, int]
    reason: str = ""
    _status_text: bytes = b""
    _init_pidfd: int | None = None

    async def release_child(self, process: "subprocess.Popen[bytes]") -> int:
        while b"}" not in self._status_text:
            await anyio.wait_readable(self.status)
            data = os.read(self.status, 4096)
            if not data:
                return process.pid  # it is about to end; stderr says why
            self._status_text += data
        pid = int(json.loads(self._status_text[: self._status_text.index(b"}") + 1])["child-pid"])
        with suppress(OSError):
            self._init_pidfd = os.pidfd_open(pid)
            apply_resource_limits(pid, self.resource_limits)
        with suppress(OSError):
            os.write(self.block, b"1")
        return pid

    def kill_all(self) -> None:
        if self._init_pidfd is None:
            return
        with suppress(OSError):
            signal.pidfd_send_signal(self._init_pidfd, signal.SIGKILL)

    def find_exit_code(self) -> int | None:
        """Return the exit code that bubblewrap reports, as the protocol says."""
        os.set_blocking(self.status, False)
        with suppress(BlockingIOError):
            while data := os.read(self.status, 4096):
                self._status_text += data
        match = re.search(rb'"exit-code": (\d+)', self._status_text)
        return int(match[1]) if match else None

    def close(self) -> None:
        for descriptor in (self.status, self.block, self._init_pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self._init_pidfd = None
