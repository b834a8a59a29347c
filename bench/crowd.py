"""Do commands that print without end keep other calls waiting? `Read`, with 24 shells that run `yes`, and without."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import messages
from bench.pipes import ServerPipe
from bench.ratios import Ratio, compare, percentile

SHELLS, READS = 24, 200
WHAT = f"the 99th percentile of a `Read`, beside {SHELLS} shells that run `yes`, and alone"
FILE = "a.txt"
SHARE = 0.99


def late(rounds: int) -> Ratio:
    """The 99th percentile of a `Read`, in seconds: in company over alone. One server, asked in turns."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        (work / FILE).write_text("one\ntwo\n")
        argv = [sys.executable, "-m", "mcp_server", "serve", "--workspace", str(work), "--profile", "trusted"]
        with ServerPipe([*argv, "--mode", "swe"], Path(folder) / "log") as pipe:
            pipe.open()
            _reads(pipe)
            figures = [(_reads(pipe), _in_company(pipe)) for _ in range(rounds)]
    alone, crowded = zip(*figures, strict=True)
    return compare(crowded, alone)


def _reads(pipe: ServerPipe) -> float:
    return percentile([pipe.ask(_call(pipe, "Read", file_path=FILE))[0] for _ in range(READS)], SHARE)


def _in_company(pipe: ServerPipe) -> float:
    names = [f"shell-{number}" for number in range(SHELLS)]
    pipe.ask_all([_call(pipe, "bash", command="yes", run_in_background=True, bash_id=name) for name in names])
    # By now each has printed what it may print at once, and goes on as it may for ever.
    pipe.ask(_call(pipe, "wait", seconds=2))
    figure = _reads(pipe)
    pipe.ask_all([_call(pipe, "kill_shell", shell_id=name) for name in names])
    return figure


def _call(pipe: ServerPipe, tool: str, **arguments: Any) -> bytes:
    return messages.call(pipe.next_number(), tool, arguments)
