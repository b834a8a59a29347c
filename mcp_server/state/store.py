"""How does the rest of menugate read and write state? The one interface for a running server, from one asyncio loop.

Nothing here touches the disk: requests go to the writer's thread and come back in one hop per batch. If the state
cannot be written, every awaited method raises `Refusal` with `BUSY`, `STORE_FULL` or `STORE_UNAVAILABLE`. Whatever was
committed without being acknowledged (a kill, a cancelled caller) stays in the ledger.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from mcp_server.model.files import Stamp
from mcp_server.model.results import Refusal
from mcp_server.model.sessions import Session
from mcp_server.state import approvals, ledger, messages, posture_changes, reads, sessions
from mcp_server.state.engine.rows import (
    Begun,
    Clock,
    Condition,
    IntentRow,
    Judged,
    Message,
    OutcomeRow,
    StoredSession,
    VersionMoved,
)
from mcp_server.state.engine.transaction import LOCK_SECONDS, StoreJob, StoreReply, Transaction, View
from mcp_server.state.ids import make_process_name
from mcp_server.state.writer import Writer

if TYPE_CHECKING:
    from mcp_server.state.engine.transaction import StateWorkspace

T = TypeVar("T")
IDLE_NS = 24 * 3600 * 10**9
TOUCH_NS = 5 * 60 * 10**9
CLOSE_SECONDS = 5.0
MOST_REMEMBERED = 10_000


class Store:
    def __init__(self, start: Callable[[str], "StateWorkspace"], clock: Clock, new_id: Callable[[], str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._new_id = new_id
        self._writer = Writer(start, self._post)
        self._ended = self._loop.create_future()
        self._listeners: list[Callable[[], None]] = []
        self._sessions: dict[str, StoredSession] = {}
        self._handles: dict[str, str] = {}
        self._seen: dict[tuple[str, str], Stamp] = {}
        self._generation = 0
        self._asked: list[StoreJob] = []

    @classmethod
    def open(cls, url: str, *, secrets: str | Path | None, clock: Clock, new_id: Callable[[], str]) -> "Store":
        """Returns at once; the writer opens the file when it is first needed, or on `wake`. `ready` says how that
        went."""
        process = make_process_name(new_id())

        def start(suspicion: str) -> "StateWorkspace":
            from mcp_server.state.engine.sqlite import path_from_url
            from mcp_server.state.open import open_workspace

            return open_workspace(path_from_url(url), Path(secrets) if secrets else None, clock, process, suspicion)

        return cls(start, clock, new_id)

    def wake(self) -> None:
        """Start the engine now, before anyone waits for it."""
        self._writer.start()

    async def wait_until_ready(self) -> Condition:
        return await self.read(lambda _view: self._writer.condition)

    async def close(self) -> None:
        """Write what is still queued. Bounded in time: what cannot be written by then is lost, and was never
        acknowledged."""
        self._hand_over()
        if not self._writer.started:
            return
        self._writer.stop()
        await asyncio.wait([self._ended], timeout=CLOSE_SECONDS)

    @property
    def commits(self) -> int:
        """How many transactions were committed; fewer than rows if callers shared a batch."""
        return self._writer.commits

    # The ledger.

    async def record_intent(self, intent: IntentRow, terms: approvals.QuestionTerms | None = None) -> Begun:
        """Return the intent's number once it is durable; `PostureMoved` if the posture has changed by now."""
        begin = ledger.record_intent if terms is None else partial(approvals.begin_call, terms=terms)
        return await self._ask(StoreJob(partial(begin, intent=intent)))

    def record_outcome(self, outcome: OutcomeRow) -> None:
        """Does not wait. Any thread may call it."""
        self._writer.defer(partial(ledger.record_outcome, outcome=outcome, release=posture_changes.end_call))

    async def record_decision(self, judged: Judged) -> int:
        return await self.write(partial(ledger.record_decision, judged=judged))

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back in the loop when posture or sessions change, here or in another process. Call the result to
        stop."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback) if callback in self._listeners else None

    # Sessions.

    async def find_session(self, key: str) -> Session | None:
        kept = self._sessions.get(key) or await self._read_session(partial(sessions.find_session, key=key))
        return kept.session if kept else None

    async def find_session_by_handle(self, digest: str) -> Session | None:
        """Return the session of a menu handle (its SHA-256, in hex), if used within a day."""
        read = partial(sessions.find_session_by_handle, digest=digest)
        kept = self._sessions.get(self._handles.get(digest, "")) or await self._read_session(read)
        if kept is not None and not self._is_unexpired(kept):
            # Another process may have used it since: mere use is not announced to the others.
            kept = await self._read_session(read)
        if kept is None or kept.handle_digest != digest or not self._is_unexpired(kept):
            return None
        idle = self._clock.now_ns() - kept.used
        if idle >= TOUCH_NS:
            self._remember_session(replace(kept, used=kept.used + idle))
            self._writer.defer(partial(sessions.touch_session, id=kept.session.key, used=kept.used + idle))
        return kept.session

    def _is_unexpired(self, kept: StoredSession) -> bool:
        # After the clock is set back, a session may seem used in the future; that counts as expired too.
        return -TOUCH_NS <= self._clock.now_ns() - kept.used < IDLE_NS

    async def put_session(self, session: Session, handle_digest: str | None = None) -> Session:
        """Store a session, or refresh a known one; return it as stored."""
        kept = await self.write(lambda tx: sessions.put_session(tx, session, handle_digest))
        return kept.session

    async def move_session(
        self, before: Session, after: Session, reason: str, scope: str = "now"
    ) -> Session | VersionMoved:
        """`before.version` must be the current one. A session not yet stored is stored by its first move."""
        found = await self.write(
            lambda tx: sessions.move_session(tx, before, after, {"reason": reason, "scope": scope})
        )
        if not isinstance(found, StoredSession):
            return found
        if sessions.get_run_progress(found.session) != sessions.get_run_progress(before):
            # The session's other places moved along.
            for key in [key for key, kept in self._sessions.items() if kept.session.id == before.id]:
                del self._sessions[key]
        return found.session

    # Messages to the person, and what a session has read.

    async def leave_message(
        self,
        session: str,
        text: str,
        attachments: Sequence[str] = (),
        principal: str = "",
        asks: bool = False,
        by_handle: bool = False,
    ) -> str:
        id, now = self._new_id(), self._clock.now_ns()
        message = Message(
            id, now, session, text, tuple(attachments), principal=principal, asks=asks, by_handle=by_handle
        )
        return await self.write(partial(messages.leave_message, message=message))

    def remember_seen(self, session_id: str, path: str, stamp: Stamp) -> None:
        """Visible at once, written with the next batch. Any thread may call it. What was seen before, and looks the
        same, is not written again."""
        if self._seen.get((session_id, path)) == stamp:
            return
        _clear_when_full(self._seen)[session_id, path] = stamp
        self._writer.defer(lambda tx: reads.remember_seen(tx, session_id, path, stamp))

    def recall_seen(self, session_id: str, path: str) -> Stamp | None:
        """From memory, or what another process wrote. May wait for the writer, so never call it in the loop's
        thread."""
        if found := self._seen.get((session_id, path)):
            return found
        done = threading.Event()
        wish = StoreJob(partial(reads.recall_seen, session_id=session_id, path=path), writes=False, answered=done.set)
        self._writer.ask(wish)
        if not done.wait(2 * LOCK_SECONDS):
            return None
        if wish.error:
            raise wish.error
        return wish.value

    # To the writer and back.

    async def read(self, work: Callable[[View], T]) -> T:
        """Run the query in the writer's thread. It sees committed rows only."""
        return await self._ask(StoreJob(work, writes=False))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run the change in the writer's thread; return its result once it is durable."""
        return await self._ask(StoreJob(work))

    async def _ask(self, wish: StoreJob) -> Any:
        wish.future = self._loop.create_future()
        if not self._asked:
            self._loop.call_soon(self._hand_over)
        self._asked.append(wish)
        return await wish.future

    def _hand_over(self) -> None:
        """Hand everything requested in one turn of the loop to the writer, as one batch."""
        asked, self._asked = self._asked, []
        for wish in asked:
            self._writer.ask(wish)

    async def _read_session(self, work: Callable[[View], StoredSession | None]) -> StoredSession | None:
        generation = self._generation
        kept = await self.read(work)
        if kept and generation == self._generation:
            self._remember_session(kept)
        return kept

    def _remember_session(self, kept: StoredSession) -> None:
        _clear_when_full(self._sessions)[kept.session.key] = kept
        if kept.handle_digest:
            _clear_when_full(self._handles)[kept.handle_digest] = kept.session.key

    def _post(self, delivery: StoreReply) -> None:
        """Called from the writer's thread."""
        try:
            self._loop.call_soon_threadsafe(self._receive, delivery)
        except RuntimeError:
            # The loop is closed: nobody is left to notify.
            return

    def _receive(self, delivery: StoreReply) -> None:
        if delivery.changed:
            self._generation += 1
        if delivery.foreign:
            self._sessions.clear()
            self._handles.clear()
        for wish in delivery.wishes:
            found: Any = wish.value
            for kept in cast(tuple[Any, ...], found) if isinstance(found, tuple) else (found,):
                if isinstance(kept, StoredSession):
                    self._remember_session(kept)
            if wish.future is None or wish.future.done():
                continue
            if wish.error is None:
                wish.future.set_result(wish.value)
            elif isinstance(wish.error, Refusal):
                # One problem may answer many callers; each must raise an exception of its own.
                wish.future.set_exception(Refusal(wish.error.problem))
            else:
                wish.future.set_exception(wish.error)
        if delivery.changed:
            for callback in tuple(self._listeners):
                callback()
        if delivery.ended and not self._ended.done():
            self._ended.set_result(None)


K = TypeVar("K")
V = TypeVar("V")


def _clear_when_full(remembered: dict[K, V]) -> dict[K, V]:
    """Clear everything when full: the memory is only a shortcut, and what it loses is read again."""
    if len(remembered) >= MOST_REMEMBERED:
        remembered.clear()
    return remembered
