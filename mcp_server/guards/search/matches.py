"""What did a search find, and which part of it is shown?"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from mcp_server.model.files import Search, SearchResult
from mcp_server.model.text import escape_surrogates

# What did an engine find, before choosing what to show? Both engines fill the same structure.

MOST_LINES = 200_000
MOST_BYTES = 16 << 20
LONGEST_LINE = 500
"""How many characters of a line are shown; nobody reads a longer one."""


class EngineUnavailable(Exception):
    """This engine cannot run this search on this machine; use the other one."""


@dataclass(frozen=True, slots=True)
class MatchLine:
    path: str
    number: int
    text: str
    matched: bool = True


@dataclass(slots=True)
class SearchMatches:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Path below the workspace -> number of lines that matched; 1 if only files are listed."""
    lines: list[MatchLine] = field(default_factory=list[MatchLine])
    complete: bool = True
    timed_out: bool = False
    searched: int | None = None
    engine: str = ""


Clock: TypeAlias = Callable[[], float]


class SearchDeadline:
    """Knows how much of a search's time is left."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def seconds_left(self) -> float:
        return self._end - self._clock()

    @property
    def is_over(self) -> bool:
        return self.seconds_left <= 0


def make_path_sort_key(path: str) -> list[str]:
    """Sort paths folder by folder, so that the files of a folder stay together."""
    return path.split("/")


def shorten_line(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[:LONGEST_LINE]} [... line cut]"


# Which part of the matches is shown, and how does a line of it look?

Entry = TypeVar("Entry")
BETWEEN = "--"
"""Separates parts of a file that do not touch, if context lines are shown; never counted."""


def build_search_result(harvest: SearchMatches, search: Search) -> SearchResult:
    paths = sorted(harvest.counts, key=make_path_sort_key)
    if search.want == "content":
        ordered = sorted(harvest.lines, key=lambda line: make_path_sort_key(line.path))
        lines, total = _format_content_lines(select_page(ordered, search), search), len(ordered)
    elif search.want == "count":
        lines, total = (
            [f"{escape_surrogates(path)}:{harvest.counts[path]}" for path in select_page(paths, search)],
            len(paths),
        )
    else:
        lines, total = [escape_surrogates(path) for path in select_page(paths, search)], len(paths)
    return SearchResult(
        tuple(lines),
        total,
        harvest.complete,
        harvest.timed_out,
        harvest.engine,
        harvest.searched,
        len(paths),
        None if search.want == "files" else sum(harvest.counts.values()),
    )


def select_page(entries: Sequence[Entry], search: Search) -> Sequence[Entry]:
    return entries[search.offset : search.offset + search.limit if search.limit else None]


def _format_content_lines(lines: Sequence[MatchLine], search: Search) -> list[str]:
    around = (search.before or search.after) and not search.only_matching
    found: list[str] = []
    last: MatchLine | None = None
    for line in lines:
        if around and last is not None and (line.path, line.number) != (last.path, last.number + 1):
            found.append(BETWEEN)
        sign = ":" if line.matched else "-"
        number = f"{line.number}{sign}" if search.line_numbers else ""
        found.append(
            f"{escape_surrogates(line.path)}{sign}{number}{line.text.encode(errors='replace').decode(errors='replace')}"
        )
        last = line
    return found
