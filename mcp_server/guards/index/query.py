"""Which lines and symbols match a query, and how well? Integer scores, in one fixed order.

The index tells which files can match; the lines are then read from the disk, so every line shown is there now. A file
matches if every term is on some line of it; each of those lines is a hit.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_server.guards.index.cache import IndexCache
from mcp_server.guards.index.refresh import IndexText, read_text_at
from mcp_server.guards.jail import Jail
from mcp_server.guards.search.globs import Globs
from mcp_server.guards.search.matches import SearchDeadline, make_path_sort_key
from mcp_server.model.index import IndexHit, IndexHits, IndexRequest, Symbol, Symbols
from mcp_server.model.query import RUN, Query, Term, find_words
from mcp_server.model.text import escape_surrogates

MOST_CANDIDATES = 2_000
"""Files opened for one query."""
MOST_HITS = 20_000
MOST_ROWS = 5_000
LONGEST = 200
A_TERM, A_WHOLE_NAME, A_DEFINITION, IN_THE_PATH = 1_000, 500, 300, 100


@dataclass(frozen=True)
class IndexScope:
    """Which part of the workspace to search."""

    path: str
    """A file or folder, `.` for everything."""
    globs: Globs
    hides: Callable[[str], bool] | None = None

    def has_path(self, path: str) -> bool:
        inside = self.path == "." or path == self.path or path.startswith(f"{self.path}/")
        return inside and self.globs.match(path) and not (self.hides and self.hides(path))


@dataclass
class IndexQuery:
    """One query against the index."""

    cache: IndexCache
    jail: Jail
    scope: IndexScope
    wanted: IndexRequest
    deadline: SearchDeadline
    complete: bool = True

    def find_lines(self, query: Query) -> IndexHits:
        found: list[IndexHit] = []
        files = 0
        for path, defining in self._find_candidates(query):
            if self.deadline.is_over or len(found) >= MOST_HITS:
                self.complete = False
                break
            hits = self._find_hits(path, query, defining)
            files += bool(hits)
            found += hits
        self.complete &= len(found) <= MOST_HITS
        found.sort(key=lambda hit: (-hit.score, make_path_sort_key(hit.path), hit.line))
        return IndexHits(tuple(self._select_page(found)), len(found), files, self.complete)

    def _select_page(self, found: Sequence[Any]) -> Sequence[Any]:
        return found[self.wanted.offset : self.wanted.offset + self.wanted.limit]

    def _find_candidates(self, query: Query) -> list[tuple[str, frozenset[int]]]:
        """Return files that may match, and the lines in them that define what is searched. Files that define it, or are
        named after it, come first."""
        defining: dict[int, set[int]] = {}
        names = [term.text for term in query.terms]
        for file, line in self._query_rows(
            f"SELECT file, line FROM symbols WHERE folded IN ({_format_placeholders(names)}) LIMIT ?",  # noqa: S608  # our own words
            *names,
            MOST_ROWS,
        ):
            defining.setdefault(file, set()).add(line)
        found = [
            (file, path)
            for file, folder, name in self._query_rows(*_build_file_query(query))
            if self.scope.has_path(path := _join_path(folder, name))
        ]
        texts = frozenset(names)
        found.sort(key=lambda one: (one[0] not in defining, not texts & find_words(one[1]), make_path_sort_key(one[1])))
        self.complete &= len(found) <= MOST_CANDIDATES
        return [(path, frozenset(defining.get(file, ()))) for file, path in found[:MOST_CANDIDATES]]

    def _query_rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self.cache.query_rows(sql, *values)
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            self.complete = False
            return []

    def _find_hits(self, path: str, query: Query, defining: frozenset[int]) -> list[IndexHit]:
        found = read_text_at(self.jail, path)
        if not isinstance(found, IndexText):
            return []
        lines = found.text.split("\n")
        named = find_words(path)
        in_path = IN_THE_PATH * sum(term.text in named for term in query.terms)
        hits: list[IndexHit] = []
        missing = set(query.terms)
        for number, line, folded in _find_candidate_lines(lines, query):
            inside = find_words(line)
            there = [term for term in query.terms if term.is_on_line(inside, folded)]
            if there:
                missing -= set(there)
                whole = sum(term.text in inside for term in there)
                defines = A_DEFINITION * (number in defining)
                score = A_TERM * len(there) + A_WHOLE_NAME * whole + defines + in_path
                hits.append(IndexHit(escape_surrogates(path), number, _cut_snippet(line, folded, there[0]), score))
        return [] if missing else hits

    def find_symbols(self) -> Symbols:
        tokens = [run.casefold() for run in RUN.findall(self.wanted.query)]
        rows = self._query_rows(*_build_symbol_query(tokens, self.wanted.kind, self.scope.path))
        self.complete &= len(rows) < MOST_ROWS
        found: list[tuple[int, Symbol]] = []
        for folder, file, name, kind, line, last, within, text in rows:
            path = _join_path(folder, file)
            if self.scope.has_path(path):
                one = Symbol(name, kind, escape_surrogates(path), line, last, within, text)
                if score := score_symbol(one, tokens, self.wanted.query):
                    found.append((score, one))
        found.sort(key=lambda each: (-each[0], make_path_sort_key(each[1].path), each[1].line, each[1].name))
        return Symbols(tuple(one for _, one in self._select_page(found)), len(found), self.complete)


def score_symbol(symbol: Symbol, tokens: Sequence[str], query: str) -> int:
    """How well a symbol matches; 0 if it does not. Without a query, every symbol matches."""
    if not tokens:
        return 1
    full, name = symbol.full_name.casefold(), symbol.name.casefold()
    if not all(token in full for token in tokens) or not any(token in name for token in tokens):
        return 0
    score = 100 if symbol.name in RUN.findall(query) else 90 if name in tokens else 30
    score += 30 * (score == 30 and any(name.startswith(token) for token in tokens))
    score += 5 * (full == ".".join(tokens)) + 10 * full.endswith(".".join(tokens))
    return score - 15 * (symbol.kind == "heading")


def _build_file_query(query: Query) -> tuple[Any, ...]:
    """The SQL for files whose words allow every term. What was typed goes in as quoted words."""
    asked = [f'"{word}"' for word in query.needs] + [f'"{word}" *' for word in query.starts]
    if not asked:
        return ("SELECT id, folder, name FROM files WHERE left_out IS NULL",)
    sql = "SELECT id, folder, name FROM files JOIN words ON words.rowid = files.id WHERE words MATCH ?"
    return sql, " AND ".join(asked)


def _build_symbol_query(tokens: Sequence[str], kind: str, path: str) -> tuple[Any, ...]:
    """The SQL for symbols whose name contains one of these, the closest names first."""
    conditions, values = ["1"], list[object]()
    if tokens:
        conditions.append(f"({' OR '.join('instr(folded, ?) > 0' for _ in tokens)})")
        values += tokens
    if kind:
        conditions.append("kind = ?")
        values.append(kind)
    if path != ".":
        above, _, name = path.rpartition("/")
        inside = os.fsencode(f"{path}/")
        conditions.append("(folder = ? OR substr(folder, 1, ?) = ? OR (folder = ? AND files.name = ?))")
        values += [os.fsencode(path), len(inside), inside, os.fsencode(above or "."), os.fsencode(name)]
    order = "folder, files.name, line"
    if tokens:
        order = f"folded NOT IN ({_format_placeholders(tokens)}), length(folded), {order}"
        values += tokens
    # Only our own words are put together here; what was asked for is passed as values.
    sql = (
        "SELECT folder, files.name, symbols.name, kind, line, last, within, text"  # noqa: S608
        " FROM symbols JOIN files ON files.id = symbols.file"
        f" WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT {MOST_ROWS}"
    )
    return sql, *values


def _format_placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _join_path(folder: bytes, name: bytes) -> str:
    return os.fsdecode(name) if folder == b"." else f"{os.fsdecode(folder)}/{os.fsdecode(name)}"


def _find_candidate_lines(lines: Sequence[str], query: Query) -> Iterator[tuple[int, str, str]]:
    """Yield the lines, counted from 1, that contain at least part of a term."""
    needles = tuple(get_needle(term) for term in query.terms)
    for number, line in enumerate(lines, 1):
        folded = line.casefold()
        if any(one in folded for one in needles):
            yield number, line, folded


def get_needle(term: Term) -> str:
    """Return text that every line with this term contains."""
    return term.phrase or term.starts or term.needs[0]


def _cut_snippet(line: str, folded: str, term: Term) -> str:
    if len(line) <= LONGEST:
        return line.strip()
    at = max(folded.find(get_needle(term)) - LONGEST // 4, 0)
    return f"{'…' * (at > 0)}{line[at : at + LONGEST].strip()}{'…' * (at + LONGEST < len(line))}"
