"""What is running now, and how does it end if the person says so? Calls, and the processes they left running."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import anyio

from mcp_server.calls.pauses import Holds
from mcp_server.calls.request import ResolvedCall
from mcp_server.calls.running_calls import CURRENT, GO_ON, RunningCall, RunningCallsFile
from mcp_server.model.processes import ChildProcess
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.state import runs, sessions, stops
from mcp_server.state.engine.rows import StoredSession
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.processes import is_process_gone, read_start_time
from mcp_server.state.stops import OrderGiven, StopAnswer, StopOrder
from mcp_server.state.store import Store

PATIENCE = 2.0
"""Seconds that whoever gives an order waits for its answers."""
ENDING = 1.2
"""Seconds in which a server ends its calls. That leaves time to hear of the order and to answer it."""
GRACE = 0.3
"""Seconds of these in which a process may end by itself."""
LOOK = 0.02
AGAIN = 0.2
MOST_READ = 10_000
"""Characters of a call's subject that are searched for secrets."""
MOST_NAMED = 50
STOPPED = "the person stopped it"
UNRECORDED = "the person stopped every run, which could not be put on record yet."


@dataclass
class RunningCalls:
    store: Store
    holds: Holds
    redact: Callable[[str], str]
    new_run: Callable[[], str]
    everybody: Callable[[], frozenset[str]]
    """Every principal that ever called here."""
    state: Path
    _live: set[RunningCall] = field(default_factory=set[RunningCall])
    """Running calls, and finished ones that left a process running."""
    _left: set[RunningCall] = field(default_factory=set[RunningCall])
    """Finished calls, to be forgotten once none of their processes runs."""
    _obeyed: frozenset[str] | None = None
    """The orders already obeyed; None until something runs here, because until then nobody expects an answer."""
    _shut: bool = False
    """Everything was ended, but that is not on record yet. Until it is, nothing may begin."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    @cached_property
    def board(self) -> RunningCallsFile:
        return RunningCallsFile(self.state, self.redact, lambda: self._live)

    async def enlist(self) -> None:
        """Register before the first call is decided: whoever stops this workspace from now on waits for our answer."""
        if self._obeyed is not None:
            return
        async with self._lock:
            if self._obeyed is None:
                # Earlier orders are not obeyed again, so load the holds they left.
                self._obeyed, held = await self.store.write(lambda tx: (stops.enlist_server(tx), runs.load_holds(tx)))
                self.holds.set_known_holds(held)

    def enter(self, found: ResolvedCall) -> RunningCall:
        """From here on the person can end this call. Whoever calls `enter` also calls `leave`."""
        if self._shut:
            raise Refusal(Problem(Code.RUN_PAUSED, UNRECORDED, GO_ON))
        session, client = found.live.session, found.asked.client.name
        running = RunningCall(session.principal, session.id, found.tool.name, get_call_subject(found))
        running.client, running.changed = client, self.board.schedule_write
        self.board.add_client(found.live.common, session.id, session.principal, client)
        if self._left:
            ended = {one for one in self._left if not one.is_running}
            self._left -= ended
            self._live -= ended
        self._live.add(running)
        running.within = CURRENT.set(running)
        return running

    def leave(self, running: RunningCall) -> None:
        if running.within is not None:
            CURRENT.reset(running.within)
        running.over = True
        self._left.add(running)
        self.board.schedule_write()

    def check_for_orders(self) -> None:
        """Something changed in the store; it may be an order."""
        if self._obeyed is not None:
            self._start_task(self._obey_new_orders())

    async def end_all(self) -> bool:
        """End everything, whoever started it, without using the state: no order could be written. False if something
        still runs."""
        if not self._shut:
            self._shut = True
            self._start_task(self._record_stop())
        mine = list(self._live)
        await self._end_calls(mine, STOPPED)
        return not any(one.is_running for one in mine)

    async def _record_stop(self) -> None:
        """Record the stop as soon as the state has room for it; from then on the recorded holds stop everybody."""
        run, seen = self.new_run(), self.everybody()

        def stop_sessions(tx: Transaction) -> tuple[StoredSession, ...]:
            held = {
                principal for (principal, session), hold in runs.load_holds(tx).items() if hold.stopped and not session
            }
            whose = {*seen, *(kept.session.principal for kept in sessions.load_sessions(tx))} - held
            return tuple(kept for one in sorted(whose) for kept in runs.stop_runs(tx, one, None, run, STOPPED))

        await retry_until_possible(lambda: self.store.write(stop_sessions))
        await retry_until_possible(self.holds.refresh)
        self._shut = False

    async def close(self) -> None:
        with anyio.move_on_after(ENDING):
            # Whoever gave an order hears what came of it, even if the process exits because of what it ended.
            while self._tasks:
                await asyncio.wait(self._tasks)
        for task in list(self._tasks):
            task.cancel()
        self.board.close()
        if self._obeyed is not None:
            with suppress(Refusal):
                await self.store.write(stops.discharge_server)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey_new_orders(self) -> None:
        orders = await retry_until_possible(partial(self.store.read, stops.load_orders))
        # Calls that enter the gate from here on are held; those that entered before are in `_live`.
        await retry_until_possible(self.holds.refresh)
        assert self._obeyed is not None
        new = [order for order in orders if order.id not in self._obeyed]
        self._obeyed |= {order.id for order in new}
        for order in new:
            self._start_task(self._obey_order(order))

    async def _obey_order(self, order: StopOrder) -> None:
        mine = [one for one in self._live if order.covers(one.principal, one.session)]
        others = [one for one in self._live if one not in mine and one.is_running] if order.everybody else []
        names = {one: one.describe_call(self.redact) for one in mine if one.is_running or one.is_waiting}
        if order.ends:
            await self._end_calls(mine, order.reason)
        running = [name for one, name in names.items() if one.is_running]
        ended = [name for one, name in names.items() if not one.is_running and order.ends]
        of_others = [f"{one.describe_call(self.redact)} of {one.principal}" for one in others]
        said = StopAnswer(limit_names(ended), limit_names(running), limit_names(of_others))
        await retry_until_possible(lambda: self.store.write(partial(stops.write_answer, id=order.id, said=said)))

    async def _end_calls(self, mine: list[RunningCall], reason: str) -> None:
        for one in mine:
            if not one.over:
                one.stopped = reason
                one.scope.cancel()
        told: set[ChildProcess] = set()
        with anyio.move_on_after(ENDING):
            while any(not one.over or one.is_running for one in mine):
                for one in mine:
                    # A call's own processes are killed at once; one that it left running gets a moment to end by
                    # itself.
                    for child in set(one.get_live_processes()) - told:
                        told.add(child)
                        self._start_task(child.kill(GRACE if one.over else 0.0))
                await anyio.sleep(LOOK)


def limit_names(words: list[str]) -> tuple[str, ...]:
    return (*words[:MOST_NAMED], *([f"and {len(words) - MOST_NAMED} more"] if len(words) > MOST_NAMED else []))


def mark_acting() -> None:
    """Mark the current call as let through."""
    if (running := CURRENT.get()) is not None:
        running.acting = True
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


def get_call_subject(found: ResolvedCall) -> str:
    value = found.arguments.get(found.tool.subject[0]) if found.tool.subject else None
    return value[:MOST_READ] if isinstance(value, str) else ""


async def retry_until_possible(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Retry until the state works again: an order must not be lost because a disk was full or a file was locked."""
    while True:
        try:
            return await work()
        except Refusal:
            await anyio.sleep(AGAIN)


