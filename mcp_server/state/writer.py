"""Which thread writes? One per process: it takes everything queued, commits it at once, and answers together.

No artificial delay: while one batch is being written, the next one gathers. What nobody waits for (outcomes, seen
files) goes with the next batch, or after a tenth of a second. The engine's libraries are imported here, in the thread,
so that a server answers its first request without them.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.state.engine.disk import lengthen_log
from mcp_server.state.engine.rows import Condition
from mcp_server.state.engine.transaction import (
    CLOSING_SECONDS,
    LOCK_SECONDS,
    TICK_SECONDS,
    Inbox,
    StateWorkspace,
    StoreJob,
    StoreReply,
    Transaction,
    View,
)
from mcp_server.state.glances import has_surplus_glances, prune_glances
from mcp_server.state.ledger import read_change_count, sign_checkpoint
from mcp_server.state.posture_changes import record_process_end

LAZY_LOCK_SECONDS = 0.2
CHECKPOINT_ROWS = 1000
CHECKPOINT_NS = 60 * 10**9
PRUNE_ROWS = 2000
PRUNE_NS = 3600 * 10**9
"""So many rows, or so much time, lie between two searches for lines about calls that are too old or too many."""
BUSY_COMMITS = 16
"""A process that wrote this often will write more. For a command that writes one row, no space is reserved."""

log = logging.getLogger(__name__)
ENDED = Refusal(Problem(Code.STORE_UNAVAILABLE, "the state is closed.", "Start menugate again."))


class Writer:
    def __init__(self, start: Callable[[str], StateWorkspace], deliver: Callable[[StoreReply], None]) -> None:
        self._start = start
        self._deliver = deliver
        self._inbox = Inbox()
        self._workspace: StateWorkspace | None = None
        self._suspicion = ""
        self._growing = True
        self._ticked = 0.0
        self._version = -1
        self._changes: int = -1
        self._head = 0
        self._signed = 0
        self._signed_ns = 0
        self._pruned = 0
        self._pruned_ns = 0
        self.closed = False
        self.commits = 0
        self.started = False
        self._starting = threading.Lock()

    def start(self) -> None:
        """Start once, whoever calls first."""
        with self._starting:
            if not self.started:
                self.started = True
                threading.Thread(target=self._run_until_closed, name="menugate-state", daemon=True).start()

    def ask(self, wish: StoreJob) -> None:
        if self.closed:
            wish.error = ENDED
            self._answer([wish])
            return
        self._inbox.put(wish)
        if not self.started:
            self.start()

    def defer(self, work: Callable[[Transaction], Any]) -> None:
        """Queue without waking the thread: the next batch or tick takes it along."""
        self._inbox.defer(StoreJob(work))

    def stop(self) -> None:
        self._inbox.end()

    @property
    def condition(self) -> Condition:
        return self._workspace.condition if self._workspace else Condition()

    def _run_until_closed(self) -> None:
        try:
            # The first caller gets the error; opening is then tried again.
            with contextlib.suppress(Exception):
                self._open()
            while not self.closed:
                batch, last = self._inbox.gather()
                if batch:
                    self._serve(batch)
                if last:
                    self._finish()
                    self.closed = True
                elif time.monotonic() - self._ticked >= TICK_SECONDS:
                    self._ticked = time.monotonic()
                    self._tick()
        except BaseException:
            log.exception("the state writer ended unexpectedly")
        finally:
            self.closed = True
            self._answer(self._inbox.drain(), ENDED)
            self._deliver(StoreReply(ended=True))

    def _open(self) -> StateWorkspace:
        if self._workspace is None:
            opened = self._start(self._suspicion)
            self._workspace, self._suspicion, self._growing = opened, "", True
            self._signed_ns = opened.clock.now_ns()
            self._version = opened.link.data_version()
            self._changes = read_change_count(View(opened.link, None))
            # Recheck what was cached before the file was open, or while another was in its place.
            self._deliver(StoreReply(changed=True, foreign=True))
        return self._workspace

    def _translate_error(self, error: Exception) -> BaseException:
        """Translate an error for the caller."""
        if self._workspace is None or isinstance(error, Refusal):
            return error
        from mcp_server.state.engine.sqlite import is_damage_error, refusal_from_error

        meaning = refusal_from_error(error, self._workspace.link.path) or error
        if is_damage_error(error):
            self._close_workspace("damaged")
        return meaning

    def _close_workspace(self, suspicion: str) -> None:
        """Reopen the file at the next opportunity, and check it more closely."""
        workspace, self._workspace, self._suspicion = self._workspace, None, suspicion
        if workspace:
            with contextlib.suppress(Exception):
                workspace.close()

    def _lock_workspace(self, seconds: float) -> StateWorkspace:
        """Lock the workspace; reopen it if the file at its path is another one by now."""
        for _ in range(3):
            workspace = self._workspace or self._open()
            workspace.lock.acquire(seconds)
            if workspace.link.is_intact():
                return workspace
            workspace.lock.release()
            self._close_workspace("gone")
        raise Refusal(Problem(Code.STORE_UNAVAILABLE, "something keeps removing the state file; nothing ran."))

    def _serve(self, batch: list[StoreJob]) -> None:
        """Reads come first: they need no lock and work even if nothing can be written."""
        reads = [wish for wish in batch if not wish.writes]
        for wish in reads:
            try:
                workspace = self._workspace or self._open()
                wish.value = wish.work(View(workspace.link, workspace.key))
            except Exception as error:
                wish.error = self._translate_error(error)
        if reads:
            self._answer(reads)
        writes = [wish for wish in batch if wish.writes]
        if writes:
            self._write(writes, self._inbox.take_deferred())
            if self._head - self._signed >= CHECKPOINT_ROWS:
                self._ticked = 0.0

    def _write(self, eager: list[StoreJob], lazy: list[StoreJob]) -> None:
        try:
            if eager and (workspace := self._workspace or self._open()).full:
                workspace.refuse_when_full()
            self._commit([*lazy, *eager], eager, LOCK_SECONDS if eager else LAZY_LOCK_SECONDS)
        except Exception as error:
            meaning = self._translate_error(error)
            if isinstance(meaning, Refusal):
                self._withhold(eager, lazy, meaning)
            elif len(eager) + len(lazy) > 1:
                # One of them is at fault; give each a transaction of its own, so that the others do not suffer.
                for wish in lazy:
                    self._write([], [wish])
                for wish in eager:
                    self._write([wish], [])
            elif eager:
                self._answer(eager, meaning)
            else:
                log.error("a row could not be written", exc_info=meaning)

    def _withhold(self, eager: list[StoreJob], lazy: list[StoreJob], meaning: Refusal) -> None:
        # What has already happened is kept for later; what was only about to happen is refused.
        self._inbox.put_back(lazy)
        if meaning.problem.code is Code.BUSY:
            # Callers who arrived meanwhile have waited as long, and would wait as long again.
            eager = [*eager, *self._inbox.drain(writes_only=True)]
        if meaning.problem.code is Code.STORE_FULL and self._workspace and not self._workspace.full:
            self._workspace.full = True
            self._workspace.reserve.spend()
        self._answer(eager, meaning)

    def _commit(self, wishes: list[StoreJob], eager: list[StoreJob], seconds: float) -> None:
        workspace = self._lock_workspace(seconds)
        try:
            with workspace.open_transaction() as tx:
                # Before the callers are answered, so that the very next call knows of what you typed at a terminal.
                self._notice_changes(workspace, workspace.link.version)
                for wish in wishes:
                    wish.value = wish.work(tx)
            self.commits += 1
            if tx.changed:
                self._changes = tx.changes
            self._head, self._signed = tx.seq, tx.checkpoint.seq if tx.checkpoint else 0
            self._answer(eager, None, tx.changed)
        finally:
            workspace.lock.release()

    def _tick(self) -> None:
        try:
            workspace = self._open()
            if not workspace.link.is_intact():
                self._close_workspace("gone")
                return
            self._notice_changes(workspace, workspace.link.data_version())
            if lazy := self._inbox.take_deferred():
                self._write([], lazy)
            self._sign_when_due()
            self._prune_when_due(workspace)
            if self._growing and self.commits >= BUSY_COMMITS:
                self._lengthen_log()
        except Exception as error:
            # Nobody waits for a tick; the next caller gets the error.
            log.debug("state maintenance failed: %s", self._translate_error(error))

    def _lengthen_log(self) -> None:
        """Needs both locks, or what another process appends meanwhile would be overwritten."""
        workspace = self._lock_workspace(TICK_SECONDS)
        try:
            workspace.link.begin()
            self._growing = lengthen_log(workspace.link.path)
        finally:
            workspace.link.rollback()
            workspace.lock.release()

    def _notice_changes(self, workspace: StateWorkspace, version: int) -> None:
        """Tell the loop if another process has changed something since we last looked."""
        if version == self._version:
            return
        self._version = version
        if self._changes != (now := read_change_count(View(workspace.link, None))):
            self._changes = now
            self._deliver(StoreReply(changed=True, foreign=True))

    def _sign_when_due(self, *, at_once: bool = False) -> None:
        workspace = self._workspace
        if workspace is None or self._head <= self._signed:
            return
        now = workspace.clock.now_ns()
        if at_once or self._head - self._signed >= CHECKPOINT_ROWS or now - self._signed_ns >= CHECKPOINT_NS:
            self._signed_ns = now
            _ = workspace.key.public_key  # imports the library before the lock is taken
            self._commit([StoreJob(sign_checkpoint)], [], TICK_SECONDS)

    def _prune_when_due(self, workspace: StateWorkspace) -> None:
        now = workspace.clock.now_ns()
        if self._head - self._pruned < PRUNE_ROWS and now - self._pruned_ns < PRUNE_NS:
            return
        self._pruned, self._pruned_ns = self._head, now
        if has_surplus_glances(View(workspace.link, None), now):
            self._commit([StoreJob(prune_glances)], [], TICK_SECONDS)

    def _finish(self) -> None:
        """Write what is still queued, sign, and close."""
        if self._workspace is None:
            return
        try:
            while lazy := self._inbox.take_deferred():
                self._commit(lazy, [], CLOSING_SECONDS)
            self._commit([StoreJob(record_process_end)], [], CLOSING_SECONDS)
            self._sign_when_due(at_once=True)
        except Exception as error:
            log.warning("the state was closed without its last rows: %s", self._translate_error(error))
        self._close_workspace("")

    def _answer(self, wishes: list[StoreJob], error: BaseException | None = None, changed: bool = False) -> None:
        waiting: list[StoreJob] = []
        for wish in wishes:
            wish.error = wish.error or error
            if wish.answered:
                wish.answered()
            else:
                waiting.append(wish)
        if waiting or changed:
            self._deliver(StoreReply(waiting, changed))
