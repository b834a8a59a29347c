"""Does a run have one budget in all its places, and does a pause reach who has to be told?"""

import gc

from mcp_server.calls.live_sessions import MOST_PLACES, LiveSession, SharedSession
from mcp_server.model.sessions import Hold, Holder, Session

PERSON, BUDGET = Hold(Holder.PERSON, "wait"), Hold(Holder.BUDGET, "spent")


def open_place(common: SharedSession | None = None, run: str = "r1") -> LiveSession:
    live = LiveSession(Session("s1", "me", run=run), common or SharedSession(run))
    live.common.add(live)
    return live


def test_places_of_one_session_spend_together_until_the_run_is_another() -> None:
    one = open_place()
    other = open_place(one.common)
    assert one.spending is other.spending
    before = one.spending
    one.common.begin_run("r1")
    assert one.spending is before
    other.adopt_stored_session(Session("s1", "me", run="r2"))
    assert one.spending is other.spending is not before


def test_what_the_store_does_not_hold_stays() -> None:
    live = open_place()
    live.session = Session("s1", "me", run="r1", flat=True, held=PERSON)
    live.adopt_stored_session(Session("s1", "me", mode="swe", run="r1"))
    assert (live.session.mode, live.session.flat, live.session.held) == ("swe", True, PERSON)


def test_a_pause_is_told_once() -> None:
    live = open_place()
    live.set_hold(None)
    assert not live.turned
    live.set_hold(PERSON)
    assert (live.session.held, live.turned) == (PERSON, True)


def test_who_goes_on_after_a_spent_budget_has_a_new_one() -> None:
    live = open_place()
    spent = live.spending
    live.set_hold(BUDGET)
    live.set_hold(None)
    assert live.spending is not spent
    again = live.spending
    live.set_hold(PERSON)
    live.set_hold(None)
    assert live.spending is again, "a pause of the person's gives nothing back"


def test_places_that_are_gone_are_forgotten_and_no_more_than_some_are_kept() -> None:
    common = SharedSession("r1")
    places = [open_place(common) for _ in range(MOST_PLACES + 3)]
    assert common.live_sessions == places[-MOST_PLACES:]
    del places[:-1]
    gc.collect()
    assert common.live_sessions == places
