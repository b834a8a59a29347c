"""Hours that pass at once: for the servers that `tuned(hours=...)` starts, and for what is typed meanwhile."""

import time
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from mcp_server.state.engine.rows import WallClock
from tests.clients.tuned import HOUR_NS, tuned
from tests.clients.typed import Typed, typed


@dataclass
class Later:
    """One clock for everybody in a folder."""

    file: Path
    workspace: Path
    home: Path
    hours: float = 0.0

    def __post_init__(self) -> None:
        self.pass_hours(0.0)

    def pass_hours(self, hours: float) -> None:
        self.hours += hours
        # A server may read it at any moment, so it is never half written.
        new = self.file.with_suffix(".new")
        new.write_text(str(self.hours))
        new.replace(self.file)

    def pass_minutes(self, minutes: float) -> None:
        self.pass_hours(minutes / 60)

    def serve(self, **options: float) -> list[str]:
        """The command for `served` and `pipe`."""
        return tuned(hours=self.file, **options)

    def typed(self, *words: str) -> Typed:
        """Typed now, as this clock has it."""
        wall = time.time_ns

        def now_ns() -> int:
            return wall() + int(self.hours * HOUR_NS)

        with patch.object(time, "time_ns", now_ns), patch.object(WallClock, "now_ns", staticmethod(now_ns)):
            return typed(self.workspace, self.home, *words)
