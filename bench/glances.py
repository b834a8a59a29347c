"""How much does the line about each call cost? Two servers, one with `glance: off`, are called in turn, and the
processor time of each is read before and after."""

import sys
import time
from contextlib import ExitStack
from itertools import pairwise

from bench import messages
from bench.pipes import ServerFault, ServerPipe
from bench.sides import Side

TURN = 20
"""Calls of one server before it is the other's turn."""
WARM_UP = 500
FILE = "src/components/settings/panel.py"


def measure_rounds(calls: int) -> list[tuple[float, float]]:
    """For each round, the microseconds of processor time per call, with lines and without; `calls` is for each of the
    two servers."""
    with ExitStack() as stack:
        pair = tuple(stack.enter_context(_start_server(word)) for word in ("on", "off"))
        for server in pair:
            _open(server)
            _call(server, WARM_UP)
        readings = [_read_after_turns(pair)]
        for number in range(calls // TURN):
            # Whichever is first in a round changes, because the first finds the caches of the other.
            readings.append(_read_after_turns(pair if number % 2 else pair[::-1], TURN))
    return [
        (_divide(now[pair[0]] - before[pair[0]]), _divide(now[pair[1]] - before[pair[1]]))
        for before, now in pairwise(readings)
    ]


def _read_after_turns(servers: "tuple[ServerPipe, ...]", calls: int = 0) -> "dict[ServerPipe, int]":
    """Read both clocks after both turns, so that what a server still does after its last answer counts as well."""
    for server in servers:
        _call(server, calls)
    return {server: read_processor_time(server.process.pid) for server in servers}


def _divide(nanoseconds: int) -> float:
    return nanoseconds / TURN / 1000


def _start_server(word: str) -> ServerPipe:
    side = Side(f"glance-{word}", False)
    workspace, config = side.folder / "workspace", side.folder / "menugate.yaml"
    (workspace / FILE).parent.mkdir(parents=True, exist_ok=True)
    (workspace / FILE).write_text("one\n")
    config.write_text(f"glance: {word}\n")
    argv = [sys.executable, "-m", "mcp_server", "serve", "--workspace", str(workspace), "--config", str(config)]
    return ServerPipe(argv, side.folder / "stdio.log")


def _open(server: ServerPipe) -> None:
    server.open()
    _ask(server, "menu_enter", mode="swe")


def _call(server: ServerPipe, count: int) -> None:
    for _ in range(count):
        _ask(server, "Read", file_path=FILE)


def _ask(server: ServerPipe, tool: str, **arguments: str) -> None:
    _, reply = server.ask(messages.build_call(server.next_number(), tool, arguments))
    if fault := messages.find_fault(reply):
        raise ServerFault(fault)


def read_processor_time(pid: int) -> int:
    """Read the processor time of another process with all its threads, in nanoseconds."""
    # The kernel's own number for that clock, which `clock_getcpuclockid` would return.
    return time.clock_gettime_ns((~pid << 3) | 2)


def is_available() -> bool:
    """Other systems have no such clock."""
    return sys.platform == "linux"
