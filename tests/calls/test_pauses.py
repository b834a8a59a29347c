"""Is a run held where the person said so, in every session of theirs and in nobody else's?"""

import pytest

from mcp_server.calls.pauses import Holds
from mcp_server.model.sessions import Hold, Holder, Session
from mcp_server.state.store import Store

pytestmark = pytest.mark.anyio
HERE, THERE, OTHERS = Session("s1", "me"), Session("s2", "me"), Session("s1", "you")


async def test_nothing_holds_before_the_state_was_read(store: Store) -> None:
    holds = Holds(store)
    assert holds.known is None
    assert holds.find_hold(HERE) is None
    await holds.refresh()
    assert holds.known == {}
    assert holds.find_hold(HERE) is None


async def test_a_pause_holds_that_session_alone(store: Store) -> None:
    holds = Holds(store)
    await holds.pause(HERE, Hold(Holder.PERSON, "wait"))
    found = holds.find_hold(HERE)
    assert found is not None
    assert (found.by, found.reason) == (Holder.PERSON, "wait")
    assert holds.find_hold(THERE) is None
    assert holds.find_hold(OTHERS) is None


def test_a_hold_on_every_session_comes_first(store: Store) -> None:
    holds = Holds(store)
    everywhere, one = Hold(Holder.PERSON, "all"), Hold(Holder.UNIT, "one")
    holds.known = {("me", ""): everywhere, ("me", "s1"): one}
    assert holds.find_hold(HERE) == holds.find_hold(THERE) == everywhere
    assert holds.find_hold(OTHERS) is None
