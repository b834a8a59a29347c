"""What did a mounted server write to its stderr? A file per mount, of which only the end is kept."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILE_BYTES = 256 << 10
"""A log has at most two such files: the current one and the one before."""
FREE_BYTES, BYTES_PER_SECOND = 256 << 10, 16 << 10
"""A server may write this much at once, and this much a second in the long run; the rest is dropped and counted."""
MAX_LINE_BYTES = 4096


@dataclass
class UpstreamLog:
    """The log of one mount."""

    path: Path
    redact: Callable[[str], str] = str
    _line: bytearray = field(default_factory=bytearray)
    _level: float = 0.0
    _at: float = field(default_factory=time.monotonic)
    _dropped: int = 0

    def add(self, data: bytes) -> None:
        now = time.monotonic()
        self._level = max(self._level - (now - self._at) * BYTES_PER_SECOND, 0)
        self._at = now
        if self._level > FREE_BYTES:
            self._dropped += len(data)
            return
        self._level += len(data)
        self._line += data
        # Whole lines, so that a secret is not cut in two and then missed.
        end = self._line.rfind(b"\n") + 1
        if not end and len(self._line) > MAX_LINE_BYTES:
            end = len(self._line)
        if end:
            self._write(bytes(self._line[:end]))
            del self._line[:end]

    def note(self, text: str) -> None:
        """Add a line of ours."""
        self.flush()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._write(f"[menugate {stamp}] {text}\n".encode())

    def flush(self) -> None:
        if self._line:
            self._write(bytes(self._line) + b"\n")
            self._line.clear()

    def _write(self, data: bytes) -> None:
        if self._dropped:
            data = f"[menugate] {self._dropped} bytes were dropped here\n".encode() + data
            self._dropped = 0
        text = self.redact(data.decode("utf-8", "replace")).encode()
        try:
            if self.path.stat().st_size + len(text) > MAX_FILE_BYTES:
                self.path.replace(self.path.with_suffix(".log.1"))
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "ab") as file:  # noqa: PTH123  # a descriptor
            file.write(text[-MAX_FILE_BYTES:])
