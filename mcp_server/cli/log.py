"""Where does a server log errors? To stderr, without ever making a client wait for it.

A host may never read a server's stderr. Once that pipe is full, a write to it blocks, and the whole server with it.
"""

import logging
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Full, Queue

MAX_WAITING = 1000
"""Entries in the queue; further ones are dropped."""
MAX_BYTES = 1 << 20
"""Bytes after which the log file of `menugate call` starts over."""
LAST_SECONDS = 1.0
"""Seconds to wait at exit for queued entries."""


class BackgroundLogHandler(logging.Handler):
    """Writes in a thread of its own, started with the first entry."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._waiting: Queue[str | None] = Queue(MAX_WAITING)
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
                    # Not through `sys.stderr`: if its lock is held when the interpreter ends, the interpreter aborts.
                    data = data[os.write(self._descriptor, data) :]


class LazyLogFile(logging.Handler):
    """A log file created with its first entry, for a command that the user is waiting for."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.WARNING)
        self.path = path
        self.last = ""
        """The message of the last failure."""
        self.unwritten = False

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        self.last = f"{type(fault).__name__}: {fault}" if fault else record.getMessage()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(self.path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as out:
                if out.tell() > MAX_BYTES:
                    out.truncate(0)
                out.write(f"{self.format(record)}\n")
        except OSError:
            self.unwritten = True

    @property
    def failure_summary(self) -> str:
        """The last failure and where the details are; empty if nothing failed."""
        where = "its log cannot be written" if self.unwritten else f"details are in {self.path}"
        return f"{self.last} ({where})" if self.last else ""


@contextmanager
def log_to_file(path: Path) -> Generator[LazyLogFile, None, None]:
    handler, root = LazyLogFile(path), logging.getLogger()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root.addHandler(handler)
    try:
        yield handler
    finally:
        root.removeHandler(handler)


@contextmanager
def log_in_background() -> Generator[None, None, None]:
    """Log while a client is served; not at all if stderr is closed, because its number may belong to another file."""
    handler = logging.NullHandler() if sys.__stderr__ is None else BackgroundLogHandler(2)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
