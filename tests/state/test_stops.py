"""Does an order reach every server that runs something, and is each answer kept until it was read?"""

import asyncio
from functools import partial

import pytest

from mcp_server.state import stops
from mcp_server.state.stops import IssuedOrder, StopAnswer, StopOrder
from mcp_server.state.store import Store
from tests.clients.served import PATIENCE
from tests.state.parts import HOUR, Hands, Place

pytestmark = pytest.mark.anyio
ORDER = StopOrder("o1", "me", None, ends=True, reason="enough")


async def give(store: Store, order: StopOrder = ORDER) -> IssuedOrder:
    return await store.write(partial(stops.give_order, order=order))


@pytest.mark.parametrize(
    ("order", "principal", "session", "covered"),
    [
        (ORDER, "me", "s1", True),
        (ORDER, "you", "s1", False),
        (StopOrder("o", "me", "s1", True, ""), "me", "s1", True),
        (StopOrder("o", "me", "s1", True, ""), "me", "s2", False),
        (StopOrder("o", "", None, True, ""), "you", "s2", True),
    ],
)
def test_whom_an_order_is_about(order: StopOrder, principal: str, session: str, covered: bool) -> None:
    assert order.covers(principal, session) is covered


async def test_a_server_that_runs_something_is_asked_and_one_that_left_is_not(store: Store) -> None:
    assert (await give(store)).servers == ()
    assert await store.write(stops.enlist_server) == {"o1"}, "what was ordered before is none of its business"
    given = await give(store, StopOrder("o2", "me", "s1", ends=False, reason=""))
    (server,) = given.servers
    assert [one.id for one in await store.read(stops.load_orders)] == ["o1", "o2"]
    await store.write(stops.discharge_server)
    assert (await give(store)).servers == ()
    assert server


async def test_an_answer_is_kept_until_it_was_read(store: Store) -> None:
    await store.write(stops.enlist_server)
    (server,) = (await give(store)).servers
    answer = StopAnswer(("`bash`",), (), ("`wait` of you",))
    await store.write(partial(stops.write_answer, id="o1", answer=answer))
    assert await store.read(partial(stops.load_answers, id="o1")) == {server: answer}
    assert await store.read(partial(stops.load_answers, id="o2")) == {}
    await store.write(partial(stops.forget_answers, id="o1"))
    assert await store.read(partial(stops.load_answers, id="o1")) == {}


async def test_who_watches_hears_of_an_order(place: Place, hands: Hands) -> None:
    one, other = await hands.open(place), await hands.open(place)
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        loop.call_soon_threadsafe(heard.set)

    forget = one.on_change(tell)
    await give(other)
    async with asyncio.timeout(PATIENCE):
        await heard.wait()
    forget()


async def test_an_order_nobody_waits_for_any_more_is_forgotten(place: Place, store: Store) -> None:
    await give(store)
    place.clock.now += 25 * HOUR
    await give(store, StopOrder("o2", "me", None, ends=True, reason=""))
    assert [one.id for one in await store.read(stops.load_orders)] == ["o2"]
