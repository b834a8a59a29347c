"""Whose call does a question belong to? On older revisions a server's question names no call, so it has to be clear.

Calls of one session may run together: whichever asks, the same client answers. Once a server has asked anything, calls
of different sessions take turns on its connection. Before that, a question that could belong to several sessions waits
until it can belong to one only.
"""

from collections import deque
from dataclasses import dataclass, field

import anyio


@dataclass(eq=False)
class SessionTurns:
    """Lets calls of one session run at a time. A call that waits for the user gives its turn back."""

    session: str = ""
    running: int = 0
    _waiting: deque[tuple[str, anyio.Event]] = field(default_factory=deque[tuple[str, anyio.Event]])

    async def take(self, session: str) -> None:
        if self._may_run(session):
            self._start(session)
            return
        entry = (session, anyio.Event())
        self._waiting.append(entry)
        try:
            await entry[1].wait()
        except BaseException:
            if entry[1].is_set():
                self.give_back()
            else:
                self._waiting.remove(entry)
            raise

    def _may_run(self, session: str) -> bool:
        # Behind whoever waits, or a busy session would keep the others out for ever.
        return not self.running or (self.session == session and not self._waiting)

    def _start(self, session: str) -> None:
        self.session = session
        self.running += 1

    def give_back(self) -> None:
        self.running -= 1
        if self.running or not self._waiting:
            return
        next_session = self._waiting[0][0]
        for entry in [one for one in self._waiting if one[0] == next_session]:
            self._waiting.remove(entry)
            self._start(next_session)
            entry[1].set()
