"""Do commands that print endlessly delay other calls? `Read` is measured beside 24 shells that run `yes`, and alone."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import messages
from bench.pipes import ServerPipe
from bench.ratios import Ratio, compare, percentile

SHELLS, READS = 24, 200
WHAT = f"the 99th percentile of a `Read`, next to {SHELLS} shells that run `yes`, and alone"
FILE = "a.txt"
SHARE = 0.99


def measure_reads_in_company(rounds: int) -> Ratio:
    """Measure the 99th percentile of a `Read`, in seconds, beside the shells and alone, on one server."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        (work / FILE).write_text("one\ntwo\n")
        argv = [sys.executable, "-m", "mcp_server", "serve", "--workspace", str(work), "--profile", "trusted"]
        with ServerPipe([*argv, "--mode", "swe"], Path(folder) / "log") as pipe:
            pipe.open()
            _measure_reads(pipe)
            figures = [(_measure_reads(pipe), _measure_in_company(pipe)) for _ in range(rounds)]
    alone, crowded = zip(*figures, strict=True)
    return compare(crowded, alone)


def _measure_reads(pipe: ServerPipe) -> float:
    return percentile([pipe.ask(_build_call(pipe, "Read", file_path=FILE))[0] for _ in range(READS)], SHARE)


def _measure_in_company(pipe: ServerPipe) -> float:
    names = [f"shell-{number}" for number in range(SHELLS)]
    pipe.ask_all([_build_call(pipe, "bash", command="yes", run_in_background=True, bash_id=name) for name in names])
    # By now each has used up its initial burst, and prints at its permanent rate.
    pipe.ask(_build_call(pipe, "wait", seconds=2))
    figure = _measure_reads(pipe)
    pipe.ask_all([_build_call(pipe, "kill_shell", shell_id=name) for name in names])
    return figure


def _build_call(pipe: ServerPipe, tool: str, **arguments: Any) -> bytes:
    return messages.build_call(pipe.next_number(), tool, arguments)
