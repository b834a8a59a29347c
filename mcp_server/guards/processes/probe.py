"""Does a sandbox work on this machine? A child tries to break out, because a kernel may only seem to support it."""

import os
import socket
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
from msgspec import Struct

from mcp_server.guards.processes.spawn import Standby, spawn
from mcp_server.guards.sandbox.access import ChildAccess
from mcp_server.guards.sandbox.launch import Launch, LaunchSpec, Sandbox
from mcp_server.model.processes import ProcessLimits

TRIAL_SECONDS = 10.0
FINISHED = "finished"
BREAKOUT_SCRIPT = f"""
import os, socket, sys
outside, hidden, guarded, inside, tcp, udp, unix, pid = sys.argv[1:]
def attempt(what, act):
    try:
        act()
        print(what)
    except OSError:
        pass
attempt("writing outside", lambda: open(outside + "/new", "w"))
attempt("writing protected files", lambda: open(guarded, "a"))
attempt("reading hidden files", lambda: open(hidden).read(1))
attempt("network connections", lambda: socket.create_connection(("127.0.0.1", int(tcp)), 1))
attempt("sockets of other programs", lambda: socket.socket(socket.AF_UNIX).connect(unix))
attempt("signals to other programs", lambda: os.kill(int(pid), 0))
if sys.platform == "linux":
    import ctypes
    def new_users():  # 0x10000000 is CLONE_NEWUSER
        if ctypes.CDLL(None).unshare(0x10000000) != 0:
            raise OSError
    attempt("creating setuid programs", lambda: os.chmod(inside, 0o4755))
    attempt("writing kernel settings", lambda: open("/proc/sys/kernel/core_pattern", "a"))
    attempt("new user namespaces", new_users)
try:
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(udp)))
except OSError:
    pass
with open(inside, "a") as file:
    file.write("x")
print({FINISHED!r})
"""


class SandboxTrial(Struct, frozen=True):
    """A workspace, a folder beside it, and sockets that listen outside the sandbox."""

    folder: Path
    tcp: socket.socket
    udp: socket.socket
    unix: Path

    def build_access(self) -> ChildAccess:
        workspace = str(self.folder / "work")
        return ChildAccess(
            workspace=workspace,
            folder=workspace,
            writable=True,
            network=False,
            emptied=("/tmp", "/var/tmp", "/run"),  # noqa: S108  # their contents must be out of sight
            lent=tuple({sys.base_prefix, sys.prefix, str(Path(sys.executable).resolve().parent)}),
            caches=(),
            guarded=(f"{workspace}/guarded",),
            held=(),
            pinned=(),
            entrusted=(),
            hidden=(f"{workspace}/hidden",),
        )

    def build_arguments(self) -> tuple[str, ...]:
        workspace = self.folder / "work"
        ports = [str(sock.getsockname()[1]) for sock in (self.tcp, self.udp)]
        paths = [str(self.folder / "beside"), *(str(workspace / name) for name in ("hidden", "guarded", "inside"))]
        program = str(Path(sys.executable).resolve())
        return (program, "-I", "-S", "-c", BREAKOUT_SCRIPT, *paths, *ports, str(self.unix), str(os.getpid()))


@contextmanager
def set_up_trial() -> Generator[SandboxTrial, None, None]:
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="menugate-")))
        for folder in ("work", "beside"):
            (base / folder).mkdir()
        for name in ("hidden", "guarded", "inside"):
            (base / "work" / name).write_text("x")
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(base / "beside" / "s"))
        unix.listen()
        yield SandboxTrial(base, tcp, udp, base / "beside" / "s")


async def find_fault(sandbox: Sandbox) -> str:
    """Describe what the sandbox lets through; empty if nothing."""
    try:
        with set_up_trial() as trial:
            spec = LaunchSpec(trial.build_arguments(), trial.build_access(), ProcessLimits(), TRIAL_SECONDS)
            output = await _run_launch(sandbox.build_launch(spec))
            escapes = [line for line in output.splitlines() if line != FINISHED]
            if FINISHED not in output:
                return (output.strip().splitlines() or ["it does not start"])[-1][:200]
            try:
                trial.udp.recv(1)
                escapes.append("network datagrams")
            except BlockingIOError:
                pass
            return f"it lets through {', '.join(escapes)}" if escapes else ""
    except OSError as error:
        return str(error)


async def _run_launch(launch: Launch) -> str:
    standby = Standby.make_single_use()
    child = spawn(launch, {"LC_ALL": "C.UTF-8", **launch.variables}, "/", terminal=False, apart=False, standby=standby)
    output = bytearray()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.watch_until_end)
        child.pid = await launch.tether.release_child(child.process)
        with anyio.move_on_after(TRIAL_SECONDS):
            async for chunk in child.output():
                output += chunk
        await child.kill()
    child.close()
    return output.decode(errors="replace") or launch.tether.reason
