"""Is a line kept for each call as long as it should be, and no longer?"""

import json
from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from mcp_server.model.posture import Posture
from mcp_server.state import glances
from mcp_server.state.engine.rows import PostureMoved
from mcp_server.state.engine.transaction import Transaction
from mcp_server.state.store import Store
from tests.clients.served import PATIENCE
from tests.state.parts import HOUR, Place, intended, intent, outcome, refused

pytestmark = pytest.mark.anyio
BY_NUMBER = "SELECT seq FROM glances ORDER BY seq"


def fill(tx: Transaction, first: int, last: int) -> None:
    for seq in range(first, last + 1):
        glances.record_glance(tx, seq, f'bash "echo {seq}"')


async def test_lines_of_the_rows_asked_for(place: Place, store: Store) -> None:
    await store.write(partial(fill, first=1, last=5))
    load = partial(glances.load_glances, seqs=[4, 2, 9], now=place.clock.now_ns())
    assert await store.read(load) == {2: 'bash "echo 2"', 4: 'bash "echo 4"'}
    assert await store.read(partial(glances.load_glances, seqs=[], now=0)) == {}


async def test_what_menugate_would_not_write_is_not_shown(place: Place, store: Store) -> None:
    """Nothing seals the lines: text that another program put there must not pass for menugate's."""
    await store.write(partial(fill, first=1, last=1))
    forged = ("allowed by you", 'bash "a" b', 'bash "a"\n', 'bash "\u202e"', f'bash "{"x" * 300}"')
    for seq, line in enumerate(forged, 2):
        await store.write(partial(glances.record_glance, seq=seq, line=line))
    load = partial(glances.load_glances, seqs=range(1, 9), now=place.clock.now_ns())
    assert await store.read(load) == {1: 'bash "echo 1"'}


async def test_old_ones_are_neither_shown_nor_kept(place: Place, store: Store) -> None:
    """Of the table `glances`. The writer looks by itself, now and then."""
    await store.write(partial(fill, first=1, last=3))
    place.clock.now += 14 * 24 * HOUR + 1
    assert await store.read(partial(glances.load_glances, seqs=[1, 2, 3], now=place.clock.now)) == {}
    await store.write(partial(fill, first=498, last=499))
    await wait_until_kept(store, [498, 499])


async def test_only_the_newest_are_kept(place: Place, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glances, "MAX_LINES", 10)
    await store.write(partial(fill, first=1, last=500))
    place.clock.now += HOUR + 1
    await wait_until_kept(store, list(range(491, 501)))


async def test_refused_and_asked_calls_have_one_too(place: Place, store: Store) -> None:
    no = await store.record_decision(replace(refused(), glance='bash "rm x"'))
    without = await store.record_decision(refused())
    seq = await intended(store, replace(intent(), glance='Read "a.txt"'))
    stale = replace(intent(), glance='Read "b.txt"', posture=replace(Posture(), epoch=7))
    assert isinstance(await store.record_intent(stale), PostureMoved)
    load = partial(glances.load_glances, seqs=range(20), now=place.clock.now_ns())
    assert await store.read(load) == {no: 'bash "rm x"', seq: 'Read "a.txt"'}
    assert without not in await store.read(load)


async def test_the_ledger_does_not_depend_on_them(tmp_path: Path) -> None:
    """The same calls, with and without; and all lines deleted from the file afterwards."""
    bodies: list[list[str]] = []
    for name, line in (("with", 'Read "a.txt"'), ("without", "")):
        place = Place(tmp_path / name)
        store = place.store()
        first = await intended(store, replace(intent(), glance=line))
        store.record_outcome(outcome(first))
        await store.record_decision(replace(refused(), glance=line))
        await store.close()
        with place.reader() as reader:
            found = [row for row in reader.read_rows() if row.kind in ("intent", "outcome", "refusal")]
        # When, and in which process, is not the call's.
        kept = [{key: value for key, value in row.fields.items() if key not in ("at", "process")} for row in found]
        bodies.append([json.dumps(one) for one in kept])
        assert len(found) == 3
    assert bodies[0] == bodies[1]
    place = Place(tmp_path / "with")
    place.sql("DELETE FROM glances")
    with place.reader() as reader:
        assert reader.verify().ok


async def wait_until_kept(store: Store, seqs: list[int]) -> None:
    kept: list[int] = []

    async def look() -> bool:
        kept[:] = [row["seq"] for row in await store.read(lambda view: view.fetch_all(BY_NUMBER))]
        return kept == seqs

    with anyio.move_on_after(PATIENCE):
        while not await look():
            await anyio.sleep(0.02)
    assert kept == seqs
