"""Is a line kept for each call as long as it should be, and no longer?"""

from functools import partial

import pytest

from mcp_server.state import glances
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.store import Store
from tests.state.parts import HOUR, Place

pytestmark = pytest.mark.anyio


def fill(tx: Transaction, first: int, last: int) -> None:
    for seq in range(first, last + 1):
        glances.record_glance(tx, seq, f"bash `echo {seq}`")


async def test_lines_of_the_rows_asked_for(place: Place, store: Store) -> None:
    await store.write(partial(fill, first=1, last=5))
    load = partial(glances.load_glances, seqs=[4, 2, 9], now=place.clock.now_ns())
    assert await store.read(load) == {2: "bash `echo 2`", 4: "bash `echo 4`"}
    assert await store.read(partial(glances.load_glances, seqs=[], now=0)) == {}


async def test_old_ones_are_neither_shown_nor_kept(place: Place, store: Store) -> None:
    """Of the table `glances`."""
    await store.write(partial(fill, first=1, last=3))
    place.clock.now += 14 * 24 * HOUR + 1
    assert await store.read(partial(glances.load_glances, seqs=[1, 2, 3], now=place.clock.now)) == {}
    await store.write(partial(fill, first=499, last=500))
    rows = await store.read(lambda view: view.fetch_all("SELECT seq FROM glances ORDER BY seq"))
    assert [row["seq"] for row in rows] == [499, 500]


async def test_only_the_newest_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glances, "MAX_LINES", 10)
    await store.write(partial(fill, first=1, last=500))
    rows = await store.read(lambda view: view.fetch_all("SELECT seq FROM glances ORDER BY seq"))
    assert [row["seq"] for row in rows] == list(range(491, 501))
