"""Does a sandbox hold on this machine? A child tries to break out, because a kernel may only seem to support it."""

import os
import socket
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from mcp_server.guards.processes.spawn import Standby, spawn
from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec, Sandbox
from mcp_server.model.processes import ProcessLimits

SECONDS = 10.0
HELD = "all of it holds"
WORST = f"""
import os, socket, sys
outside, hidden, guarded, inside, tcp, udp, unix, pid = sys.argv[1:]
def attempt(what, act):
    try:
        act()
        print(what)
    except OSError:
        pass
attempt("writing outside", lambda: open(outside + "/new", "w"))
attempt("writing what is guarded", lambda: open(guarded, "a"))
attempt("reading what is hidden", lambda: open(hidden).read(1))
attempt("a connection of the network", lambda: socket.create_connection(("127.0.0.1", int(tcp)), 1))
attempt("a socket of another program", lambda: socket.socket(socket.AF_UNIX).connect(unix))
attempt("signals to other programs", lambda: os.kill(int(pid), 0))
if sys.platform == "linux":
    import ctypes
    def new_users():
        if ctypes.CDLL(None).unshare(0x10000000) != 0:
            raise OSError
    attempt("files that run as their owner", lambda: os.chmod(inside, 0o4755))
    attempt("writing the kernel's settings", lambda: open("/proc/sys/kernel/core_pattern", "a"))
    attempt("users of its own", new_users)
try:
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(udp)))
except OSError:
    pass
with open(inside, "a") as file:
    file.write("x")
print({HELD!r})
"""


@dataclass(frozen=True)
class SandboxTrial:
    """A workspace, a folder beside it, and sockets that listen outside."""

    room: Path
    tcp: socket.socket
    udp: socket.socket
    unix: Path

    def build_access(self) -> ChildAccess:
        work = str(self.room / "work")
        return ChildAccess(
            workspace=work,
            folder=work,
            writable=True,
            network=False,
            emptied=("/tmp", "/var/tmp", "/run"),  # noqa: S108  # their contents must be out of sight
            lent=tuple({sys.base_prefix, sys.prefix, str(Path(sys.executable).resolve().parent)}),
            caches=(),
            guarded=(f"{work}/guarded",),
            held=(),
            pinned=(),
            entrusted=(),
            hidden=(f"{work}/hidden",),
        )

    def build_arguments(self) -> tuple[str, ...]:
        work = self.room / "work"
        ports = [str(one.getsockname()[1]) for one in (self.tcp, self.udp)]
        places = [str(one) for one in (self.room / "beside", work / "hidden", work / "guarded", work / "inside")]
        program = str(Path(sys.executable).resolve())
        return (program, "-I", "-S", "-c", WORST, *places, *ports, str(self.unix), str(os.getpid()))


@contextmanager
def set_up_trial() -> Generator[SandboxTrial, None, None]:
    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="menugate-")))
        for folder in ("work", "beside"):
            (room / folder).mkdir()
        for name in ("hidden", "guarded", "inside"):
            (room / "work" / name).write_text("x")
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(room / "beside" / "s"))
        unix.listen()
        yield SandboxTrial(room, tcp, udp, room / "beside" / "s")


async def find_fault(sandbox: Sandbox) -> str:
    """Say what does not hold; empty if everything does."""
    try:
        with set_up_trial() as made:
            said = await _run_launch(
                sandbox.build_launch(LaunchSpec(made.build_arguments(), made.build_access(), ProcessLimits(), SECONDS))
            )
            got = [line for line in said.splitlines() if line != HELD]
            if HELD not in said:
                return (said.strip().splitlines() or ["it does not start"])[-1][:200]
            try:
                made.udp.recv(1)
                got.append("a datagram to the network")
            except BlockingIOError:
                pass
            return f"it lets through {', '.join(got)}" if got else ""
    except OSError as error:
        return str(error)


async def _run_launch(launch: Launch) -> str:
    alone = Standby.make_single_use()
    child = spawn(launch, {"LC_ALL": "C.UTF-8", **launch.variables}, "/", terminal=False, apart=False, standby=alone)
    said = bytearray()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.watch_until_end)
        child.pid = await launch.tether.release_child(child.process)
        with anyio.move_on_after(SECONDS):
            async for piece in child.output():
                said += piece
        await child.kill()
    child.close()
    return said.decode(errors="replace") or launch.tether.reason
