"""Where does each agent stand? The seats of everybody, how they move, and the handles that find them again.

A session is written down the first time it enters a mode; one that never does leaves no trace.

Agents that share a connection each enter their modes without a handle. So whoever enters one there gets a further
place, with a mode, reads and todos of its own, and the handles given out before go on leading where they led. The run
is one for all of them: its stage, its phase, what it may spend and what it waits for. A further place is a way around
none of that.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from mcp_server.calls.live_sessions import LiveSession, SharedSession
from mcp_server.calls.pauses import Holds
from mcp_server.model.files import Stamp
from mcp_server.model.posture import Stage
from mcp_server.model.results import Code, Problem
from mcp_server.model.sessions import Session
from mcp_server.state import sessions
from mcp_server.state.store import Store

HANDLE_LIFE = "24 hours from its last use"
MOST_LOOSE = 1000
"""Seats without a connection that are kept at hand; what falls out of them is found again in the store."""

UNKNOWN = Problem(
    Code.UNKNOWN_HANDLE,
    f"this menu handle is not known; a handle lives {HANDLE_LIFE}, and only for who got it.",
    "Call `menu_enter` with the mode you need; it answers with a new handle.",
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
        """`left` is told the session whose things nobody will ask for again."""
        self._store = store
        self._holds = holds
        self._left = left
        self._new_id = new_id
        self._new_handle = new_handle
        self._connected: dict[str, LiveSession] = {}
        self._loose: dict[str, LiveSession] = {}
        self._common: WeakValueDictionary[str, SharedSession] = WeakValueDictionary()

    def open(self, principal: str, pinned: str | None = None, flat: bool = False, passing: bool = False) -> LiveSession:
        """A fresh seat at ROOT, or in the one mode an endpoint serves."""
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
        """Somebody may come back to it, and to its session."""
        self._common[live.session.id] = live.common
        live.common.add(live)

    async def claim(self, live: LiveSession) -> LiveSession:
        """The place for who shows no handle: this one if nobody claimed it yet, else a further one. Whoever comes at
        the same moment finds it claimed: nothing is waited for in between."""
        if not live.told:
            live.told = True
            return live
        there = await self.add_place(live)
        there.told = True
        return there

    async def add_place(self, live: LiveSession) -> LiveSession:
        """A further place of the session, at ROOT, where nothing was read and nothing is to be done yet."""
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
        """The place for who wants a mode and shows no handle: the newest one there, else this one if nobody was told
        of it, else a further one."""
        back = next((one for one in reversed(live.common.live_sessions) if one.session.mode == mode), None)
        return back or (await self.add_place(live) if live.told else live)

    def switch(self, here: LiveSession, there: LiveSession) -> LiveSession:
        """The connection that stood here stands there from now on."""
        if self._connected.pop(here.session.key, None) is not None:
            self._loose.pop(there.session.key, None)
            self._connected[there.session.key] = there
            self._keep_at_hand(here)
        return there

    def close(self, live: LiveSession) -> None:
        """The connection is gone. What was written stays and is found again by its handle."""
        self._connected.pop(live.session.key, None)
        live.common.connected = False
        if not live.common.found_again:
            self._left(live.session.id)

    async def find_by_handle(self, handle: str, principal: str) -> LiveSession | Problem:
        """The seat a handle belongs to. Made up, expired and somebody else's all get the same answer."""
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
        """Put the session into another mode (None is ROOT): where it stood before, None where it was there already,
        or why it could not be."""
        async with live.common.lock:
            return await self._move_if_changed(live, replace(live.session, mode=mode), reason)

    async def change_phase(
        self, live: LiveSession, before: str | None, after: str | None, reason: str
    ) -> Session | Problem | None:
        """From one phase of the run to another, unless it is in a third one by now; answers as `move` does."""
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
            after = replace(live.session, mode=after.mode, phase=after.phase)
        before = live.session
        return await self._write_move(live, after, reason) or before

    async def begin_next_run(self, live: LiveSession, reason: str) -> None:
        """The run is over; what comes next belongs to another one."""
        before = live.session
        after = self._make_next_run(before)
        live.common.begin_run(after.run)
        await self.advance(live, before, after, reason)

    def _make_next_run(self, session: Session) -> Session:
        return replace(session, run=self._new_id(), steps=0, stage=Stage.ACT, phase=None, reasoned=False)

    async def advance(self, live: LiveSession, before: Session, after: Session, reason: str) -> Problem | None:
        """The run goes on to another stage, or to another run; on record also where the session is not."""
        async with live.common.lock:
            if live.written:
                return await self._write_move(live, after, reason, before)
            live.session = after
            why = {"reason": reason, "scope": "now"}
            await self._store.write(lambda tx: sessions.record_passing_move(tx, before, after, why))
        return None

    async def ensure_handle(self, live: LiveSession) -> str:
        """The handle that leads back to this seat, from any connection of the same principal."""
        if live.passing:
            live.passing = False
            self._register(live)
        self._keep_at_hand(live)
        await self._ensure_written(live)
        assert live.handle is not None
        if await self._store.find_session_by_handle(digest_handle(live.handle)) is None:
            # It expired while the connection stood idle; what nobody used for a day is not to come back to life.
            live.handle, live.written = self._new_handle(), False
            await self._ensure_written(live)
        return live.handle

    async def refresh(self) -> list[LiveSession]:
        """Take over what another process changed; the seats that now stand elsewhere.

        Not the loose ones: nobody looks at their lists, and their handles are asked about anew each time.
        """
        moved: list[LiveSession] = []
        for live in list(self._connected.values()):
            held = self._holds.find_hold(live.session)
            if held is not None and held.stopped and not live.written and live.session.held != held:
                live.session = self._make_next_run(live.session)
                live.common.begin_run(live.session.run)
            live.set_hold(held)
            paused, live.turned = live.turned, False
            current = await self._store.find_session(live.session.key) if live.written else None
            if current is not None and current.version > live.session.version:
                elsewhere = get_listing_key(current) != get_listing_key(live.session)
                live.adopt_stored_session(current)
                paused |= elsewhere
            if paused:
                moved.append(live)
        return moved

    def _keep_at_hand(self, live: LiveSession) -> None:
        """At hand for the next call with its handle, the ones used last longest."""
        if live.session.key in self._connected:
            return
        self._loose.pop(live.session.key, None)
        self._loose[live.session.key] = live
        if len(self._loose) > MOST_LOOSE:
            del self._loose[next(iter(self._loose))]

    async def _write_move(
        self, live: LiveSession, after: Session, reason: str, before: Session | None = None
    ) -> Problem | None:
        """`before`: how the session stood, where its row does not say it: a stage that follows from the posture."""
        moved = await self._store.move_session(before or live.session, after, reason)
        if isinstance(moved, Session):
            was, live.session = before or live.session, replace(moved, steps=after.steps)
            if sessions.get_run_progress(was) != sessions.get_run_progress(moved):
                await self._update_other_places(live)
            return None
        current = moved.current
        if not isinstance(current, Session):
            # Somebody took the row away; what is not remembered is put down again by the next move.
            live.written = False
            return UNKNOWN
        live.adopt_stored_session(current)
        return build_busy_problem(format_place(current.mode))

    async def _update_other_places(self, live: LiveSession) -> None:
        """The run went on, and with it every place of the session."""
        for one in live.common.live_sessions:
            stored = await self._store.find_session(one.session.key) if one is not live and one.written else None
            if stored is not None and stored.version > one.session.version:
                one.adopt_stored_session(stored)

    async def _ensure_written(self, live: LiveSession) -> None:
        if not live.written:
            live.handle = live.handle or self._new_handle()
            live.adopt_stored_session(await self._store.put_session(live.session, digest_handle(live.handle)))
            live.written = True


@dataclass(frozen=True)
class SeenBy:
    """What a session has read: it changes nothing it has not seen as it is now. Nobody (``) has seen anything."""

    store: Store
    session: str = ""

    def remember(self, path: str, stamp: Stamp) -> None:
        self.store.remember_seen(self.session, path, stamp)

    def recall(self, path: str) -> Stamp | None:
        return self.store.recall_seen(self.session, path)


def get_listing_key(session: Session) -> tuple[object, ...]:
    """What a session's list depends on."""
    return session.mode, session.stage, session.phase, session.reasoned


def build_busy_problem(where: str) -> Problem:
    return Problem(
        Code.BUSY,
        f"another call moved this session to {where} at the same moment.",
        "Look with `menu_list` and try again.",
    )


def digest_handle(handle: str) -> str:
    """What is stored in a handle's place, so that the state file does not open anybody's session."""
    return hashlib.sha256(handle.encode("utf-8", "surrogatepass")).hexdigest()


def format_place(mode: str | None) -> str:
    return "ROOT" if mode is None else f"`{mode}`"
