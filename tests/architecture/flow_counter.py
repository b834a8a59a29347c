"""Which of our files and functions does one request go through? Run in the place of `menugate`, it counts them.

    python -m tests.architecture.flow_counter FIFO serve ...

`BEGIN` starts a count and `END` writes it to the FIFO, one `file function` a line. What a background tick enters is
left out, and so is what has no name: a lambda, a comprehension, a module being imported.
"""

import atexit
import dis
import os
import select
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.clients.pipe import Pipe, pipe
from tests.clients.served import PATIENCE

ROOT = Path(__file__).parents[2]
OURS = tuple(str(ROOT / top) + "/" for top in ("mcp_server", "tools"))
COMMAND = [sys.executable, "-m", "tests.architecture.flow_counter"]
DONE = "\n\0"
"""What was counted is written whole."""
RESUME = dis.opmap["RESUME"]
BEGIN, END = signal.SIGRTMIN + 1, signal.SIGRTMIN + 2
TICKS = frozenset(
    (
        "ConfigurationReload.follow",
        "App._follow_changes",
        "ObjectRegistry.sweep_until_stopped",
        "RunningCallsFile._write_now",
        "Writer._tick",
    )
)


def is_ours(code: CodeType) -> bool:
    """A function of ours with a name; the body of a class is none."""
    return code.co_filename.startswith(OURS) and code.co_name[0] != "<" and bool(code.co_flags & CO_OPTIMIZED)


def is_resumed(frame: FrameType) -> bool:
    """A coroutine that goes on after a wait is not entered again; what waits for a request is above every flow."""
    instruction, argument = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    return instruction == RESUME and argument != 0


class Counter:
    def __init__(self) -> None:
        self.entered: set[CodeType] = set()

    def note_entry(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self.entered or not is_ours(code) or is_resumed(frame):
            return
        above: FrameType | None = frame
        while above is not None:
            if above.f_code.co_qualname in TICKS:
                return
            above = above.f_back
        self.entered.add(code)

    def write(self, fifo: Path, beside: Sequence[str] = ()) -> None:
        # Another thread may enter something meanwhile; a list is made in one go.
        entered = list(self.entered)
        lines = {f"{Path(code.co_filename).relative_to(ROOT)} {code.co_qualname}" for code in entered}
        fifo.write_text("\n".join([*sorted(lines), *beside]) + DONE)


def run(fifo: Path, words: list[str]) -> int:
    from mcp_server.cli.main import main

    counter = Counter()

    def begin(*_: object) -> None:
        counter.entered.clear()
        fifo.write_text(DONE)

    def end(*_: object) -> None:
        counter.write(fifo)

    signal.signal(BEGIN, begin)
    signal.signal(END, end)
    if words[0] != "serve":
        atexit.register(write_whole_run, counter, fifo)
    threading.setprofile(counter.note_entry)
    sys.setprofile(counter.note_entry)
    return main(words)


def write_whole_run(counter: Counter, fifo: Path) -> None:
    sys.setprofile(None)
    files = (getattr(one, "__file__", None) or "" for one in list(sys.modules.values()))
    counter.write(fifo, sorted(f"loaded {one}" for one in files if one.startswith(OURS)))


@dataclass(frozen=True)
class Flow:
    """What a request went through, in no order."""

    entered: frozenset[str]
    loaded: int = 0

    @property
    def functions(self) -> int:
        return len(self.entered)

    @property
    def files(self) -> int:
        return len({one.split()[0] for one in self.entered})

    def describe(self) -> str:
        return "\n".join(sorted(self.entered))


class Counts:
    """The FIFO's other end. It is open for writing too, so that a counter that dies is no end of what is read."""

    def __init__(self, fifo: Path) -> None:
        os.mkfifo(fifo)
        self.fifo = fifo
        self._end = os.open(fifo, os.O_RDWR)

    def read(self) -> Flow:
        text = b""
        while not text.endswith(DONE.encode()):
            ready, _, _ = select.select([self._end], [], [], PATIENCE)
            assert ready, "nothing was counted"
            text += os.read(self._end, 65_536)
        lines = frozenset(text.decode().splitlines()) - {"", DONE.strip("\n")}
        entered = frozenset(one for one in lines if not one.startswith("loaded "))
        return Flow(entered, len(lines - entered))


@dataclass
class Counted:
    client: Pipe
    counts: Counts

    @contextmanager
    def count(self, found: dict[str, Flow], name: str) -> Generator[None, None, None]:
        """What is asked for in between."""
        self.client.process.send_signal(BEGIN)
        self.counts.read()
        yield
        self.client.process.send_signal(END)
        found[name] = self.counts.read()


@contextmanager
def counted(workspace: Path, home: Path, counts: Counts, *flags: str) -> Generator[Counted, None, None]:
    with pipe(workspace, home, *flags, run=[*COMMAND, str(counts.fifo), "serve"]) as client:
        yield Counted(client, counts)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
