"""Is a stream read as fast as a server can bear, and a crowd of them no faster than that?"""

import os
from collections.abc import Generator
from itertools import pairwise
from threading import Thread

import pytest

from mcp_server.guards.processes import streams
from mcp_server.guards.processes.streams import APART, AT_ONCE, LEAST_PER_SECOND, LOUD, PER_SECOND, RECENT, Pace, Source

pytestmark = pytest.mark.anyio
MEGABYTE = 1 << 20


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> Generator[list[float], None, None]:
    """How long was waited, without waiting: the clock goes on by what is slept, and by nothing else."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(streams.anyio, "sleep", sleep)
    monkeypatch.setattr(streams.time, "monotonic", lambda: sum(found))
    yield found


def fill(end: int, much: int) -> Thread:
    def write() -> None:
        with os.fdopen(end, "wb") as file:
            for at in range(0, much, LOUD):
                file.write(at.to_bytes(8) * (LOUD // 8))

    thread = Thread(target=write)
    thread.start()
    return thread


async def drink(source: Source) -> bytes:
    said = bytearray()
    while piece := await source.piece():
        said += piece
    return bytes(said)


async def test_one_alone_brings_all_of_it_in_order_and_is_held_back_after_the_first_megabytes(
    slept: list[float],
) -> None:
    ours, theirs = os.pipe()
    thread = fill(theirs, AT_ONCE + 2 * MEGABYTE)
    said = await drink(Source(ours, Pace()))
    thread.join()
    assert said == b"".join(at.to_bytes(8) * (LOUD // 8) for at in range(0, AT_ONCE + 2 * MEGABYTE, LOUD))
    assert sum(slept) == pytest.approx(2 * MEGABYTE / PER_SECOND, rel=0.4)


@pytest.mark.parametrize("many", [4, 24])
async def test_the_more_are_loud_the_less_each_brings(slept: list[float], many: int) -> None:
    pace, pipes = Pace(), [os.pipe() for _ in range(many)]
    threads = [fill(theirs, MEGABYTE) for _, theirs in pipes]
    sources = [Source(ours, pace) for ours, _ in pipes]
    left = set(sources)
    while left:
        for one in list(left):
            if not await one.piece():
                left.discard(one)
    for thread in threads:
        thread.join()
    expected = max(MEGABYTE - AT_ONCE / many, 0) / max(PER_SECOND / many**2, LEAST_PER_SECOND)
    # Each is counted once it is loud; the first ones are so while there are few. The clock is the same for all of them.
    assert sum(slept) == pytest.approx(expected, rel=0.5, abs=0.4)


async def test_what_somebody_left_who_has_ended_comes_at_once(slept: list[float]) -> None:
    ours, theirs = os.pipe()
    source = Source(ours, Pace())
    thread = fill(theirs, AT_ONCE + MEGABYTE)
    while not slept:
        assert await source.piece()
    source.hurry()
    slept.clear()
    assert await drink(source)
    thread.join()
    assert not slept


async def test_who_is_quiet_is_no_longer_counted() -> None:
    pace = Pace()
    first, second = (Source(os.open(os.devnull, os.O_RDONLY), pace) for _ in range(2))
    assert (pace.crowd(1.0, first), pace.crowd(1.5, second), pace.crowd(1.0 + RECENT + 0.1)) == (1, 2, 1)
    first.close()
    second.close()
    assert pace.crowd(1.5, first) == 1


def test_in_a_crowd_everybody_wakes_at_a_moment_of_its_own() -> None:
    pace = Pace()
    moments = [pace.moment(10.0, 10.2) for _ in range(30)]
    assert moments == sorted(moments)
    assert moments[0] >= 10.2
    assert min(later - sooner for sooner, later in pairwise(moments)) == pytest.approx(APART)
    assert pace.moment(20.0, 20.0) < 20.0 + 2 * APART, "what is over takes no room"
