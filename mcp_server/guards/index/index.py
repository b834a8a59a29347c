"""What is where in the workspace, now? The `Index` port: rounds that refresh the cache, and queries against it."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mcp_server.guards.index.cache import discard_cache, open_cache, read_identity
from mcp_server.guards.index.query import IndexQuery, IndexScope
from mcp_server.guards.index.refresh import Round
from mcp_server.guards.index.symbols import find_defined_symbols
from mcp_server.guards.jail import Jail
from mcp_server.guards.search.globs import BadGlob, Globs, build_glob_refusal
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.model.index import KINDS, Freshness, IndexHits, IndexRequest, Symbol, Symbols
from mcp_server.model.query import Query
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_surrogates

T = TypeVar("T")
TRIES = 3
NO_ROOM = "no room left in the index"
NOT_WHOLE = "in folders that are too large or cannot be read"


class WorkspaceIndex:
    """Any thread may ask. One at a time reads the disk; requests that arrive meanwhile are served by the same round."""

    def __init__(self, jail: Jail, path: Path, now_ns: Callable[[], int]) -> None:
        self._jail, self._path, self._now_ns = jail, path, now_ns
        self._turn = threading.Lock()
        self._round: Round | None = None
        self._last: Round | None = None
        self._begun = 0
        self._done = 0
        """The number of the last completed round."""
        self._birth: str = ""
        """The identity of the cache that the rounds wrote to."""

    def get_refresh_mark(self) -> int:
        return self._begun

    def refresh(self, mark: int, seconds: float) -> Freshness:
        deadline = SearchDeadline(seconds)
        if self._done <= mark and self._turn.acquire(timeout=seconds):
            try:
                self._run_with_recovery(lambda: self._continue_round(mark, deadline))
            finally:
                self._turn.release()
        return self._run_with_recovery(lambda: self._read_freshness(mark))

    def _continue_round(self, mark: int, deadline: SearchDeadline) -> None:
        with open_cache(self._path) as cache:
            birth = cache.read_birth()
            if birth != self._birth:
                # Another file, or one never filled: what the current round has learned is not in it.
                self._birth, self._round = birth, None
            # At least one slice, so that repeated requests eventually complete the round.
            while self._done <= mark:
                if self._round is None:
                    self._begun += 1
                    self._round = Round(self._jail, self._now_ns, cache.read_turn())
                if self._round.run_slice(cache, deadline):
                    self._done, self._last, self._round = self._begun, self._round, None
                if deadline.is_over:
                    return

    def _read_freshness(self, mark: int) -> Freshness:
        going = self._round or self._last
        with open_cache(self._path) as cache:
            left_out = cache.count_left_out()
            if going and going.full:
                left_out[NO_ROOM] = left_out.get(NO_ROOM, 0) + 1
            if going and not going.whole:
                left_out[NOT_WHOLE] = left_out.get(NOT_WHOLE, 0) + 1
            looked, learned = (going.looked, going.learned) if going else (0, 0)
            return Freshness(self._done > mark, cache.count_indexed_files(), looked, learned, left_out)

    def discard(self) -> None:
        """Delete what is known; the next query finds it out again."""
        self._run_with_recovery(lambda: discard_cache(self._path, read_identity(self._path)))

    def search(self, wanted: IndexRequest) -> IndexHits:
        query = Query.parse(wanted.query)
        if not query.terms:
            raise Refusal(
                Problem(
                    Code.INVALID_ARGUMENTS,
                    f"`{wanted.query}` holds no word to look for.",
                    'Give words, `begin*`, or a "phrase" in quotes; signs alone are found by `grep`.',
                )
            )
        return self._run_with_recovery(lambda: self._query_cache(wanted, lambda look: look.find_lines(query)))

    def find_symbols(self, wanted: IndexRequest) -> Symbols:
        if wanted.kind and wanted.kind not in KINDS:
            raise Refusal(
                Problem(Code.INVALID_ARGUMENTS, f"`{wanted.kind}` is no kind of symbol.", f"Kinds: {', '.join(KINDS)}.")
            )
        return self._run_with_recovery(lambda: self._query_cache(wanted, lambda look: look.find_symbols()))

    def outline_text(self, path: str, text: str) -> tuple[Symbol, ...]:
        return tuple(find_defined_symbols(path, text))

    def _query_cache(self, wanted: IndexRequest, ask: Callable[[IndexQuery], T]) -> T:
        deadline = SearchDeadline(wanted.seconds)
        scope = IndexScope(self._find_place(wanted.path), _parse_globs(wanted.glob), wanted.hides)
        while True:
            with open_cache(self._path, deadline) as cache:
                if not self._birth or cache.read_birth() == self._birth or deadline.is_over:
                    return ask(IndexQuery(cache, self._jail, scope, wanted, deadline))
            # The cache was deleted since the last refresh.
            self.refresh(self.get_refresh_mark(), max(deadline.seconds_left, 0))

    def _find_place(self, path: str) -> str:
        asked = self._jail.to_relative(path)
        with self._jail.open_place(asked, reading=True) as place:
            if place.stat() is None:
                raise Refusal(
                    Problem(
                        Code.NOT_FOUND,
                        f"There is nothing at `{escape_surrogates(path)}`.",
                        "Leave `path` out to look everywhere.",
                    )
                )
            return place.path if place.name != "." else "."

    def _run_with_recovery(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. A damaged cache is deleted, and the work repeated on a new one."""
        try:
            for _ in range(TRIES):
                found = read_identity(self._path)
                try:
                    return work()
                except sqlite3.Error as error:
                    if "locked" in str(error) or "busy" in str(error):
                        raise _build_busy_refusal() from None
                    # Discard only the file that failed: another process may have replaced it already, and be using the
                    # new one.
                    discard_cache(self._path, found)
            return work()
        except (sqlite3.Error, OSError) as error:
            raise Refusal(
                Problem(
                    Code.TOOL_FAILED,
                    f"The index cannot be kept in `{self._path.parent.name}`: {error}.",
                    "Search with `grep` and `glob`, which need no index.",
                )
            ) from None


def _build_busy_refusal() -> Refusal:
    return Refusal(
        Problem(
            Code.BUSY, "another process is writing the index and does not come to an end.", "Try again in a moment."
        )
    )


def _parse_globs(pattern: str) -> Globs:
    try:
        return Globs.from_patterns(one.strip() for one in pattern.split(";") if one.strip())
    except BadGlob as error:
        raise build_glob_refusal(pattern, error) from None
