"""How do bytes go back and forth between two connections? Both ways at once, until one ends or had enough."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import anyio

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class RelayLimits:
    head_seconds: float = 10.0
    idle_seconds: float = 120.0
    """Without a byte in either direction."""
    seconds: float = 3600.0
    bytes: int = 4 << 30
    """In both directions together."""
    connections: int = 128


@dataclass
class RelayedBytes:
    """What one connection brought so far."""

    up: int = 0
    down: int = 0
    cut: str = ""
    """Why it was ended before its two ends were done; empty where it was not."""


@dataclass
class Relay:
    """Between the program (`near`) and the place it reached (`far`)."""

    near: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    bounds: RelayLimits
    carried: RelayedBytes

    async def run(self) -> None:
        with anyio.move_on_after(self.bounds.seconds) as whole:
            async with anyio.create_task_group() as ways:
                ways.start_soon(self._way, self.near[0], self.far[1], "up", ways.cancel_scope)
                ways.start_soon(self._way, self.far[0], self.near[1], "down", ways.cancel_scope)
                ways.start_soon(self._rest, ways.cancel_scope)
        if whole.cancelled_caught:
            self.carried.cut = "time"

    async def _way(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: str, all_of_it: anyio.CancelScope
    ) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                setattr(self.carried, way, getattr(self.carried, way) + len(data))
                if self.carried.up + self.carried.down > self.bounds.bytes:
                    self.carried.cut = "bytes"
                    break
                sink.write(data)
                await sink.drain()
        # What the far end has said is said; what the near end still sends then goes nowhere.
        if way == "down" or self.carried.cut:
            all_of_it.cancel()
            return
        with suppress(OSError, RuntimeError):
            if sink.can_write_eof():
                sink.write_eof()

    async def _rest(self, all_of_it: anyio.CancelScope) -> None:
        """Ends all of it when nothing moved for a while."""
        moved = -1
        while moved != self.carried.up + self.carried.down:
            moved = self.carried.up + self.carried.down
            with anyio.move_on_after(self.bounds.idle_seconds):
                await anyio.sleep_forever()
        self.carried.cut = "idle"
        all_of_it.cancel()
