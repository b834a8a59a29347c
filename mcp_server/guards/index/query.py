"""Which lines and symbols match a query, and how well? Integer scores, in one fixed order.

The index says which files can match; we then read their lines from the disk, so every line shown is there now. A file
matches if every term is on some line of it; each of those lines is a hit.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from mcp_server.guards.index.cache import IndexCache
from mcp_server.guards.index.refresh import IndexText, read_text_at
from mcp_server.guards.jail import Jail
from mcp_server.guards.search.globs import Globs
from mcp_server.guards.search.matches import SearchDeadline, make_path_sort_key
from mcp_server.model.index import IndexHit, IndexHits, IndexRequest, Symbol, Symbols
from mcp_server.model.query import RUN, Query, Term, find_words
from mcp_server.model.text import escape_for_model

MAX_CANDIDATES = 2_000
"""Files opened for one query."""
MAX_HITS = 20_000
MAX_ROWS = 5_000
MAX_SNIPPET_CHARS = 200
TERM_SCORE, WHOLE_WORD_SCORE, DEFINITION_SCORE, PATH_SCORE = 1_000, 500, 300, 100


class IndexScope(Struct, frozen=True):
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
    request: IndexRequest
    deadline: SearchDeadline
    complete: bool = True

    def find_lines(self, query: Query) -> IndexHits:
        hits: list[IndexHit] = []
        files = 0
        for path, definition_lines in self._find_candidates(query):
            if self.deadline.is_over or len(hits) >= MAX_HITS:
                self.complete = False
                break
            file_hits = self._find_hits(path, query, definition_lines)
            files += bool(file_hits)
            hits += file_hits
        self.complete &= len(hits) <= MAX_HITS
        hits.sort(key=lambda hit: (-hit.score, make_path_sort_key(hit.path), hit.line))
        return IndexHits(tuple(self._select_page(hits)), len(hits), files, self.complete)

    def _select_page(self, results: Sequence[Any]) -> Sequence[Any]:
        return results[self.request.offset : self.request.offset + self.request.limit]

    def _find_candidates(self, query: Query) -> list[tuple[str, frozenset[int]]]:
        """Return files that may match, each with the lines that define one of the words. Files that define a word, or
        are named after one, come first."""
        definition_lines: dict[int, set[int]] = {}
        words = [term.text for term in query.terms]
        for file, line in self._query_rows(
            f"SELECT file, line FROM symbols WHERE folded IN ({_format_placeholders(words)}) LIMIT ?",  # noqa: S608  # our own words
            *words,
            MAX_ROWS,
        ):
            definition_lines.setdefault(file, set()).add(line)
        candidates = [
            (file, path)
            for file, folder, name in self._query_rows(*_build_file_query(query))
            if self.scope.has_path(path := _join_path(folder, name))
        ]
        word_set = frozenset(words)
        candidates.sort(
            key=lambda row: (
                row[0] not in definition_lines,
                not word_set & find_words(row[1]),
                make_path_sort_key(row[1]),
            )
        )
        self.complete &= len(candidates) <= MAX_CANDIDATES
        return [(path, frozenset(definition_lines.get(file, ()))) for file, path in candidates[:MAX_CANDIDATES]]

    def _query_rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self.cache.query_rows(sql, *values)
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            self.complete = False
            return []

    def _find_hits(self, path: str, query: Query, definition_lines: frozenset[int]) -> list[IndexHit]:
        content = read_text_at(self.jail, path)
        if not isinstance(content, IndexText):
            return []
        lines = content.text.split("\n")
        path_words = find_words(path)
        path_score = PATH_SCORE * sum(term.text in path_words for term in query.terms)
        hits: list[IndexHit] = []
        unmatched = set(query.terms)
        for number, line, folded in _find_candidate_lines(lines, query):
            line_words = find_words(line)
            matched = [term for term in query.terms if term.is_on_line(line_words, folded)]
            if matched:
                unmatched -= set(matched)
                whole_words = sum(term.text in line_words for term in matched)
                definition_score = DEFINITION_SCORE * (number in definition_lines)
                score = TERM_SCORE * len(matched) + WHOLE_WORD_SCORE * whole_words + definition_score + path_score
                hits.append(IndexHit(escape_for_model(path), number, _cut_snippet(line, folded, matched[0]), score))
        return [] if unmatched else hits

    def find_symbols(self) -> Symbols:
        tokens = [run.casefold() for run in RUN.findall(self.request.query)]
        rows = self._query_rows(*_build_symbol_query(tokens, self.request.kind, self.scope.path))
        self.complete &= len(rows) < MAX_ROWS
        scored: list[tuple[int, Symbol]] = []
        for folder, file, name, kind, line, last_line, container, text in rows:
            path = _join_path(folder, file)
            if self.scope.has_path(path):
                symbol = Symbol(name, kind, escape_for_model(path), line, last_line, container, text)
                if score := score_symbol(symbol, tokens, self.request.query):
                    scored.append((score, symbol))
        scored.sort(key=lambda item: (-item[0], make_path_sort_key(item[1].path), item[1].line, item[1].name))
        return Symbols(tuple(symbol for _, symbol in self._select_page(scored)), len(scored), self.complete)


def score_symbol(symbol: Symbol, tokens: Sequence[str], query: str) -> int:
    """Rate how well a symbol matches; 0 if it does not. Without a query, every symbol matches."""
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
    """Build the SQL for files whose words allow every term. Words from the query are quoted."""
    clauses = [f'"{word}"' for word in query.needs] + [f'"{word}" *' for word in query.starts]
    if not clauses:
        return ("SELECT id, folder, name FROM files WHERE left_out IS NULL",)
    sql = "SELECT id, folder, name FROM files JOIN words ON words.rowid = files.id WHERE words MATCH ?"
    return sql, " AND ".join(clauses)


def _build_symbol_query(tokens: Sequence[str], kind: str, path: str) -> tuple[Any, ...]:
    """Build the SQL for symbols whose name contains one of these, the closest names first."""
    conditions, values = ["1"], list[object]()
    if tokens:
        conditions.append(f"({' OR '.join('instr(folded, ?) > 0' for _ in tokens)})")
        values += tokens
    if kind:
        conditions.append("kind = ?")
        values.append(kind)
    if path != ".":
        parent, _, name = path.rpartition("/")
        prefix = os.fsencode(f"{path}/")
        conditions.append("(folder = ? OR substr(folder, 1, ?) = ? OR (folder = ? AND files.name = ?))")
        values += [os.fsencode(path), len(prefix), prefix, os.fsencode(parent or "."), os.fsencode(name)]
    order = "folder, files.name, line"
    if tokens:
        order = f"folded NOT IN ({_format_placeholders(tokens)}), length(folded), {order}"
        values += tokens
    # The SQL contains only our own words; words from the query are passed as values.
    sql = (
        "SELECT folder, files.name, symbols.name, kind, line, last, within, text"  # noqa: S608
        " FROM symbols JOIN files ON files.id = symbols.file"
        f" WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT {MAX_ROWS}"
    )
    return sql, *values


def _format_placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _join_path(folder: bytes, name: bytes) -> str:
    return os.fsdecode(name) if folder == b"." else f"{os.fsdecode(folder)}/{os.fsdecode(name)}"


def _find_candidate_lines(lines: Sequence[str], query: Query) -> Iterator[tuple[int, str, str]]:
    """Yield the lines that contain at least part of a term, counted from 1."""
    needles = tuple(get_needle(term) for term in query.terms)
    for number, line in enumerate(lines, 1):
        folded = line.casefold()
        if any(needle in folded for needle in needles):
            yield number, line, folded


def get_needle(term: Term) -> str:
    """Return text that every line with this term contains."""
    return term.phrase or term.starts or term.needs[0]


def _cut_snippet(line: str, folded: str, term: Term) -> str:
    if len(line) <= MAX_SNIPPET_CHARS:
        return line.strip()
    at = max(folded.find(get_needle(term)) - MAX_SNIPPET_CHARS // 4, 0)
    return f"{'…' * (at > 0)}{line[at : at + MAX_SNIPPET_CHARS].strip()}{'…' * (at + MAX_SNIPPET_CHARS < len(line))}"
