"""How does a child come to be? Its pipes or its terminal, and the one place where a program is started.

By the thread of the event loop, always: what asks the kernel to end a child with its parent means the thread that
started it.
"""

import os
import pty
import subprocess
import termios
from collections.abc import Mapping

from mcp_server.guards.processes.child import RunningChild
from mcp_server.guards.processes.spawn import Standby
from mcp_server.guards.processes.streams import Sink, Source
from mcp_server.guards.sandbox.launch import Launch

ROWS, COLUMNS = 40, 160


def spawn(
    launch: Launch, env: Mapping[str, str], folder: str, terminal: bool, apart: bool, standby: Standby
) -> RunningChild:
    """`apart`: errors come on a pipe of their own."""
    ours, theirs = _ends(terminal, apart)
    try:
        if launch.plan is None:
            process = _started(launch, env, folder, theirs)
        else:
            process = standby.start(launch, env, folder, theirs)
    except BaseException:
        for one in ours:
            os.close(one)
        launch.tether.close()
        raise
    finally:
        for one in {*theirs, *launch.lent}:
            os.close(one)
    out = Source(ours[0], standby.pace)
    err = Source(ours[2], standby.pace) if len(ours) > 2 else None
    return RunningChild(process, launch.tether, out, err, Sink(ours[1]))


def _started(launch: Launch, env: Mapping[str, str], folder: str, streams: list[int]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603  # the words are a command's own, and no shell reads them
        launch.argv,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        env=dict(env),
        cwd=folder,
        pass_fds=launch.lent,
        start_new_session=True,
    )


def _ends(terminal: bool, apart: bool) -> tuple[list[int], list[int]]:
    """Ours: to read from, to write to, and to read errors from; theirs as a program counts them."""
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
