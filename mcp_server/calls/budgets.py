"""What has a run spent? Calls, minutes, results, and repeats of the same failing call."""

import time
from dataclasses import dataclass

from mcp_server.model.policy import BudgetUse
from mcp_server.model.results import Ending, has_failed
from mcp_server.model.tools import Tool


@dataclass
class BudgetMeter:
    """What a run has spent, from its first call to its end. A refused call costs nothing.

    A call is counted when it is let through, not when it finishes: parallel calls see each other.
    """

    calls: int = 0
    result_bytes: int = 0
    repeated_failures: int = 0
    begun_ns: int | None = None
    failing: str = ""
    """What failed last: the tool and its arguments' digest."""

    def get_budget_use(self, in_phase: int = 0) -> BudgetUse:
        minutes = 0.0 if self.begun_ns is None else (time.monotonic_ns() - self.begun_ns) / 60e9
        return BudgetUse(self.calls, minutes, self.result_bytes, self.repeated_failures, in_phase)

    def start_clock(self) -> None:
        """Its first call begins."""
        self.begun_ns = time.monotonic_ns()

    def count_call(self, tool: Tool) -> None:
        self.calls += not tool.meta

    def uncount_call(self, tool: Tool) -> None:
        """Undo `count_call`: the call did not run, or will start over. Another run may have begun meanwhile."""
        self.calls = max(0, self.calls - (not tool.meta))

    def add_result(self, shown: Ending, call: str) -> None:
        self.result_bytes += len(shown.text)
        failed = has_failed(shown)
        self.repeated_failures = (self.repeated_failures + 1 if call == self.failing else 1) if failed else 0
        self.failing = call if failed else ""
