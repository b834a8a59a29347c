"""How is a child process started, and which process supervises it?"""

import asyncio
import os
import pty
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.streams import Pace, Sink, Source
from mcp_server.guards.sandbox.landlock import write_plan_file
from mcp_server.guards.sandbox.launch import Launch

# Which process supervises the next command? A Python that is already running and waits, because starting one takes
# longest.
#
# It serves one command; the next is started a moment later, while no call waits for it. An unneeded one ends by itself
# when its socket closes, which also happens if the server dies.

SUPERVISOR = Path(__file__).with_name("programs") / "subreaper.py"
"""Run by path, not imported: its imports take milliseconds that a server start cannot spare."""
PREPARE_AFTER = 0.05
"""Seconds to wait before preparing the next: the command just started comes first."""
ENVIRONMENT = {"LC_ALL": "C.UTF-8"}


@dataclass
class StandbyProcess:
    """A supervisor that waits for its command."""

    process: "subprocess.Popen[bytes]"
    channel: socket.socket

    @classmethod
    def start(cls) -> "StandbyProcess":
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(  # noqa: S603  # every word is ours
                [sys.executable, "-I", "-S", str(SUPERVISOR), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process, ours)

    def hand_over_files(self, files: list[int]) -> bool:
        """Return whether it received the files. If so, it owns them, and its socket is closed to anything else."""
        try:
            socket.send_fds(self.channel, [b"."], files)
        except OSError:
            self.kill()
            return False
        self.channel.close()
        return True

    def kill(self) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()


@dataclass
class Standby:
    """Holds at most one waiting supervisor: none before the first is needed, and none after `close`."""

    ready: StandbyProcess | None = None
    pace: Pace = field(default_factory=Pace)
    """Shared by the output of everything started here."""
    _timer: asyncio.TimerHandle | None = None
    _closed: bool = False

    @classmethod
    def make_single_use(cls) -> "Standby":
        """For one command only; no further supervisor is prepared."""
        return cls(_closed=True)

    def start(
        self, launch: Launch, env: Mapping[str, str], folder: str, streams: list[int]
    ) -> "subprocess.Popen[bytes]":
        """Start the launch with these streams as input, output and errors."""
        words = {"words": launch.argv, "env": dict(env), "files": list(launch.descriptors)}
        plan = write_plan_file({"folder": folder, **(launch.plan or {}), **words})
        try:
            return self._take_process([*streams, plan, *launch.descriptors])
        finally:
            os.close(plan)
            self._schedule_next()

    def _take_process(self, files: list[int]) -> "subprocess.Popen[bytes]":
        waiting, self.ready = self.ready, None
        if waiting is not None and waiting.hand_over_files(files):
            return waiting.process
        fresh = StandbyProcess.start()
        if not fresh.hand_over_files(files):
            raise ProcessLookupError("the supervisor of the command ended at once")
        return fresh.process

    def _schedule_next(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(PREPARE_AFTER, self._prepare_next)

    def _prepare_next(self) -> None:
        self._timer = None
        if self.ready is None:
            with suppress(OSError):
                self.ready = StandbyProcess.start()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self.ready is not None:
            self.ready.kill()
        self._timer = self.ready = None


# How is a child started? Its pipes or its terminal, and the only place that starts a program.
#
# Always from the event loop's thread: the kernel's request to end a child with its parent (PDEATHSIG) applies to the
# thread that started it.

ROWS, COLUMNS = 40, 160


def spawn(
    launch: Launch, env: Mapping[str, str], folder: str, terminal: bool, apart: bool, standby: Standby
) -> RunningChild:
    """`apart`: errors get a pipe of their own."""
    ours, theirs = _open_streams(terminal, apart)
    try:
        if launch.plan is None:
            process = subprocess.Popen(  # noqa: S603  # the command's own words; no shell reads them
                launch.argv,
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2],
                env=dict(env),
                cwd=folder,
                pass_fds=launch.descriptors,
                start_new_session=True,
            )
        else:
            process = standby.start(launch, env, folder, theirs)
    except BaseException:
        for one in ours:
            os.close(one)
        launch.tether.close()
        raise
    finally:
        for one in {*theirs, *launch.descriptors}:
            os.close(one)
    out = Source(ours[0], standby.pace)
    err = Source(ours[2], standby.pace) if len(ours) > 2 else None
    return RunningChild(process, launch.tether, out, err, Sink(ours[1]))


def _open_streams(terminal: bool, apart: bool) -> tuple[list[int], list[int]]:
    """Return our ends (to read, to write, to read errors) and theirs in the order of stdin, stdout, stderr."""
    if terminal:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
        return [ours, os.dup(ours)], [theirs, theirs, theirs]
    stdin, to_them = os.pipe()
    from_them, stdout = os.pipe()
    if not apart:
        return [from_them, to_them], [stdin, stdout, stdout]
    errors, stderr = os.pipe()
    return [from_them, to_them, errors], [stdin, stdout, stderr]
