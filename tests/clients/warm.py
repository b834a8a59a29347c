"""Start our own programs from an interpreter that has already loaded what they load.

A server takes most of a second to load what it is made of, and the suite starts more than a thousand of them. So one
process for each process of tests loads it once, and forks. Arguments, environment, folder, pipes, signals and exit code
are those of a fresh start; what is loaded is not, so a test about loading starts its own. `make attack` starts all
afresh.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from mcp_server import installation
from tests.sizes import FULL

ROOT = Path(__file__).parents[2]
PRELOADED = (
    *("mcp_server.cli.serve", "mcp_server.compose", "mcp_server.health", "mcp_server.wire.http"),
    *("mcp_server.state.open", "mcp_server.state.foreign", "yaml.cyaml", "anyio._backends._asyncio"),
)
FIXED_AT_START = ("PYTHON", "LC_", "LANG", "TZ")
"""Variables that an interpreter reads when it starts: who wants others gets a fresh one."""
MOST = 1 << 20
DESCRIPTORS = 4
"""Its input, output and errors, and where its number and then how it ended are told."""
WORD = 4
HANGING = 120.0
"""Seconds after which a command does not come back any more."""

Text = TypeVar("Text", str, bytes)


class WarmProcess(subprocess.Popen[Text], Generic[Text]):
    """A child that is forked elsewhere; three seams of `Popen` that have been the same since Python 3.8."""

    def __init__(self, words: Sequence[str], nursery: "Nursery", **about: Any) -> None:
        self._nursery = nursery
        super().__init__(words, **about)

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        cwd, env = rest[4:6]
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = rest[9:15]
        apart = bool(rest[20])
        self._told, telling = os.pipe()
        try:
            wish = {
                "module": args[2],
                "words": list(args[3:]),
                "env": env,
                "cwd": str(cwd or Path.cwd()),
                "apart": apart,
            }
            # What was not given is inherited.
            own = [number if given < 0 else given for number, given in enumerate((p2cread, c2pwrite, errwrite))]
            socket.send_fds(self._nursery.door, [json.dumps(wish).encode()], [*own, telling])
        finally:
            os.close(telling)
            cast(Any, self)._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        self.pid = int.from_bytes(os.read(self._told, WORD), "big")
        assert self.pid, "nothing was started"
        self._child_created = True
        os.set_blocking(self._told, False)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        os.set_blocking(self._told, not wait_flags & os.WNOHANG)
        try:
            status = os.read(self._told, WORD)
        except BlockingIOError:
            return 0, 0
        os.close(self._told)
        return self.pid, int.from_bytes(status, "big")

    def _internal_poll(self, *_: Any, **_about: Any) -> int | None:
        seams = cast(Any, self)
        if self.returncode is None and seams._waitpid_lock.acquire(False):
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    seams._handle_exitstatus(status)
            finally:
                seams._waitpid_lock.release()
        return self.returncode


@dataclass
class Nursery:
    """The process that forks, and what is started to start it in another place."""

    before: Sequence[str] = ()

    @cached_property
    def door(self) -> socket.socket:
        """The way to it; it ends when nobody holds this end any more."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, warnings.catch_warnings():
            # Nobody waits for it: it ends with this process.
            warnings.simplefilter("ignore", ResourceWarning)
            subprocess.Popen(
                [*self.before, sys.executable, "-m", "tests.clients.warm", str(theirs.fileno())],
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", **fixed()},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        return ours

    def close(self) -> None:
        if "door" in vars(self):
            self.door.close()


HERE = Nursery()


def start(
    words: Sequence[str], env: Mapping[str, str], nursery: Nursery = HERE, **about: Any
) -> "subprocess.Popen[Any]":
    """`python -m module …` from the nursery, where that is the same thing; anything else as it always starts."""
    ours = list(words[:2]) == [sys.executable, "-m"]
    plain = {key: value for key, value in env.items() if key.startswith(FIXED_AT_START)} == fixed()
    if ours and plain and not FULL and sys.platform == "linux":
        return WarmProcess[Any](list(words), nursery, env=dict(env), **about)
    return subprocess.Popen([*nursery.before, *words], env=dict(env), **about)


def run(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    input: str | bytes | None = None,
    check: bool = False,
    timeout: float = HANGING,
    **about: Any,
) -> "subprocess.CompletedProcess[Any]":
    """`subprocess.run` with the output captured, for one of our own commands."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL if input is None else subprocess.PIPE}
    pipes |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(words, env, **pipes | about) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(list(words), cast(int, process.returncode), out, err)
    if check:
        done.check_returncode()
    return done


def fixed() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Program:
    """What one of the forked becomes."""

    module: str
    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    apart: bool
    """Whether it has a session of its own."""

    def run(self) -> None:
        if self.apart:
            os.setsid()
        os.environ.clear()
        os.environ.update(self.env)
        os.chdir(self.cwd)
        sys.path[0] = self.cwd
        sys.argv[:] = [self.module, *self.words]
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


def wait_for_wish(door: socket.socket) -> Program | None:
    """Comes back in each process that is wanted; in this one only when nobody wants any more."""
    while True:
        wish, descriptors, _, _ = socket.recv_fds(door, MOST, DESCRIPTORS)
        if not wish:
            return None
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            watch(door, descriptors)
            return Program(**json.loads(wish))
        for descriptor in descriptors:
            os.close(descriptor)


def watch(door: socket.socket, descriptors: Sequence[int]) -> None:
    """Fork once more and tell how that one ends; comes back in that one alone."""
    door.close()
    *standard, telling = descriptors
    pid = os.fork()
    if pid:
        for descriptor in standard:
            os.close(descriptor)
        os.write(telling, pid.to_bytes(WORD, "big"))
        _, status = os.waitpid(pid, 0)
        os.write(telling, status.to_bytes(WORD, "big"))
        os._exit(0)
    os.close(telling)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main(door: socket.socket) -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    # Half a second that each would spend on looking through everything that Python has installed.
    installation.find_linked_files()
    gc.freeze()
    # An interrupt at the terminal is for the tests; and whoever ends here is waited for by nobody.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with door:
        program = wait_for_wish(door)
    if program:
        program.run()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
