"""Is the report of a run kept once, and found by those it belongs to?"""

from functools import partial

import pytest

from mcp_server.model.reports import RunReport
from mcp_server.state.runs import find_report, put_report
from mcp_server.state.store import Store
from tests.state.parts import Place

pytestmark = pytest.mark.anyio
FIRST = RunReport("r1", "me", "s1", "success", "done", issues=("one",))


async def test_reports_are_found_by_run_and_by_person(place: Place, store: Store) -> None:
    for report in (FIRST, RunReport("r2", "you", "s2", "failure", "given up")):
        await store.write(partial(put_report, report=report))
    mine = await store.read(partial(find_report, run="r1"))
    assert mine is not None
    assert (mine.summary, mine.issues, mine.at > 0) == ("done", ("one",), True)
    newest = await store.read(partial(find_report, run=None, principal="me"))
    assert newest == mine
    assert await store.read(partial(find_report, run="r2", principal="me")) is None
    with place.reader() as state:
        assert state.find_report("r1") == mine


async def test_what_was_found_once_is_not_written_over(store: Store) -> None:
    await store.write(partial(put_report, report=FIRST))
    await store.write(partial(put_report, report=RunReport("r1", "me", "s1", "failure", "changed")))
    kept = await store.read(partial(find_report, run="r1"))
    assert kept is not None and kept.summary == "done"
