"""Which calls are running here now?"""

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from mcp_server.calls.request import ResolvedCall
from mcp_server.model.processes import ChildProcess
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_for_person
from mcp_server.state.processes import get_own_pid, read_start_time
from mcp_server.state.running_calls import (
    RunningClient,
    RunningWork,
    read_running_calls,
    remove_running_calls,
    write_running_calls,
)

if TYPE_CHECKING:
    from mcp_server.calls.live_sessions import SharedSession


# What is running here, as written for `menugate status`? No call waits for this, and most are too short for it.

SOON = 0.05
"""Seconds from a change until it is written; a call that ends sooner leaves no trace here."""
MOST = 500
LONGEST_NAME = 80


@dataclass
class RunningCallsFile:
    state: Path
    redact: Callable[[str], str]
    live: Callable[[], "Iterable[RunningCall]"]
    clients: "dict[str, tuple[SharedSession, RunningClient]]" = field(
        default_factory=dict[str, "tuple[SharedSession, RunningClient]"]
    )
    _said: object = ((), ())
    _soon: asyncio.TimerHandle | None = None
    _closed: bool = False

    def add_client(self, common: "SharedSession", session: str, principal: str, name: str) -> None:
        if common.connected:
            self.clients[session] = common, RunningClient(session, principal, self.redact(name)[:LONGEST_NAME])

    def schedule_write(self) -> None:
        """Something began or ended."""
        if self._soon is None and not self._closed:
            self._soon = asyncio.get_running_loop().call_later(SOON, self._write_now)

    def _write_now(self) -> None:
        self._soon = None
        self.clients = {session: one for session, one in self.clients.items() if one[0].connected}
        clients = tuple(one for _, one in self.clients.values())[:MOST]
        running, now = [one for one in self.live() if one.is_running], time.time_ns()
        # Most calls are over before they are worth a file; whatever has only just begun is looked at again.
        young = {one for one in running if 0 <= now - one.since < SOON * 1e9}
        works = tuple(self._build_work(one) for one in running if one not in young)[:MOST]
        if (clients, works) != self._said:
            self._said = clients, works
            write_running_calls(self.state, clients, works)
        if young or any(child.pid == 0 for one in running for child in one.get_live_processes()):
            # A process that is just starting gets its id in a moment, and nothing tells us when.
            self.schedule_write()

    def _build_work(self, one: "RunningCall") -> RunningWork:
        for child in one.get_numbered_processes():
            if child.pid not in one.born:
                one.born[child.pid] = read_start_time(child.pid)
        processes = tuple((child.pid, one.born[child.pid]) for child in one.get_numbered_processes())
        about, client = one.describe_subject(self.redact), self.redact(one.client)[:LONGEST_NAME]
        # Of another process, only that knows whether a shell that stays open waits for its next line.
        changes = one.changes and (not one.over or any(child.line is None for child in one.get_live_processes()))
        names = (one.principal, one.session, client)
        return RunningWork(one.tool, about, one.since, *names, one.over, processes, changes=changes)

    def close(self) -> None:
        self._closed = True
        if self._soon is not None:
            self._soon.cancel()
        remove_running_calls(self.state)


# What is one running call, with the processes it started, and how is it described to the person?

MOST_SHOWN = 100
"""Most characters of a call's subject that the person is shown."""
GO_ON = "Do nothing more until the user allows a new run."


@dataclass(eq=False)
class RunningCall:
    """One call on its way through the gate."""

    principal: str
    session: str
    tool: str
    about: str
    """Its subject, such as a command, with any secrets still in it."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    acting: bool = False
    """It was let through. Until then it may wait for the person."""
    changes: bool = False
    """What it was let through for may change something."""
    asks: bool = False
    """It is waiting for the person's answer."""
    over: bool = False
    stopped: str = ""
    """Why the user stopped it; empty if they did not."""
    children: list[ChildProcess] = field(default_factory=lambda: [])
    client: str = ""
    since: int = field(default_factory=time.time_ns)
    born: dict[int, str] = field(default_factory=lambda: {})
    """When each of its processes started, as far as that was looked up."""
    changed: Callable[[], None] = lambda: None
    within: Token["RunningCall | None"] | None = None
    """Makes the enclosing call the current one again."""

    @property
    def is_running(self) -> bool:
        return (not self.over and self.acting) or any(self.get_live_processes())

    @property
    def is_waiting(self) -> bool:
        return self.asks and not self.over

    def get_live_processes(self) -> Iterator[ChildProcess]:
        return (one for one in self.children if one.code is None)

    def get_numbered_processes(self) -> Iterator[ChildProcess]:
        """The processes whose id is known; one that is just starting has none yet."""
        return (one for one in self.get_live_processes() if one.pid)

    def list_work(self) -> Iterator[str]:
        """List what it still does that may change something, as it was given."""
        if self.changes and self.acting and not self.over:
            yield self.about or f"the tool {self.tool}"
        elif self.changes:
            yield from (one.line or self.about for one in self.get_live_processes() if one.has_work())

    def list_enclosing(self) -> "Iterator[RunningCall]":
        """List the call and those that it was made within."""
        one: RunningCall | None = self
        while one is not None:
            yield one
            before = one.within.old_value if one.within is not None else None
            one = before if isinstance(before, RunningCall) else None

    def build_stopped_problem(self) -> Problem:
        return Problem(
            Code.CANCELLED,
            f"`{self.tool}` ended early: {self.stopped}.",
            GO_ON,
        )

    def describe_call(self, redact: Callable[[str], str]) -> str:
        """Describe the call on one line, for the person."""
        about = self.describe_subject(redact)
        name = f"`{self.tool}`" + (f" `{about}`" if about else "")
        pids = ", ".join(str(one.pid) for one in self.get_numbered_processes())
        where = f"pid {pids}, session {self.session}" if pids else f"session {self.session}"
        where = f"waiting for your answer, {where}" if self.asks else where
        return f"{name} ({where})"

    def describe_subject(self, redact: Callable[[str], str]) -> str:
        """The first words of what it is about."""
        about = escape_for_person(" ".join(redact(self.about).split()), one_line=True)
        return about if len(about) <= MOST_SHOWN else f"{about[: MOST_SHOWN - 1]}…"


