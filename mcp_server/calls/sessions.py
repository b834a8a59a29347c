"""Which session does a call belong to? Live sessions, how they move, and the handles that find them again.

A session is written down when it first enters a mode; one that never does leaves no trace.

Agents that share a connection all enter their modes without a handle. So an agent that enters a mode there gets another
place, with its own mode, reads and todos, and the handles given out before still lead to their own places. All places
share one run: its stage, its phase, its budget and its holds. Another place is no way around any of these."""

import hashlib
from collections.abc import Callable
from functools import partial
from weakref import WeakValueDictionary

from msgspec.structs import replace

from mcp_server.calls.live_sessions import LiveSession, SharedSession
from mcp_server.calls.pauses import Holds
from mcp_server.model.posture import Stage
from mcp_server.model.results import Code, Problem
from mcp_server.model.sessions import Session
from mcp_server.state import sessions
from mcp_server.state.approval_questions import settle_abandoned_questions
from mcp_server.state.store import Store

HANDLE_LIFE = "24 hours from its last use"
MOST_LOOSE = 1000
"""Live sessions without a connection that stay in memory; the others are found again in the store."""

UNKNOWN = Problem(
    Code.UNKNOWN_HANDLE,
    f"this menu handle is unknown; a handle is valid for {HANDLE_LIFE}, and only for the caller that got it.",
    "Call `menu_enter` with the mode you need; it returns a new handle.",
)


