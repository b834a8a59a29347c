"""Where does output go that is too large for memory? Into an unnamed file beside our state, which only we can open.

It holds the output as printed. What is shown from it is redacted like every result.
"""

import tempfile
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

MAX_BYTES, MAX_TOTAL_BYTES = 50 << 20, 512 << 20
"""Of one program, and of all programs at a time."""
BUFFER_BYTES = 256 << 10
"""Many small writes by many programs would delay the ledger's."""


@dataclass
class OutputRoom:
    left: int = MAX_TOTAL_BYTES


@dataclass
class OverflowFile:
    """Texts in sequence, addressed by how many characters came before."""

    folder: Path | None
    room: OutputRoom
    size: int = 0
    """Characters stored. The first text without room, and every later one, is dropped."""
    _bytes: int = 0
    _full: bool = False
    _file: IO[bytes] | None = None
    _has_moved: bool = False
    """True if the file was read since it was last written."""
    _starts: list[int] = field(default_factory=list[int])
    _places: list[int] = field(default_factory=list[int])

    def add(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._full = self._full or self._bytes + len(data) > MAX_BYTES or len(data) > self.room.left
        if self._full or not data:
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.folder, buffering=BUFFER_BYTES)  # noqa: SIM115  # closed by `close`
            if self._has_moved:
                self._file.seek(self._bytes)
                self._has_moved = False
            self._file.write(data)
        except OSError:  # the disk is full
            self._full = True
            return
        self._starts.append(self.size)
        self._places.append(self._bytes)
        self.size, self._bytes = self.size + len(text), self._bytes + len(data)
        self.room.left -= len(data)

    def read(self, start: int, most: int) -> str:
        """Return at most `most` characters from `start` on."""
        if self._file is None or not 0 <= start < self.size:
            return ""
        first = bisect_right(self._starts, start) - 1
        after = bisect_right(self._starts, start + most - 1)
        end = self._places[after] if after < len(self._places) else self._bytes
        self._has_moved = True
        self._file.seek(self._places[first])
        text = self._file.read(end - self._places[first]).decode("utf-8", "replace")
        skipped = start - self._starts[first]
        return text[skipped : skipped + most]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self.room.left += self._bytes
        self.size, self._full = 0, True
