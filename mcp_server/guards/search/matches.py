"""What did a search find, and which part of it is shown?"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from msgspec import Struct

from mcp_server.model.files import Search, SearchResult
from mcp_server.model.text import escape_for_model

# What did an engine find? Both engines fill the same structure.

MAX_LINES = 200_000
MAX_OUTPUT_BYTES = 16 << 20
MAX_LINE_CHARS = 500
"""Longer lines are cut: usually they are generated, and nobody reads them."""


class EngineUnavailable(Exception):
    """This engine cannot run this search; try the next one."""


class MatchLine(Struct, frozen=True):
    path: str
    number: int
    text: str
    matched: bool = True


@dataclass(slots=True)
class SearchMatches:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """By path below the workspace: how many lines matched, or 1 if only files are listed."""
    lines: list[MatchLine] = field(default_factory=list[MatchLine])
    complete: bool = True
    timed_out: bool = False
    searched: int | None = None
    engine: str = ""


Clock: TypeAlias = Callable[[], float]


class SearchDeadline:
    """Tells how much of a search's time is left."""

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
    if len(text) <= MAX_LINE_CHARS:
        return text
    return f"{text[:MAX_LINE_CHARS]} [... line cut]"


# Which part of the matches is shown, and how does a line of it look?

Entry = TypeVar("Entry")
GAP = "--"
"""Printed between parts of a file that do not touch, if context lines are shown; never counted."""


def build_search_result(matches: SearchMatches, search: Search) -> SearchResult:
    paths = sorted(matches.counts, key=make_path_sort_key)
    total = len(matches.lines) if search.want == "content" else len(paths)
    if search.want == "content":
        ordered = sorted(matches.lines, key=lambda line: make_path_sort_key(line.path))
        lines = _format_content_lines(select_page(ordered, search), search)
    elif search.want == "count":
        lines = [
            f"{escape_for_model(path, one_line=True)}:{matches.counts[path]}" for path in select_page(paths, search)
        ]
    else:
        lines = [escape_for_model(path, one_line=True) for path in select_page(paths, search)]
    return SearchResult(
        tuple(lines),
        total,
        matches.complete,
        matches.timed_out,
        matches.engine,
        matches.searched,
        len(paths),
        None if search.want == "files" else sum(matches.counts.values()),
    )


def select_page(entries: Sequence[Entry], search: Search) -> Sequence[Entry]:
    return entries[search.offset : search.offset + search.limit if search.limit else None]


def _format_content_lines(lines: Sequence[MatchLine], search: Search) -> list[str]:
    has_context = (search.before or search.after) and not search.only_matching
    formatted: list[str] = []
    last: MatchLine | None = None
    for line in lines:
        if has_context and last is not None and (line.path, line.number) != (last.path, last.number + 1):
            formatted.append(GAP)
        sign = ":" if line.matched else "-"
        number = f"{line.number}{sign}" if search.line_numbers else ""
        formatted.append(f"{escape_for_model(line.path, one_line=True)}{sign}{number}{escape_for_model(line.text)}")
        last = line
    return formatted
