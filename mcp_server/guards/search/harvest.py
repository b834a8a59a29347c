"""What did an engine find, before anything is chosen for showing? Both engines fill the same basket."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

MOST_LINES = 200_000
MOST_BYTES = 16 << 20
LONGEST_LINE = 500
"""Characters of a line that are shown; what is longer is no text anybody reads."""


class EngineUnavailable(Exception):
    """This engine cannot do this search on this machine; the other one is asked."""


@dataclass(frozen=True, slots=True)
class MatchLine:
    path: str
    number: int
    text: str
    matched: bool = True


@dataclass(slots=True)
class SearchMatches:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Path below the workspace -> lines that matched; for a list of files, 1."""
    lines: list[MatchLine] = field(default_factory=list[MatchLine])
    complete: bool = True
    timed_out: bool = False
    searched: int | None = None
    engine: str = ""


Clock: TypeAlias = Callable[[], float]


class SearchDeadline:
    """How much of a search's time is left."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        return self._end - self._clock()

    @property
    def over(self) -> bool:
        return self.left <= 0


def parts(path: str) -> list[str]:
    """What paths are sorted by: folder by folder, so that what lies together stands together."""
    return path.split("/")


def shortened(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[:LONGEST_LINE]} [... line cut]"
