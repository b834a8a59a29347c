"""Is the beginning of a run folded when it has grown by so much, and less often the longer it gets?"""

import pytest

from mcp_server.calls.summaries import CHARACTERS_PER_TOKEN, PER_CALL, SummarySchedule
from mcp_server.model.policy import SummaryLimits
from mcp_server.state.store import Store
from tests.state.parts import SESSION, intended, intent, outcome

pytestmark = pytest.mark.anyio


async def fold_points(store: Store, limits: SummaryLimits, calls: int, characters: int = 0) -> list[int]:
    """After which calls of one run its beginning was folded."""
    schedule = SummarySchedule(store, limits)
    folded: list[int] = []
    for number in range(1, calls + 1):
        seq = await intended(store, intent())
        store.record_outcome(outcome(seq))
        if schedule.count_call(SESSION.run, seq, characters):
            assert await schedule.fold_run(SESSION.run) is not None
            folded.append(number)
    return folded


async def test_messages_are_counted_and_the_distance_doubles(store: Store) -> None:
    limits = SummaryLimits(messages=8, tokens=10**9, keep=4)
    first, second, *_ = folded = await fold_points(store, limits, 40)
    assert first == 8 // PER_CALL + 1
    assert second - first > first - 1
    assert len(folded) < 5


async def test_tokens_are_counted_too(store: Store) -> None:
    limits = SummaryLimits(messages=10**9, tokens=100, keep=2)
    assert (await fold_points(store, limits, 3, 60 * CHARACTERS_PER_TOKEN))[:1] == [2]


async def test_a_short_run_is_never_folded(store: Store) -> None:
    assert await fold_points(store, SummaryLimits(messages=40, tokens=20_000, keep=20), 10, 10) == []