@dataclass(frozen=True, slots=True)
class StopAnswers:
    """What came of an order, in all servers."""

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    of_others: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    """The servers that did not answer in time."""
    unwritten: Problem | None = None
    """Why nothing can be written now, so that no server could answer."""


async def collect_stop_answers(store: Store, given: OrderGiven, patience: float = PATIENCE) -> StopAnswers:
    """Wait for every server that is still alive."""
    waiting: set[str] = set(given.servers)
    births = {one: read_start_time(parse_process_id(one)) for one in waiting}
    found: dict[str, StopAnswer] = {}
    with anyio.move_on_after(patience):
        while waiting:
            with suppress(Refusal):
                found = await store.read(partial(stops.load_answers, id=given.order.id))
            waiting = {one for one in waiting - found.keys() if not is_process_gone(parse_process_id(one), births[one])}
            await anyio.sleep(LOOK if waiting else 0)
    unwritten = None
    try:
        await store.write(partial(stops.forget_answers, id=given.order.id))
    except Refusal as refused:
        unwritten = refused.problem

    def collect_names(what: str) -> tuple[str, ...]:
        return tuple(name for one in found.values() for name in getattr(one, what))

    pids = tuple(
        sorted(str(parse_process_id(one)) for one in waiting if not is_process_gone(parse_process_id(one), births[one]))
    )
    return StopAnswers(collect_names("ended"), collect_names("running"), collect_names("of_others"), pids, unwritten)


def parse_process_id(process: str) -> int:
    return int(process.partition("-")[0])
