"""Is a stream read as fast as a server can bear, and a crowd of them no faster than that?"""

import heapq
import os
from collections.abc import Generator
from itertools import pairwise
from threading import Thread

import anyio
import anyio.lowlevel
import pytest

from mcp_server.guards.processes import streams
from mcp_server.guards.processes.streams import APART, AT_ONCE, LOUD, PER_SECOND, RECENT, Pace, Source

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
    while piece := await source.read_piece():
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


class Clock:
    """A clock that goes on, to when the next one wakes, as soon as all who live sleep."""

    def __init__(self, living: int) -> None:
        self.now, self.living = 0.0, living
        self._sleeping: list[tuple[float, int, anyio.Event]] = []

    async def sleep(self, seconds: float) -> None:
        woken = anyio.Event()
        heapq.heappush(self._sleeping, (self.now + seconds, id(woken), woken))
        self._go_on()
        await woken.wait()

    def died(self) -> None:
        self.living -= 1
        self._go_on()

    def _go_on(self) -> None:
        if self._sleeping and len(self._sleeping) == self.living:
            self.now, _, woken = heapq.heappop(self._sleeping)
            woken.set()


@pytest.mark.parametrize(("many", "seconds"), [(1, 0), (2, 0), (4, 0), (8, 4), (24, 180)])
async def test_the_more_are_loud_the_less_each_brings(
    monkeypatch: pytest.MonkeyPatch, many: int, seconds: float
) -> None:
    """Each brings its megabyte: its share of what they may bring at once, and the rest as slowly as there are many."""
    clock, pace, everybody = Clock(many), Pace(), anyio.Event()
    heard: set[int] = set()
    monkeypatch.setattr(streams.anyio, "sleep", clock.sleep)
    monkeypatch.setattr(streams.time, "monotonic", lambda: clock.now)

    async def brought(ours: int) -> None:
        source = Source(ours, pace)
        first = await source.read_piece()
        heard.add(ours)
        if len(heard) == many:
            everybody.set()
        await everybody.wait()
        assert len(first + await drink(source)) == MEGABYTE
        clock.died()

    pipes = [os.pipe() for _ in range(many)]
    threads = [fill(theirs, MEGABYTE) for _, theirs in pipes]
    async with anyio.create_task_group() as tasks:
        for ours, _ in pipes:
            tasks.start_soon(brought, ours)
    for thread in threads:
        thread.join()
    assert clock.now == pytest.approx(seconds, rel=0.2, abs=0.4)


async def test_a_crowd_is_held_back_though_no_one_of_it_brings_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them together bring what a server can read, 4 KB every 600 µs; each of them has a small part in that."""
    many, each, reads = 24, MEGABYTE // 2, 0
    clock, pace = Clock(many), Pace()
    left = dict.fromkeys(range(many), each)

    def read(descriptor: int, _most: int) -> bytes:
        nonlocal reads
        reads += 1
        left[owners[descriptor]] -= 4096
        return b"y" * 4096 if left[owners[descriptor]] >= 0 else b""

    async def drained(source: Source) -> None:
        while await source.read_piece():
            await anyio.lowlevel.checkpoint()
        clock.died()

    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(many)]
    owners = {descriptor: number for number, descriptor in enumerate(descriptors)}
    monkeypatch.setattr(streams.os, "read", read)
    monkeypatch.setattr(streams.anyio, "sleep", clock.sleep)
    monkeypatch.setattr(streams.time, "monotonic", lambda: clock.now + reads * 0.0006)
    async with anyio.create_task_group() as tasks:
        for descriptor in descriptors:
            tasks.start_soon(drained, Source(descriptor, pace))
    assert clock.now > 30


async def test_who_prints_without_end_lets_everybody_else_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = turns = 0

    def read(_descriptor: int, _most: int) -> bytes:
        nonlocal reads
        reads += 1
        return b"y" * 4096

    async def somebody_else() -> None:
        nonlocal turns
        while reads < 500:
            turns += 1
            await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(streams.os, "read", read)
    # Slower than what one may bring, so that it never has to wait.
    monkeypatch.setattr(streams.time, "monotonic", lambda: reads * 0.001)
    source = Source(os.open(os.devnull, os.O_RDONLY), Pace())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(somebody_else)
        while reads < 500:
            await source.read_piece()
    source.close()
    assert turns > 400


async def test_what_somebody_left_who_has_ended_comes_at_once(slept: list[float]) -> None:
    ours, theirs = os.pipe()
    source = Source(ours, Pace())
    thread = fill(theirs, AT_ONCE + MEGABYTE)
    while not slept:
        assert await source.read_piece()
    source.stop_pacing()
    slept.clear()
    assert await drink(source)
    thread.join()
    assert not slept


async def test_who_is_quiet_is_no_longer_counted() -> None:
    pace = Pace()
    first, second = (Source(os.open(os.devnull, os.O_RDONLY), pace) for _ in range(2))
    assert (pace.count_loud(1.0, first), pace.count_loud(1.5, second), pace.count_loud(1.0 + RECENT + 0.1)) == (1, 2, 1)
    first.close()
    second.close()
    assert pace.count_loud(1.5, first) == 1


async def test_in_a_crowd_everybody_wakes_at_a_moment_of_its_own_and_is_one_of_it_until_then() -> None:
    pace = Pace()
    crowd = [Source(os.open(os.devnull, os.O_RDONLY), pace) for _ in range(30)]
    for one in crowd:
        pace.count_loud(10.0, one)
    moments = [pace.reserve_wake_time(10.0, 10.2 + RECENT, one) for one in crowd]
    assert moments == sorted(moments)
    assert moments[0] >= 10.2 + RECENT
    assert min(later - sooner for sooner, later in pairwise(moments)) == pytest.approx(APART)
    assert pace.count_loud(moments[0]) == len(crowd)
    assert pace.reserve_wake_time(20.0, 20.0, crowd[0]) < 20.0 + 2 * APART, "what is over takes no room"
    for one in crowd:
        one.close()
