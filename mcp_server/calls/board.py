"""What runs here, and is written down for `menugate status`? No call waits for that, and most are too short for it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_server.state.processes import born
from mcp_server.state.running_calls import RunningClient, RunningWork, put_down, take_up

if TYPE_CHECKING:
    from mcp_server.calls.live_sessions import SharedSession
    from mcp_server.calls.running_calls import RunningCall

SOON = 0.05
"""Seconds after which a call is long enough to be told of; what ends before leaves no trace here."""
MOST = 500
LONGEST_NAME = 80


@dataclass
class RunningCallsFile:
    state: Path
    redact: Callable[[str], str]
    live: Callable[[], "Iterable[RunningCall]"]
    _clients: "dict[str, tuple[SharedSession, RunningClient]]" = field(
        default_factory=dict[str, "tuple[SharedSession, RunningClient]"]
    )
    _said: object = ((), ())
    _soon: asyncio.TimerHandle | None = None
    _closed: bool = False

    def meet(self, common: "SharedSession", session: str, principal: str, name: str) -> None:
        if common.connected and session not in self._clients:
            self._clients[session] = common, RunningClient(session, principal, self.redact(name)[:LONGEST_NAME])

    def tell(self) -> None:
        """Something began or ended."""
        if self._soon is None and not self._closed:
            self._soon = asyncio.get_running_loop().call_later(SOON, self._tell)

    def _tell(self) -> None:
        self._soon = None
        self._clients = {session: one for session, one in self._clients.items() if one[0].connected}
        clients = tuple(one for _, one in self._clients.values())[:MOST]
        works = tuple(self._work(one) for one in self.live() if one.runs)[:MOST]
        if (clients, works) != self._said:
            self._said = clients, works
            put_down(self.state, clients, works)
        if any(child.pid == 0 for one in self.live() for child in one.processes()):
            # One that just begins gets its number in a moment, of which nobody hears.
            self.tell()

    def _work(self, one: "RunningCall") -> RunningWork:
        for child in one.numbered():
            if child.pid not in one.born:
                one.born[child.pid] = born(child.pid)
        processes = tuple((child.pid, one.born[child.pid]) for child in one.numbered())
        about, client = one.shown(self.redact), self.redact(one.client)[:LONGEST_NAME]
        return RunningWork(one.tool, about, one.since, one.principal, one.session, client, one.over, processes)

    def close(self) -> None:
        self._closed = True
        if self._soon is not None:
            self._soon.cancel()
        take_up(self.state)
