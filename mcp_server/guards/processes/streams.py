"""How fast is a child's output read? One descriptor at a time, no faster than the server can bear.

A program that prints without end is slowed down by its own full pipe; the server that reads it stays idle.
"""

import errno
import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from anyio import ClosedResourceError, wait_readable, wait_writable

CHUNK = 1 << 16
LOUD, AT_ONCE = 64 << 10, 4 << 20
"""After this many bytes a stream counts as loud; and the bytes that all loud streams together may bring unpaced."""
PER_SECOND, FEW, LEAST_PER_SECOND = 8 << 20, 2, 4 << 10
"""The rates after that: bytes a second for each of a few streams, how many are a few, and the minimum for each of many.
Reading makes room to print more, so without this a crowd that prints without end would slow down every answer."""
QUIET = 2 << 20
"""Bytes a second that all printing children together may bring without any of them counting as loud. A crowd can keep
the server busy although no single member brings much."""
RECENT = 3.0
"""Seconds after which a stream that was loud no longer counts."""
ACTIVE = 1.0
"""Seconds after which a stream that printed anything no longer counts."""
TURN = 0.05
"""Minimum seconds to leave a stream alone. A terminal yields little per read, and each read costs a wake-up."""
LEAST_CHUNK = 4096
MANY, APART = 4, 0.03
"""From this many loud streams on, they wake one at a time, this many seconds apart."""


@dataclass
class Pace:
    """Knows which of the streams read here are loud at the moment."""

    _heard: dict["Source", float] = field(default_factory=dict["Source", float])
    _printing: dict["Source", float] = field(default_factory=dict["Source", float])
    _taken: set[int] = field(default_factory=set[int])
    """The moments, in multiples of `APART`, at which a stream wakes."""

    def count_loud(self, now: float, loud: "Source | None" = None) -> int:
        """Count the loud streams, at least one; `loud` counts itself in."""
        if loud is not None:
            self._heard[loud] = now
        for one in [one for one, at in self._heard.items() if now - at > RECENT]:
            del self._heard[one]
        return max(len(self._heard), 1)

    def compute_quiet_rate(self, now: float, printing: "Source") -> float:
        """Bytes a second that each stream printing now may bring without counting as loud."""
        self._printing[printing] = now
        for one in [one for one, at in self._printing.items() if now - at > ACTIVE]:
            del self._printing[one]
        return QUIET / len(self._printing)

    def reserve_wake_time(self, now: float, due: float, loud: "Source") -> float:
        """Return when the stream may wake; until then it counts as loud. If there are many, each gets a moment of its
        own, because a crowd that wakes all at once delays everything else."""
        wake = due if self.count_loud(now) < MANY else self._find_free_moment(now, due)
        self._heard[loud] = wake
        return wake

    def _find_free_moment(self, now: float, due: float) -> float:
        self._taken = {number for number in self._taken if number * APART > now}
        number = math.ceil(due / APART)
        while number in self._taken:
            number += 1
        self._taken.add(number)
        return number * APART

    def forget(self, source: "Source") -> None:
        self._heard.pop(source, None)
        self._printing.pop(source, None)


class StreamEnd:
    """Our end of a child's pipe or terminal. It owns the descriptor, which is None once it is closed."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            anyio.notify_closing(descriptor)
            os.close(descriptor)


class Source(StreamEnd):
    def __init__(self, descriptor: int, pace: Pace) -> None:
        super().__init__(descriptor)
        self._pace = pace
        # Bytes beyond its rate, which decay at that rate, and when that was last worked out.
        self._level, self._at = 0.0, time.monotonic()
        # The same for the rate below which no stream is loud.
        self._noise = 0.0
        self._chunk = CHUNK
        self._over = False

    async def read_piece(self) -> bytes:
        """Return the next bytes, or none at the end."""
        while self._descriptor is not None:
            try:
                data = os.read(self._descriptor, self._chunk)
            except BlockingIOError:
                with suppress(ClosedResourceError):
                    await wait_readable(self._descriptor)
                continue
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                data = b""  # how a terminal reports that its other side is closed
            if not data:
                self.close()
            await self._wait_its_turn(len(data))
            return data
        return b""

    async def _wait_its_turn(self, brought: int) -> None:
        now = time.monotonic()
        passed, self._at, self._chunk = now - self._at, now, CHUNK
        rate = _compute_rate(self._pace.count_loud(now))
        self._level = max(self._level - passed * rate, 0) + brought
        # A stream held back by its rate is no less loud.
        quiet_rate = min(self._pace.compute_quiet_rate(now, self), rate)
        self._noise = max(min(self._noise, 2 * LOUD) - passed * quiet_rate, 0) + brought
        if self._over or self._noise < LOUD:
            return
        crowd = self._pace.count_loud(now, self)
        rate, free = _compute_rate(crowd), AT_ONCE / crowd
        # Do not hold against it what it brought while there were fewer.
        self._level = min(self._level, free + max(brought, 2 * rate * TURN))
        owed = (self._level - free) / rate
        if owed > 0:
            self._chunk = min(max(int(rate * TURN), LEAST_CHUNK), CHUNK)
        if owed > TURN:
            await anyio.sleep(self._pace.reserve_wake_time(now, now + owed, self) - now)
        else:
            # There is always more to read, so let the other tasks run in between.
            await anyio.lowlevel.checkpoint()

    def stop_pacing(self) -> None:
        """Stop pacing: the writer has ended, so the rest may be read at once."""
        self._over = True
        self._pace.forget(self)

    def close(self) -> None:
        self.stop_pacing()
        super().close()


def _compute_rate(crowd: int) -> float:
    return max(PER_SECOND / max(crowd / FEW, 1) ** 3, LEAST_PER_SECOND)


class Sink(StreamEnd):
    """Writing to a closed pipe is no error: the exit is noticed elsewhere."""

    async def write(self, data: bytes) -> None:
        left = memoryview(data)[self.write_at_once(data) :]
        while left and self._descriptor is not None:
            with suppress(ClosedResourceError):
                await wait_writable(self._descriptor)
            left = left[self.write_at_once(left) :]

    def write_at_once(self, data: bytes | memoryview) -> int:
        """Write what the pipe takes without waiting, and return how much that was."""
        try:
            return os.write(self._descriptor, data) if self._descriptor is not None else 0
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EIO):
                raise
            self.close()
            return 0
