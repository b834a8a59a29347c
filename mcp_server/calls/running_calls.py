"""What is one call that runs here, with the processes it started, and how is it described to the person?"""

import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from dataclasses import dataclass, field

import anyio

from mcp_server.model.processes import ChildProcess
from mcp_server.model.results import Code, Problem

MOST_SHOWN = 100
"""Characters of what a call is about that the person is shown."""
GO_ON = "Do nothing more until the user lets a new run begin."


@dataclass(eq=False)
class RunningCall:
    """One call on its way through the gate."""

    principal: str
    session: str
    tool: str
    about: str
    """What it is about, such as a command, with whatever secrets are in that."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    acting: bool = False
    """It was let through; until then it may wait for the person."""
    asks: bool = False
    """It waits for the person's answer."""
    over: bool = False
    stopped: str = ""
    """Why the person's word ended it; empty where that did not."""
    children: list[ChildProcess] = field(default_factory=lambda: [])
    client: str = ""
    since: int = field(default_factory=time.time_ns)
    born: dict[int, str] = field(default_factory=lambda: {})
    """When each of its processes began, as far as somebody asked."""
    changed: Callable[[], None] = lambda: None
    within: Token["RunningCall | None"] | None = None
    """The way back to the call in which this one was made."""

    @property
    def runs(self) -> bool:
        return (not self.over and self.acting) or any(self.processes())

    @property
    def waits(self) -> bool:
        return self.asks and not self.over

    def processes(self) -> Iterator[ChildProcess]:
        return (one for one in self.children if one.code is None)

    def numbered(self) -> Iterator[ChildProcess]:
        """Those of which it is known which process they are; of one that just begins it is not yet."""
        return (one for one in self.processes() if one.pid)

    def problem(self) -> Problem:
        return Problem(
            Code.CANCELLED,
            f"`{self.tool}` was ended: {self.stopped}.",
            GO_ON,
        )

    def described(self, redact: Callable[[str], str]) -> str:
        """On one line, for the person."""
        about = self.shown(redact)
        name = f"`{self.tool}`" + (f" `{about}`" if about else "")
        pids = ", ".join(str(one.pid) for one in self.numbered())
        where = f"pid {pids}, session {self.session}" if pids else f"session {self.session}"
        where = f"waiting for your answer, {where}" if self.asks else where
        return f"{name} ({where})"

    def shown(self, redact: Callable[[str], str]) -> str:
        """The first words of what it is about."""
        about = "".join(sign for sign in " ".join(redact(self.about).split()) if sign.isprintable())
        return about if len(about) <= MOST_SHOWN else f"{about[: MOST_SHOWN - 1]}…"


CURRENT: ContextVar[RunningCall | None] = ContextVar("the call that runs here", default=None)
