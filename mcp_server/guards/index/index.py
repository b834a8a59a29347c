"""What is where in the workspace? The `Index` port: rounds refresh the cache, queries read it."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mcp_server.guards.index.cache import discard_cache, open_cache, read_identity
from mcp_server.guards.index.query import IndexQuery, IndexScope
from mcp_server.guards.index.refresh import RefreshRound
from mcp_server.guards.index.symbols import find_defined_symbols
from mcp_server.guards.jail import Jail
from mcp_server.guards.search.globs import BadGlob, Globs, build_glob_refusal
from mcp_server.guards.search.matches import SearchDeadline
from mcp_server.model.index import KINDS, Freshness, IndexHits, IndexRequest, Symbol, Symbols
from mcp_server.model.query import Query
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_name

T = TypeVar("T")
MAX_REBUILDS = 3
INDEX_FULL = "no room left in the index"
NOT_LISTED = "in folders that are too large or cannot be read"


class WorkspaceIndex:
    """Any thread may call this. One at a time reads the disk; callers that arrive meanwhile share its round."""

    def __init__(self, jail: Jail, path: Path, now_ns: Callable[[], int]) -> None:
        self._jail, self._path, self._now_ns = jail, path, now_ns
        self._refresh_lock = threading.Lock()
        self._round: RefreshRound | None = None
        self._last_round: RefreshRound | None = None
        self._started = 0
        self._completed = 0
        """The number of the last completed round, as `_started` counts them."""
        self._cache_id: str = ""
        """Identifies the cache file that the rounds wrote to."""

    def get_refresh_mark(self) -> int:
        return self._started

    def refresh(self, mark: int, seconds: float) -> Freshness:
        deadline = SearchDeadline(seconds)
        if self._completed <= mark and self._refresh_lock.acquire(timeout=seconds):
            try:
                self._run_with_recovery(lambda: self._continue_round(mark, deadline))
            finally:
                self._refresh_lock.release()
        return self._run_with_recovery(lambda: self._read_freshness(mark))

    def _continue_round(self, mark: int, deadline: SearchDeadline) -> None:
        with open_cache(self._path) as cache:
            cache_id = cache.read_cache_id()
            if cache_id != self._cache_id:
                # The cache was replaced or never filled, so what the current round has stored is not in it.
                self._cache_id, self._round = cache_id, None
            # Run at least one slice, so that repeated calls complete the round eventually.
            while self._completed <= mark:
                if self._round is None:
                    self._started += 1
                    self._round = RefreshRound(self._jail, self._now_ns, cache.read_transaction_number())
                if self._round.run_slice(cache, deadline):
                    self._completed, self._last_round, self._round = self._started, self._round, None
                if deadline.is_over:
                    return

    def _read_freshness(self, mark: int) -> Freshness:
        last_round = self._round or self._last_round
        with open_cache(self._path) as cache:
            left_out = cache.count_left_out()
            if last_round and last_round.is_full:
                left_out[INDEX_FULL] = left_out.get(INDEX_FULL, 0) + 1
            if last_round and not last_round.complete:
                left_out[NOT_LISTED] = left_out.get(NOT_LISTED, 0) + 1
            checked, read = (last_round.files_checked, last_round.files_read) if last_round else (0, 0)
            return Freshness(self._completed > mark, cache.count_indexed_files(), checked, read, left_out)

    def discard(self) -> None:
        """Delete the cache; the next query rebuilds it."""
        self._run_with_recovery(lambda: discard_cache(self._path, read_identity(self._path)))

    def search(self, request: IndexRequest) -> IndexHits:
        query = Query.parse(request.query)
        if not query.terms:
            raise Refusal(
                Problem(
                    Code.INVALID_ARGUMENTS,
                    f"`{request.query}` contains no word to search for.",
                    'Give words, `begin*`, or a "phrase" in quotes; use `grep` for punctuation alone.',
                )
            )
        return self._run_with_recovery(lambda: self._query_cache(request, lambda index: index.find_lines(query)))

    def find_symbols(self, request: IndexRequest) -> Symbols:
        if request.kind and request.kind not in KINDS:
            raise Refusal(
                Problem(
                    Code.INVALID_ARGUMENTS, f"`{request.kind}` is not a kind of symbol.", f"Kinds: {', '.join(KINDS)}."
                )
            )
        return self._run_with_recovery(lambda: self._query_cache(request, IndexQuery.find_symbols))

    def outline_text(self, path: str, text: str) -> tuple[Symbol, ...]:
        return tuple(find_defined_symbols(path, text))

    def _query_cache(self, request: IndexRequest, run: Callable[[IndexQuery], T]) -> T:
        deadline = SearchDeadline(request.seconds)
        scope = IndexScope(self._find_place(request.path), _parse_globs(request.glob), request.hides)
        while True:
            with open_cache(self._path, deadline) as cache:
                if not self._cache_id or cache.read_cache_id() == self._cache_id or deadline.is_over:
                    return run(IndexQuery(cache, self._jail, scope, request, deadline))
            # The cache was deleted after the last refresh.
            self.refresh(self.get_refresh_mark(), max(deadline.seconds_left, 0))

    def _find_place(self, path: str) -> str:
        relative = self._jail.to_relative(path)
        with self._jail.open_place(relative, reading=True) as place:
            if place.stat() is None:
                raise Refusal(
                    Problem(
                        Code.NOT_FOUND,
                        f"There is nothing at `{escape_name(path)}`.",
                        "Leave out `path` to search everywhere.",
                    )
                )
            return place.path if place.name != "." else "."

    def _run_with_recovery(self, work: Callable[[], T]) -> T:
        """Return the result of `work`. If the cache is damaged, delete it and repeat the work on a new one."""
        try:
            for _ in range(MAX_REBUILDS):
                identity = read_identity(self._path)
                try:
                    return work()
                except sqlite3.Error as error:
                    if "locked" in str(error) or "busy" in str(error):
                        raise _build_busy_refusal() from None
                    # Discard only the file that failed: another process may already use the one that replaced it.
                    discard_cache(self._path, identity)
            return work()
        except (sqlite3.Error, OSError) as error:
            raise Refusal(
                Problem(
                    Code.TOOL_FAILED,
                    f"The index cannot be stored in `{self._path.parent.name}`: {error}.",
                    "Search with `grep` and `glob`, which need no index.",
                )
            ) from None


def _build_busy_refusal() -> Refusal:
    return Refusal(
        Problem(Code.BUSY, "Another process has been writing the index for too long.", "Try again in a moment.")
    )


def _parse_globs(pattern: str) -> Globs:
    try:
        return Globs.from_patterns(part.strip() for part in pattern.split(";") if part.strip())
    except BadGlob as error:
        raise build_glob_refusal(pattern, error) from None
