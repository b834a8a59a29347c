"""What has a command printed? Keeps the beginning and the end, counts characters, and knows what was shown."""

import codecs
from collections import deque
from dataclasses import dataclass, field

HEAD = 1 << 20
TAIL = 1 << 20
"""Characters of one command that are kept in memory. What lies between goes to disk."""
WINDOW = 1 << 20
"""Characters that are read back from disk at a time."""
ENOUGH = 64
BINARY = 0.3
"""Output with this share of unprintable characters is not text."""


@dataclass
class Screen:
    head_room: int = HEAD
    tail_room: int = TAIL
    total: int = 0
    read: int = 0
    """It was shown up to here."""
    searched: int = 0
    """A pattern is searched for from here on; what `bash` itself showed is searched as well."""
    _head: list[str] = field(default_factory=list[str])
    _head_size: int = 0
    _tail: deque[str] = field(default_factory=deque[str])
    _tail_size: int = 0
    _going: list[str] = field(default_factory=list[str])
    """Too much for memory, and not on disk yet."""
    _going_size: int = 0
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")(errors="replace")
    )

    def add(self, data: bytes, last: bool = False) -> None:
        text = self._decoder.decode(data, last)
        self.total += len(text)
        if (room := self.head_room - self._head_size) > 0:
            self._head.append(text[:room])
            self._head_size += len(text[:room])
            text = text[room:]
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
            while self._tail_size - len(self._tail[0]) >= self.tail_room:
                self._tail_size -= len(self._tail[0])
                self._queue_overflow(self._tail.popleft())

    def _queue_overflow(self, text: str) -> None:
        self._going.append(text)
        self._going_size += len(text)

    @property
    def overflow_size(self) -> int:
        """Characters that have to go to disk."""
        return self._going_size

    @property
    def is_overfull(self) -> bool:
        return self._going_size >= WINDOW

    def take_overflow(self) -> str:
        """Return what has to go to disk, and forget it."""
        going, self._going, self._going_size = self._going, [], 0
        return "".join(going)

    def get_missing_range(self, start: int = 0) -> tuple[int, int]:
        """Return the range after this character that is not in memory."""
        end = max(self.total - self._tail_size, self._head_size)
        return min(max(start, self._head_size), end), end

    def get_text_since(self, start: int) -> str:
        """Return everything from this character on; what is not in memory is replaced by its length."""
        head, tail = "".join(self._head), "".join(self._tail)
        first, end = self.get_missing_range(start)
        if start >= end:
            return tail[start - end :]
        gap = f"\n[... {end - first:,} characters are not shown, from offset {first} ...]\n" if end > first else ""
        return head[start:] + gap + tail

    def take_new_text(self) -> str:
        text, self.read = self.get_text_since(self.read), self.total
        return text

    def mark_searched(self) -> None:
        self.searched = self.total


def make_readable(text: str) -> str:
    """Show it as a terminal would in the end: of a line that was overwritten, the last version."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    sample = text[:8192]
    odd = sum(1 for sign in sample if sign == "�" or (sign < " " and sign not in "\n\t\x1b\b\x07"))
    if len(sample) >= ENOUGH and odd > BINARY * len(sample):
        return f"[{len(text):,} characters of output that is not text]"
    return text


@dataclass
class Capture:
    """Takes the part of the output between two marks, which nobody else sees."""

    begin: bytes
    end: bytes
    inside: bytes | None = None
    """What stands between the marks; None until all of it has arrived."""
    _held: bytes = b""

    def take(self, piece: bytes, last: bool = False) -> bytes:
        """Return the output that is not between the marks, as far as that is certain."""
        held = self._held + piece
        before, _, rest = held.partition(self.begin)
        inside, ended, after = rest.partition(self.end)
        if ended and self.inside is None:
            self.inside, self._held = inside, b""
            return before + after
        self._held = b"" if self.inside is not None or last else held
        return held if self.inside is not None or last else b""

    def stop(self) -> bytes:
        """Return what was held back for marks that did not come."""
        held, self._held = self._held, b""
        return held
