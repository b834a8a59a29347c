"""Where does output go that is too large for memory? Into an unnamed file beside our state, which nothing else can
open.

It holds the output as printed, so only we read it; what is shown from it takes the same path as everything shown.
"""

import tempfile
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

MOST, MOST_TOGETHER = 50 << 20, 512 << 20
"""Bytes of one program, and of all programs at a time."""
TOGETHER = 256 << 10
"""Bytes per write to disk: many small writes by many programs would delay the ledger's."""


@dataclass
class OutputRoom:
    left: int = MOST_TOGETHER


@dataclass
class OverflowFile:
    """Texts in sequence, addressed by how many characters came before."""

    folder: Path | None
    room: OutputRoom
    size: int = 0
    """Characters stored. Once there is no more room, neither that text nor any later one is kept."""
    _bytes: int = 0
    _full: bool = False
    _file: IO[bytes] | None = None
    _elsewhere: bool = False
    """True if the file was read since it was last written."""
    _starts: list[int] = field(default_factory=list[int])
    _places: list[int] = field(default_factory=list[int])

    def add(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._full = self._full or self._bytes + len(data) > MOST or len(data) > self.room.left
        if self._full or not data:
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.folder, buffering=TOGETHER)  # noqa: SIM115  # closed when nobody needs it
            if self._elsewhere:
                self._file.seek(self._bytes)
                self._elsewhere = False
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
        self._elsewhere = True
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
