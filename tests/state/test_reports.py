"""Is a run's report (the table `reports`) found again, written once, and found by its owner alone?"""

from dataclasses import replace
from functools import partial

import pytest

from mcp_server.model.reports import RunReport
from mcp_server.state.runs import find_report, put_report
from mcp_server.state.store import Store

pytestmark = pytest.mark.anyio
FIRST = RunReport("r1", "me", "s1", "success", "Done.", issues=("a test failed",))


async def find(store: Store, run: str | None, principal: str | None = None) -> RunReport | None:
    found = await store.read(partial(find_report, run=run, principal=principal))
    return found and replace(found, at=0)


async def test_a_report_is_found_by_its_run_and_the_newest_without_one(store: Store) -> None:
    second = replace(FIRST, run="r2", summary="Given up.")
    for report in (FIRST, second):
        await store.write(partial(put_report, report=report))
    assert await find(store, "r1") == FIRST
    assert await find(store, None) == second


async def test_a_report_is_never_overwritten(store: Store) -> None:
    for report in (FIRST, replace(FIRST, summary="Nothing to see.", issues=())):
        await store.write(partial(put_report, report=report))
    assert await find(store, "r1") == FIRST


async def test_a_report_is_found_by_its_owner_alone(store: Store) -> None:
    await store.write(partial(put_report, report=FIRST))
    assert await find(store, "r1", "me") == FIRST
    assert await find(store, "r1", "you") is None
