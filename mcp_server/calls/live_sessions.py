"""What is a seat? One place of a session: that of a connection, of a stdio process, or of nothing but a handle.

Its session is a frozen value that is replaced when it moves.
"""

import asyncio
from dataclasses import dataclass, field, replace
from weakref import ref

from mcp_server.calls.budgets import BudgetMeter
from mcp_server.model.sessions import Hold, Holder, Session

MOST_PLACES = 20
"""Places of one session that it knows of; the same goes for them."""


@dataclass(eq=False)
class SharedSession:
    """What all the places of one session have in common, here in this process."""

    run: str
    spending: BudgetMeter = field(default_factory=BudgetMeter)
    connected: bool = False
    found_again: bool = False
    """Somebody came back to it by a handle, and may do so again when its connection is gone."""
    at_hand: tuple["ref[LiveSession]", ...] = ()
    """The places, the newest last. Only looked at: they are kept where the connections are, and the handles."""
    places: int = 0
    """How many were made beside the first."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One move at a time: two that cross would each announce a list the other has already replaced."""

    def begin_run(self, run: str) -> None:
        """Go on with that run, which has spent nothing yet where it is another one."""
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
    """Nobody will come back to this seat: a call over a connection without memory, carrying no handle."""
    told: bool = False
    """Somebody was given its handle, or is about to be: from then on it stays where it is, for whoever does not show
    that handle."""
    turned: bool = False
    """Paused or let go on since everybody was told last, whoever it was that found out."""
    overspent: BudgetMeter | None = None
    """What the run had spent when that paused it."""

    @property
    def spending(self) -> BudgetMeter:
        return self.common.spending

    def adopt_stored_session(self, stored: Session) -> None:
        """Stand where the store says. How the list of this connection looks is not written down, nor what holds it."""
        self.common.begin_run(stored.run)
        self.session = replace(stored, flat=self.session.flat, held=self.session.held)

    def set_hold(self, held: Hold | None) -> None:
        """Paused, or let go on."""
        before = self.session.held
        if before == held:
            return
        if held is not None and held.by is Holder.BUDGET:
            self.overspent = self.spending
        elif before is not None and before.by is Holder.BUDGET and self.overspent is self.spending:
            # Whoever lets a run go on that had spent its budget gives it another: one, however many places it has.
            self.common.spending = BudgetMeter()
        self.session = replace(self.session, held=held)
        self.turned = True
