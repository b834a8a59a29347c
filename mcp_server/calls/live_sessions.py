"""What is a live session? One place of a session in this process: a connection's, a stdio process's, or a handle's.

Its `Session` is a frozen value that is replaced when it moves.
"""

import asyncio
from dataclasses import dataclass, field
from weakref import ref

from msgspec.structs import replace

from mcp_server.calls.budgets import BudgetMeter
from mcp_server.model.sessions import Hold, Holder, Session

MOST_PLACES = 20
"""How many places of one session it keeps track of; each place sees as many of the others."""


@dataclass(eq=False)
class SharedSession:
    """What all the places of one session share in this process."""

    run: str
    spending: BudgetMeter = field(default_factory=BudgetMeter)
    connected: bool = False
    found_again: bool = False
    """A caller returned to it by a handle, and may do so again after its connection is gone."""
    at_hand: tuple["ref[LiveSession]", ...] = ()
    """The places, newest last, as weak references: `Sessions` keeps them by connection and by handle."""
    places: int = 0
    """How many were added to the first."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One move at a time: two that cross would each announce a list that the other has already replaced."""

    def begin_run(self, run: str) -> None:
        """Switch to that run. A new run has spent nothing yet."""
        if run != self.run:
            self.run, self.spending = run, BudgetMeter()

    def add(self, live: "LiveSession") -> None:
        self.at_hand = (*(one for one in self.at_hand if one() is not None), ref(live))[-MOST_PLACES:]

    @property
    def live_sessions(self) -> list["LiveSession"]:
        return [live for one in self.at_hand if (live := one()) is not None]


@dataclass(eq=False)
class LiveSession:
    session: Session
    common: SharedSession
    handle: str | None = None
    written: bool = False
    passing: bool = False
    """Nothing can return to this live session: its connection keeps no session, and the call carries no handle."""
    told: bool = False
    """A caller has its handle, or is about to get it. From then on only a call with that handle moves it."""
    turned: bool = False
    """Paused or resumed since the client was last told, whichever process noticed."""
    overspent: BudgetMeter | None = None
    """What the run had spent when its budget paused it."""

    @property
    def spending(self) -> BudgetMeter:
        return self.common.spending

    def adopt_stored_session(self, stored: Session) -> None:
        """Take over the stored session. The store holds neither what this connection's list looks like nor the hold."""
        self.common.begin_run(stored.run)
        self.session = replace(stored, flat=self.session.flat, held=self.session.held)

    def set_hold(self, held: Hold | None) -> None:
        """Pause or resume."""
        before = self.session.held
        if before == held:
            return
        if held is not None and held.by is Holder.BUDGET:
            self.overspent = self.spending
        elif before is not None and before.by is Holder.BUDGET and self.overspent is self.spending:
            # Resuming a run that had spent its budget gives it a new one: one for all its places together.
            self.common.spending = BudgetMeter()
        self.session = replace(self.session, held=held)
        self.turned = True
