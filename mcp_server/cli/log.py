"""Where does a server write what went wrong? To stderr, and never so that a client waits until somebody reads it.

Hosts may leave a server's stderr unread. Once such a pipe is full a write to it does not come back, and the whole
server would stand still for its log.
"""

import logging
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from queue import Full, Queue

MOST_WAITING = 1000
"""Entries; what comes on top of them is lost."""
LAST_SECONDS = 1.0
"""For what still waits at the end."""


class Aside(logging.Handler):
    """A thread of its own writes, from the first entry on."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._waiting: Queue[str | None] = Queue(MOST_WAITING)
        self._writer: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="menugate log", daemon=True)
            self._writer.start()
        with suppress(Full):
            self._waiting.put_nowait(self.format(record))

    def close(self) -> None:
        if self._writer is not None:
            with suppress(Full):
                self._waiting.put_nowait(None)
            self._writer.join(LAST_SECONDS)
        super().close()

    def _write(self) -> None:
        while (text := self._waiting.get()) is not None:
            data = f"{text}\n".encode(errors="backslashreplace")
            with suppress(OSError):
                while data:
                    # Not through `sys.stderr`: the interpreter dies of a lock that is held there when it ends.
                    data = data[os.write(self._descriptor, data) :]


@contextmanager
def aside() -> Generator[None, None, None]:
    """The log, as long as somebody is served; none where stderr is closed and its number may be another file's."""
    handler = logging.NullHandler() if sys.__stderr__ is None else Aside(2)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
