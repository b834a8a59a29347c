"""Where may a long text be cut? Between words, never inside one, so that no half of a token is left to read."""

from dataclasses import dataclass

LONGEST_WORD = 512
"""What is longer than this is cut where the room ends: a line of two million characters has no better place."""
NOTICE = 120
"""Room for saying what was left out."""


@dataclass(frozen=True, slots=True)
class CutText:
    """A text in three parts, the middle one only counted."""

    head: str
    tail: str
    left_out: int
    lines_left_out: int
    next_line: int
    """The first line, from 1, that the head does not show in full."""

    @property
    def text(self) -> str:
        if not self.left_out:
            return self.head
        lines = f" in {self.lines_left_out:,} lines" if self.lines_left_out > 1 else ""
        return f"{self.head}\n[... {self.left_out:,} characters{lines} left out ...]\n{self.tail}"


def parts(text: str, limit: int) -> CutText:
    """Two thirds of the room for the beginning, where the answer is; one for the end, where the error is."""
    if len(text) <= limit:
        return CutText(text, "", 0, 0, text.count("\n") + 2)
    room = max(limit - NOTICE, 0)
    head = text[: _before(text, room * 2 // 3)]
    tail = text[_after(text, len(text) - (room - room * 2 // 3)) :]
    middle = text[len(head) : len(text) - len(tail)]
    return CutText(head, tail, len(middle), middle.count("\n") + 1, head.count("\n") + 1)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters: beginning and end, and between them how much was left out."""
    return parts(text, limit).text[: max(limit, 0)]


def _before(text: str, at: int) -> int:
    """The last gap at or before this place."""
    for place in range(at, max(at - LONGEST_WORD, 0), -1):
        if text[place - 1].isspace() or text[place].isspace():
            return place
    return at if at > LONGEST_WORD else 0


def _after(text: str, at: int) -> int:
    """The first gap at or after this place."""
    if at <= 0 or at >= len(text):
        return min(max(at, 0), len(text))
    for place in range(at, min(at + LONGEST_WORD, len(text))):
        if text[place - 1].isspace() or text[place].isspace():
            return place
    return at if len(text) - at > LONGEST_WORD else len(text)
