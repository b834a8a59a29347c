"""Which part of what was found is shown, and how does a line of it look?"""

from collections.abc import Sequence
from typing import TypeVar

from mcp_server.guards.refusals import shown
from mcp_server.guards.search.harvest import MatchLine, SearchMatches, parts
from mcp_server.model.files import Search, SearchResult

Entry = TypeVar("Entry")
BETWEEN = "--"
"""Stands between two places of a file that do not touch, where lines around a match are shown; never counted."""


def grepped(harvest: SearchMatches, search: Search) -> SearchResult:
    paths = sorted(harvest.counts, key=parts)
    if search.want == "content":
        ordered = sorted(harvest.lines, key=lambda line: parts(line.path))
        lines, total = _content(page(ordered, search), search), len(ordered)
    elif search.want == "count":
        lines, total = [f"{shown(path)}:{harvest.counts[path]}" for path in page(paths, search)], len(paths)
    else:
        lines, total = [shown(path) for path in page(paths, search)], len(paths)
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


def page(entries: Sequence[Entry], search: Search) -> Sequence[Entry]:
    return entries[search.offset : search.offset + search.limit if search.limit else None]


def _content(lines: Sequence[MatchLine], search: Search) -> list[str]:
    around = (search.before or search.after) and not search.only_matching
    found: list[str] = []
    last: MatchLine | None = None
    for line in lines:
        if around and last is not None and (line.path, line.number) != (last.path, last.number + 1):
            found.append(BETWEEN)
        sign = ":" if line.matched else "-"
        number = f"{line.number}{sign}" if search.line_numbers else ""
        found.append(f"{shown(line.path)}{sign}{number}{line.text.encode(errors='replace').decode(errors='replace')}")
        last = line
    return found
