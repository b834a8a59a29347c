"""What comes out of a child, and how fast? One descriptor, read no faster than a server can bear.

A program that prints without end is slowed down by its own full pipe; the server that reads it stays idle.
"""

import errno
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio import ClosedResourceError, wait_readable, wait_writable

CHUNK = 1 << 16
AT_ONCE = 4 << 20
"""Bytes a stream may bring as fast as it can."""
PER_SECOND = 8 << 20
"""And after that."""


class Source:
    """The reading end, which it owns."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._read = 0

    async def piece(self) -> bytes:
        """The next bytes; none at the end."""
        while self._descriptor is not None:
            try:
                data = os.read(self._descriptor, CHUNK)
            except BlockingIOError:
                await _ready(wait_readable, self._descriptor)
                continue
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                data = b""  # how a terminal says that nobody is at its other side any more
            if not data:
                self.close()
            self._read += len(data)
            if self._read > AT_ONCE:
                await anyio.sleep(len(data) / PER_SECOND)
            return data
        return b""

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            anyio.notify_closing(descriptor)
            os.close(descriptor)


class Sink:
    """The writing end, which it owns. Writing to who is gone is no error: that it is gone is seen elsewhere."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor

    async def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left and self._descriptor is not None:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                await _ready(wait_writable, self._descriptor)
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.EIO):
                    raise
                self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            anyio.notify_closing(descriptor)
            os.close(descriptor)


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    with suppress(ClosedResourceError):
        await wait(descriptor)