CURRENT: ContextVar[RunningCall | None] = ContextVar("the call that runs here", default=None)


# Which calls are on their way through this server?

OTHER_PERSON = "a command of another person"
MOST_BESIDE = 200
"""Characters shown of what runs beside a call. What starts another one counts as a change, so these need not tell them
apart."""
MAX_SUBJECT_CHARS = 10_000
"""Characters of a call's subject that are searched for secrets."""
UNRECORDED = "the user stopped every run, and that could not be recorded yet."


@dataclass
class RunningCalls:
    state: Path
    redact: Callable[[str], str]
    live: set[RunningCall] = field(default_factory=set[RunningCall])
    """Running calls, and finished ones that left a process running."""
    halted: bool = False
    """Everything was ended, but that is not recorded yet. Until it is, nothing may start."""
    _left: set[RunningCall] = field(default_factory=set[RunningCall])
    """Finished calls, forgotten once none of their processes runs."""

    @cached_property
    def board(self) -> RunningCallsFile:
        return RunningCallsFile(self.state, self.redact, lambda: self.live)

    def enter(self, call: ResolvedCall) -> RunningCall:
        """From here on the person can end this call. Every `enter` needs a `leave`."""
        if self.halted:
            raise Refusal(Problem(Code.RUN_PAUSED, UNRECORDED, GO_ON))
        session, client, tool = call.live.session, call.request.client.name, call.tool
        value = call.arguments.get(tool.subject[0]) if tool.subject else None
        subject = value[:MAX_SUBJECT_CHARS] if isinstance(value, str) else ""
        running = RunningCall(session.principal, session.id, tool.name, subject, client=client)
        running.changed = self.board.schedule_write
        if session.id not in self.board.clients:
            self.board.add_client(call.live.common, session.id, session.principal, client)
        if self._left:
            ended = {one for one in self._left if not (one.children and one.is_running)}
            self._left -= ended
            self.live -= ended
        self.live.add(running)
        running.within = CURRENT.set(running)
        return running

    def list_beside(self, principal: str) -> tuple[str, ...]:
        """List what else runs in this workspace and may change something, for the principal to see."""
        current = CURRENT.get()
        own = set(current.list_enclosing()) if current is not None else set[RunningCall]()
        found = [(one.principal, text) for one in self.live - own for text in one.list_work()]
        for work in read_running_calls([self.state])[1]:
            if work.server != get_own_pid() and work.changes:
                found.append((work.principal, work.about or f"the tool {work.tool}"))
        return tuple(sorted({_shorten(text) if whose == principal else OTHER_PERSON for whose, text in found}))

    def leave(self, running: RunningCall) -> None:
        if running.within is not None:
            CURRENT.reset(running.within)
        running.over = True
        self._left.add(running)
        self.board.schedule_write()


def _shorten(text: str) -> str:
    cut = text.strip()
    return cut if len(cut) <= MOST_BESIDE else f"{cut[:MOST_BESIDE]}… ({len(cut):,} characters)"


def mark_acting(changes: bool) -> None:
    """Mark the current call as allowed and running. `changes`: it may change something."""
    if (running := CURRENT.get()) is not None:
        running.acting, running.changes = True, changes
        running.changed()


@contextmanager
def mark_asking() -> Generator[None, None, None]:
    """Mark the current call as waiting for the person's answer."""
    running = CURRENT.get()
    if running is None:
        yield
        return
    running.asks = True
    try:
        yield
    finally:
        running.asks = False


def register_child_process(child: ChildProcess) -> None:
    """Add a process to the current call, which it may outlive."""
    if (running := CURRENT.get()) is not None:
        running.children.append(child)
        running.changed()
