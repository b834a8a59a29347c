"""How does the person stop running calls? Ends the calls and the processes that they left running."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from msgspec import Struct

from mcp_server.calls.pauses import Holds
from mcp_server.calls.running_calls import RunningCall, RunningCalls
from mcp_server.model.processes import ChildProcess
from mcp_server.model.results import Problem, Refusal
from mcp_server.state import runs, sessions, stops
from mcp_server.state.engine.rows import StoredSession
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.processes import is_process_gone, read_start_time
from mcp_server.state.stops import IssuedOrder, StopAnswer, StopOrder
from mcp_server.state.store import Store

ANSWER_SECONDS = 2.0
"""How long a command waits for the servers to answer its order."""
ENDING_SECONDS = 1.2
"""How long a server may take to end its calls. That leaves time to notice the order and to answer it."""
GRACE_SECONDS = 0.3
"""How much of that a process gets to end by itself."""
POLL_SECONDS = 0.02
RETRY_SECONDS = 0.2
MAX_NAMED = 50
STOPPED = "the user stopped it"


@dataclass
class StopOrders:
    """Obeys the orders to stop calls, which come from any process of the workspace."""

    calls: RunningCalls
    store: Store
    holds: Holds
    new_run: Callable[[], str]
    everybody: Callable[[], frozenset[str]]
    """Every principal that ever called here."""
    enlisted: bool = False
    """Once a call comes in. Until then nobody expects an answer of this server."""
    _obeyed: frozenset[str] = frozenset()
    """The orders already obeyed."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])

    async def enlist(self) -> None:
        """Register before the first call is decided: a stop of this workspace from now on waits for our answer."""
        async with self._lock:
            if not self.enlisted:
                # Earlier orders are not obeyed again, so load the holds they left.
                self._obeyed, holds = await self.store.write(lambda tx: (stops.enlist_server(tx), runs.load_holds(tx)))
                self.holds.known, self.enlisted = holds, True

    def check_for_orders(self) -> None:
        """Something changed in the store; it may be an order."""
        if self.enlisted:
            self._start_task(self._obey_new_orders())

    async def end_all(self) -> bool:
        """End every call of every principal, without the state, because no order could be written. False if something
        still runs."""
        if not self.calls.halted:
            self.calls.halted = True
            self._start_task(self._record_stop())
        mine = list(self.calls.live)
        await self._end_calls(mine, STOPPED)
        return not any(one.is_running for one in mine)

    async def _record_stop(self) -> None:
        """Record the stop as soon as the state can be written; from then on the recorded holds stop every session."""
        run, callers = self.new_run(), self.everybody()

        def stop_sessions(tx: Transaction) -> tuple[StoredSession, ...]:
            stopped = {
                principal for (principal, session), hold in runs.load_holds(tx).items() if hold.stopped and not session
            }
            principals = {*callers, *(stored.session.principal for stored in sessions.load_sessions(tx))} - stopped
            return tuple(
                stored
                for principal in sorted(principals)
                for stored in runs.stop_runs(tx, principal, None, run, STOPPED)
            )

        await retry_until_possible(lambda: self.store.write(stop_sessions))
        await retry_until_possible(self.holds.refresh)
        self.calls.halted = False

    async def close(self) -> None:
        with anyio.move_on_after(ENDING_SECONDS):
            # Answer pending orders, even if the process exits because of a call that one of them ended.
            while self._tasks:
                await asyncio.wait(self._tasks)
        for task in list(self._tasks):
            task.cancel()
        self.calls.board.close()
        if self.enlisted:
            with suppress(Refusal):
                await self.store.write(stops.discharge_server)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey_new_orders(self) -> None:
        orders = await retry_until_possible(partial(self.store.read, stops.load_orders))
        # Calls that start from here on are held; those that started before are in `calls.live`.
        await retry_until_possible(self.holds.refresh)
        new = [order for order in orders if order.id not in self._obeyed]
        self._obeyed |= {order.id for order in new}
        for order in new:
            self._start_task(self._obey_order(order))

    async def _obey_order(self, order: StopOrder) -> None:
        mine = [one for one in self.calls.live if order.covers(one.principal, one.session)]
        others = [one for one in self.calls.live if one not in mine and one.is_running] if order.everybody else []
        names = {one: one.describe_call(self.calls.redact) for one in mine if one.is_running or one.is_waiting}
        if order.ends:
            await self._end_calls(mine, order.reason)
        running = [name for one, name in names.items() if one.is_running]
        ended = [name for one, name in names.items() if not one.is_running and order.ends]
        of_others = [f"{one.describe_call(self.calls.redact)} of {one.principal}" for one in others]
        answer = StopAnswer(limit_names(ended), limit_names(running), limit_names(of_others))
        await retry_until_possible(lambda: self.store.write(partial(stops.write_answer, id=order.id, answer=answer)))

    async def _end_calls(self, calls: list[RunningCall], reason: str) -> None:
        for call in calls:
            if not call.over:
                call.stopped = reason
                call.scope.cancel()
        killed: set[ChildProcess] = set()
        with anyio.move_on_after(ENDING_SECONDS):
            while any(not call.over or call.is_running for call in calls):
                for call in calls:
                    # A running call's processes are killed at once; one that it left running may end by itself.
                    for child in set(call.get_live_processes()) - killed:
                        killed.add(child)
                        self._start_task(child.kill(GRACE_SECONDS if call.over else 0.0))
                await anyio.sleep(POLL_SECONDS)


def limit_names(words: list[str]) -> tuple[str, ...]:
    return (*words[:MAX_NAMED], *([f"and {len(words) - MAX_NAMED} more"] if len(words) > MAX_NAMED else []))


async def retry_until_possible(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Retry until the state works again: no order may get lost because a disk was full or a file was locked."""
    while True:
        try:
            return await work()
        except Refusal:
            await anyio.sleep(RETRY_SECONDS)


class StopAnswers(Struct, frozen=True):
    """The result of an order, in all servers."""

    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    of_others: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    """The servers that did not answer in time."""
    unwritten: Problem | None = None
    """Why nothing can be written now, so that no server could answer."""


async def collect_stop_answers(store: Store, order_given: IssuedOrder, patience: float = ANSWER_SECONDS) -> StopAnswers:
    """Wait for the answers of every server that is still alive."""
    waiting: set[str] = set(order_given.servers)
    start_times = {one: read_start_time(parse_process_id(one)) for one in waiting}
    answers: dict[str, StopAnswer] = {}
    with anyio.move_on_after(patience):
        while waiting:
            with suppress(Refusal):
                answers = await store.read(partial(stops.load_answers, id=order_given.order.id))
            waiting = {
                one for one in waiting - answers.keys() if not is_process_gone(parse_process_id(one), start_times[one])
            }
            await anyio.sleep(POLL_SECONDS if waiting else 0)
    unwritten = None
    try:
        await store.write(partial(stops.forget_answers, id=order_given.order.id))
    except Refusal as refused:
        unwritten = refused.problem

    pids = (parse_process_id(one) for one in waiting if not is_process_gone(parse_process_id(one), start_times[one]))
    return StopAnswers(
        ended=tuple(name for answer in answers.values() for name in answer.ended),
        running=tuple(name for answer in answers.values() for name in answer.running),
        of_others=tuple(name for answer in answers.values() for name in answer.of_others),
        silent=tuple(sorted(map(str, pids))),
        unwritten=unwritten,
    )


def parse_process_id(process: str) -> int:
    return int(process.partition("-")[0])
