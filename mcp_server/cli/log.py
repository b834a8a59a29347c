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
from pathlib import Path
from queue import Full, Queue

MOST_WAITING = 1000
"""Entries; what comes on top of them is lost."""
MOST_KEPT = 1 << 20
"""Bytes after which a file of `menugate call` begins anew."""
LAST_SECONDS = 1.0
"""For what still waits at the end."""


class BackgroundLogHandler(logging.Handler):
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


class LazyLogFile(logging.Handler):
    """A file that begins with the first entry; for a command that somebody waits for at a terminal."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.WARNING)
        self.path = path
        self.last = ""
        """What the last failure said of itself."""
        self.unwritten = False

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        self.last = f"{type(fault).__name__}: {fault}" if fault else record.getMessage()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(self.path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as out:
                if out.tell() > MOST_KEPT:
                    out.truncate(0)
                out.write(f"{self.format(record)}\n")
        except OSError:
            self.unwritten = True

    @property
    def failure_summary(self) -> str:
        """For the person; empty where nothing failed."""
        where = "its log cannot be written" if self.unwritten else f"more is in {self.path}"
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
    """The log, as long as somebody is served; none where stderr is closed and its number may be another file's."""
    handler = logging.NullHandler() if sys.__stderr__ is None else BackgroundLogHandler(2)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