class Sessions:
    def __init__(
        self,
        store: Store,
        holds: Holds,
        new_id: Callable[[], str],
        new_handle: Callable[[], str],
        left: Callable[[str], None],
    ) -> None:
        """`left` receives the id of a session whose objects will not be asked for again."""
        self._store = store
        self._holds = holds
        self._left = left
        self._new_id = new_id
        self._new_handle = new_handle
        self._connected: dict[str, LiveSession] = {}
        self._loose: dict[str, LiveSession] = {}
        self._common: WeakValueDictionary[str, SharedSession] = WeakValueDictionary()

    def open(self, principal: str, pinned: str | None = None, flat: bool = False, passing: bool = False) -> LiveSession:
        """Open a live session at ROOT, or in the one mode that an endpoint serves."""
        session = Session(
            id=self._new_id(),
            principal=principal,
            mode=pinned,
            run=self._new_id(),
            flat=flat and pinned is None,
            pinned=pinned is not None,
        )
        held = self._holds.find_hold(session)
        common = SharedSession(session.run, connected=not passing)
        live = LiveSession(replace(session, held=held) if held else session, common, passing=passing)
        if not passing:
            self._register(live)
            self._connected[session.key] = live
        return live

    def _register(self, live: LiveSession) -> None:
        """Make it findable: a caller may come back to it, or to its session."""
        self._common[live.session.id] = live.common
        live.common.add(live)

    async def claim(self, live: LiveSession) -> LiveSession:
        """Return the place for a caller without a handle: this one if nobody has claimed it yet, else a further one.
        Nothing is awaited before the claim, so a caller at the same moment finds it taken."""
        if not live.told:
            live.told = True
            return live
        there = await self.add_place(live)
        there.told = True
        return there

    async def add_place(self, live: LiveSession) -> LiveSession:
        """Add a place to the session, at ROOT, with nothing read and no todos yet."""
        common = live.common
        common.places += 1
        mode = live.session.mode if live.session.pinned else None
        there = LiveSession(replace(live.session, place=str(common.places), mode=mode, version=0), common)
        there.overspent = live.overspent
        await self._ensure_written(there)
        common.add(there)
        self._keep_at_hand(there)
        return there

    async def choose_place(self, live: LiveSession, mode: str | None) -> LiveSession:
        """Return the place for a caller that wants this mode and gave no handle: the newest place in it; else this one,
        if nobody has its handle; else a further one."""
        back = next((one for one in reversed(live.common.live_sessions) if one.session.mode == mode), None)
        return back or (await self.add_place(live) if live.told else live)

    def switch(self, here: LiveSession, there: LiveSession) -> LiveSession:
        """Switch the connection from one place to another."""
        if self._connected.pop(here.session.key, None) is not None:
            self._loose.pop(there.session.key, None)
            self._connected[there.session.key] = there
            self._keep_at_hand(here)
        return there

    def close(self, live: LiveSession) -> None:
        """The connection is gone. What was written stays, and its handle still finds it."""
        self._connected.pop(live.session.key, None)
        live.common.connected = False
        if not live.common.found_again:
            self._left(live.session.id)

    async def find_by_handle(self, handle: str, principal: str) -> LiveSession | Problem:
        """Find the live session of a handle. A made-up handle, an expired one and another principal's get the same
        answer."""
        session = await self._store.find_session_by_handle(digest_handle(handle))
        if session is None or session.principal != principal:
            return UNKNOWN
        live = self._connected.get(session.key) or self._loose.get(session.key)
        if live is None:
            common = self._common.setdefault(session.id, SharedSession(session.run))
            common.begin_run(session.run)
            live = LiveSession(session, common, handle=handle, written=True)
            common.add(live)
        elif session.version > live.session.version:
            live.adopt_stored_session(session)
        live.told = True
        live.set_hold(self._holds.find_hold(live.session))
        live.turned = False
        live.common.found_again |= not live.common.connected
        self._keep_at_hand(live)
        return live

    async def move(self, live: LiveSession, mode: str | None, reason: str) -> Session | Problem | None:
        """Move the session to another mode (None is ROOT). Returns where it was before, None if it was there already,
        or why it cannot move."""
        async with live.common.lock:
            return await self._move_if_changed(live, replace(live.session, mode=mode), reason)

    async def add_tools(self, live: LiveSession, added: tuple[str, ...]) -> Session | Problem | None:
        """Change which tools the session added to its list. Returns what `move` returns."""
        async with live.common.lock:
            return await self._move_if_changed(live, replace(live.session, added=added), "request_tools")

    async def change_phase(
        self, live: LiveSession, before: str | None, after: str | None, reason: str
    ) -> Session | Problem | None:
        """Move the run from one phase to another, unless it has moved elsewhere meanwhile. Returns what `move`
        returns."""
        async with live.common.lock:
            if live.session.phase != before:
                return build_busy_problem(f"phase `{live.session.phase}`")
            return await self._move_if_changed(live, replace(live.session, phase=after), reason)

    async def _move_if_changed(self, live: LiveSession, after: Session, reason: str) -> Session | Problem | None:
        if live.session == after:
            return None
        if live.passing:
            before, live.session = live.session, after
            return before
        if not live.written:
            await self._ensure_written(live)
            after = replace(live.session, mode=after.mode, phase=after.phase, added=after.added)
        before = live.session
        return await self._write_move(live, after, reason) or before

    async def begin_next_run(self, live: LiveSession, reason: str) -> None:
        """The run is over; what follows belongs to a new one."""
        before = live.session
        after = self._make_next_run(before)
        live.common.begin_run(after.run)
        await self.advance(live, before, after, reason)
        if not before.place:
            connected = {one.session.id for one in self._connected.values()}
            settle = partial(settle_abandoned_questions, principal=before.principal, connected=connected)
            await self._store.write(settle)

    def _make_next_run(self, session: Session) -> Session:
        run = self._new_id()
        return replace(session, run=run, steps=0, stage=Stage.ACT, phase=None, reasoned=False, added=())

    async def advance(self, live: LiveSession, before: Session, after: Session, reason: str) -> Problem | None:
        """Advance the run to another stage, or to another run. Recorded even if the session itself is not stored."""
        async with live.common.lock:
            if live.written:
                return await self._write_move(live, after, reason, before)
            live.session = after
            why = {"reason": reason, "scope": "now"}
            await self._store.write(lambda tx: sessions.record_passing_move(tx, before, after, why))
        return None

    async def ensure_handle(self, live: LiveSession) -> str:
        """Return the handle that finds this live session again, from any connection of the same principal."""
        if live.passing:
            live.passing = False
            self._register(live)
        self._keep_at_hand(live)
        await self._ensure_written(live)
        assert live.handle is not None
        if await self._store.find_session_by_handle(digest_handle(live.handle)) is None:
            # It expired while the connection was idle. A handle that nobody used for a day must not come back to life.
            live.handle, live.written = self._new_handle(), False
            await self._ensure_written(live)
        return live.handle

    async def refresh(self) -> list[LiveSession]:
        """Take over what other processes changed; return the live sessions whose list is different now.

        Those without a connection are left out: nobody sees their lists, and every use of their handles asks the store.
        """
        moved: list[LiveSession] = []
        for live in list(self._connected.values()):
            held = self._holds.find_hold(live.session)
            if held is not None and held.stopped and not live.written and live.session.held != held:
                # `stop` starts new runs in the store, which does not know this session.
                live.session = self._make_next_run(live.session)
                live.common.begin_run(live.session.run)
            live.set_hold(held)
            paused, live.turned = live.turned, False
            current = await self._store.find_session(live.session.key) if live.written else None
            if current is not None and current.version > live.session.version:
                elsewhere = current.listing_key != live.session.listing_key
                live.adopt_stored_session(current)
                paused |= elsewhere
            if paused:
                moved.append(live)
        return moved

    def _keep_at_hand(self, live: LiveSession) -> None:
        """Keep it in memory for the next call with its handle; the least recently used go first."""
        if live.session.key in self._connected:
            return
        self._loose.pop(live.session.key, None)
        self._loose[live.session.key] = live
        if len(self._loose) > MOST_LOOSE:
            del self._loose[next(iter(self._loose))]

    async def _write_move(
        self, live: LiveSession, after: Session, reason: str, before: Session | None = None
    ) -> Problem | None:
        """`before`: the session as it was, if its row does not show that: a stage can follow from the posture."""
        moved = await self._store.move_session(before or live.session, after, reason)
        if isinstance(moved, Session):
            was, live.session = before or live.session, replace(moved, steps=after.steps)
            if sessions.get_run_progress(was) != sessions.get_run_progress(moved):
                await self._update_other_places(live)
            return None
        current = moved.current
        if not isinstance(current, Session):
            # The row was deleted; the next move writes it again.
            live.written = False
            return UNKNOWN
        live.adopt_stored_session(current)
        return build_busy_problem(format_place(current.mode))

    async def _update_other_places(self, live: LiveSession) -> None:
        """The run advanced, and with it every place of the session."""
        for one in live.common.live_sessions:
            stored = await self._store.find_session(one.session.key) if one is not live and one.written else None
            if stored is not None and stored.version > one.session.version:
                one.adopt_stored_session(stored)

    async def _ensure_written(self, live: LiveSession) -> None:
        if not live.written:
            live.handle = live.handle or self._new_handle()
            live.adopt_stored_session(await self._store.put_session(live.session, digest_handle(live.handle)))
            live.written = True


def build_busy_problem(where: str) -> Problem:
    return Problem(
        Code.BUSY,
        f"another call moved this session to {where} at the same time.",
        "Call `menu_list` to see where you are, then try again.",
    )


def digest_handle(handle: str) -> str:
    """Return what is stored instead of a handle, so that the state file gives nobody access to a session."""
    return hashlib.sha256(handle.encode("utf-8", "surrogatepass")).hexdigest()


def format_place(mode: str | None) -> str:
    return "ROOT" if mode is None else f"`{mode}`"
