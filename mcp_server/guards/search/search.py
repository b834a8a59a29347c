"""Where in the workspace does this occur? Both engines give the same answer."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.guards.jail import Jail
from mcp_server.guards.search.fallback import FallbackSearch
from mcp_server.guards.search.file_types import find_type_globs, may_hold_secrets
from mcp_server.guards.search.globs import BadGlob, Globs, build_glob_refusal
from mcp_server.guards.search.matches import (
    EngineUnavailable,
    SearchDeadline,
    SearchMatches,
    build_search_result,
    make_path_sort_key,
    select_page,
)
from mcp_server.guards.search.ripgrep import FileFilter, Ripgrep
from mcp_server.guards.search.walk import hold_folder_open
from mcp_server.model.files import Search, SearchResult
from mcp_server.model.results import Code, Problem, Refusal
from mcp_server.model.text import escape_name


class SearchRoot(Struct, frozen=True):
    """Where a search begins: its real path below the workspace, and whether it is a single file."""

    path: str
    is_file: bool


class FileSearch:
    """Searches with ripgrep; without the program, or where it cannot be sandboxed, with Python.

    The path of a search is a real one, without links: its caller has judged it.
    """

    def __init__(self, jail: Jail, private: tuple[Path, ...] = (), ripgrep: Path | None = None) -> None:
        self._jail = jail
        self._fallback = FallbackSearch(jail)
        private_paths = tuple(inside for path in private if (inside := _find_path_inside(path, jail.root)) is not None)
        self._ripgrep = None if ripgrep is None else Ripgrep(ripgrep, jail, private_paths)

    def grep(self, search: Search) -> SearchResult:
        _refuse_nul("pattern", search.pattern)
        root = self._find_search_root(search.path)
        deadline = SearchDeadline(search.timeout)
        file_filter = self._build_filter(search, root, search.globs)
        matches = self._search_with_engines(search, root, file_filter, deadline)
        readable = self._find_readable_paths(_drop_hidden_paths(matches.counts, search))
        if len(readable) < len(matches.counts):
            matches.counts = {path: count for path, count in matches.counts.items() if path in readable}
            matches.lines = [line for line in matches.lines if line.path in readable]
        return build_search_result(matches, search)

    def _search_with_engines(
        self, search: Search, root: SearchRoot, file_filter: FileFilter, deadline: SearchDeadline
    ) -> SearchMatches:
        # ripgrep opens by name what it listed before. If a rule keeps files from this tool, we open each of them.
        ripgrep = self._ripgrep if search.hides is None else None
        engines = (ripgrep, self._fallback) if ripgrep else (self._fallback,)
        if root.is_file:
            with self._jail.open_place(root.path, follow=False, reading=True) as place:
                if place.path != root.path:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                for engine in engines:
                    with suppress(EngineUnavailable):
                        return engine.grep_file(search, place, deadline)
        if ripgrep:
            with suppress(EngineUnavailable):
                return ripgrep.grep(search, root.path, file_filter, deadline)
        return self._fallback.grep(search, root.path, file_filter.wants, deadline)

    def glob(self, search: Search) -> SearchResult:
        root = self._find_search_root(search.path)
        if root.is_file:
            raise Refusal(
                Problem(Code.INVALID_ARGUMENTS, f"`{escape_name(search.path)}` is a file.", "Set `path` to a folder.")
            )
        deadline = SearchDeadline(search.timeout)
        file_filter = self._build_filter(replace(search, type=None), root, (search.pattern,), secrets=True)
        matches, times = self._find_files(root.path, file_filter, deadline)
        shown = _drop_hidden_paths(times, search)
        newest = sorted(shown, key=lambda path: (-shown[path], make_path_sort_key(path)))
        total = len(newest)
        return SearchResult(
            tuple(escape_name(path) for path in select_page(newest, search)),
            total,
            matches.complete,
            matches.timed_out,
            matches.engine,
            files=total,
        )

    def _find_files(
        self, folder: str, file_filter: FileFilter, deadline: SearchDeadline
    ) -> tuple[SearchMatches, dict[str, int]]:
        if self._ripgrep:
            with suppress(EngineUnavailable):
                matches = self._ripgrep.find_files(folder, file_filter, deadline)
                return matches, {path: stats.st_mtime_ns for path, stats in self._stat_plain_files(matches.counts)}
        return self._fallback.find_files(folder, file_filter.wants, deadline)

    def _find_search_root(self, path: str) -> SearchRoot:
        relative = self._jail.to_relative(path)
        with self._jail.open_place(relative, reading=True) as place:
            if place.path != relative:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            stats = place.stat()
            if stats is None:
                raise Refusal(
                    Problem(
                        Code.NOT_FOUND,
                        f"There is nothing at `{escape_name(path)}`.",
                        "Look with `glob`.",
                    )
                )
            is_folder = place.name == "." or stat.S_ISDIR(stats.st_mode)
            return SearchRoot(place.path, not is_folder)

    def _build_filter(
        self, search: Search, root: SearchRoot, patterns: tuple[str, ...], secrets: bool = False
    ) -> FileFilter:
        for pattern in patterns:
            _refuse_nul("glob", pattern)
        globs = self._parse_globs(patterns, root)
        type_globs = find_type_globs(search.type) if search.type else ()
        type_filter = Globs.from_patterns(type_globs)
        prefix_length = 0 if root.path == "." else len(root.path) + 1

        def wants(path: str) -> bool:
            inner = path[prefix_length:]
            return globs.match(inner) and type_filter.match(inner) and (secrets or not may_hold_secrets(inner))

        names = type_globs or tuple(glob.rsplit("/", 1)[-1] for glob in globs.included)
        return FileFilter(wants, () if "**" in names else names)

    def _parse_globs(self, patterns: tuple[str, ...], root: SearchRoot) -> Globs:
        parts = [part.strip() for pattern in patterns for part in pattern.split(";") if part.strip()]
        try:
            if patterns and not parts:
                raise BadGlob("it is empty")
            return Globs.from_patterns(self._to_relative_pattern(part, root) for part in parts)
        except BadGlob as error:
            raise build_glob_refusal(";".join(patterns), error) from None

    def _to_relative_pattern(self, pattern: str, root: SearchRoot) -> str:
        """Make an absolute pattern relative to the search root; refuse one that leads elsewhere."""
        negation, bare = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
        if bare.startswith("/"):
            prefix = str(self._jail.root / root.path).rstrip("/") + "/"
            if not bare.startswith(prefix):
                raise BadGlob(f"it does not begin with `{prefix}`; patterns are relative to `path`")
            bare = bare.removeprefix(prefix)
        if ".." in bare.split("/"):
            raise BadGlob("`..` leads out of the searched folder; set `path` instead")
        return negation + bare

    def _find_readable_paths(self, paths: dict[str, int]) -> set[str]:
        """Return the files that the jail would also open: plain ones with one name. The rest stay unmentioned."""
        readable: set[str] = set()
        for path, stats in self._stat_plain_files(paths):
            if stats.st_nlink > 1:
                try:
                    os.close(self._jail.open(path, os.O_RDONLY))
                except Refusal:
                    continue
            readable.add(path)
        return readable

    def _stat_plain_files(self, paths: dict[str, int]) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the plain files among these with their current state, each looked up in its own open folder."""
        folders: dict[str, list[str]] = {}
        for path in paths:
            folder, _, name = path.rpartition("/")
            folders.setdefault(folder or ".", []).append(name)
        for folder, names in folders.items():
            with suppress(Refusal), hold_folder_open(self._jail, folder) as descriptor:
                for name in names:
                    with suppress(OSError):
                        stats = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        if stat.S_ISREG(stats.st_mode):
                            yield (name if folder == "." else f"{folder}/{name}"), stats


def _drop_hidden_paths(paths: dict[str, int], search: Search) -> dict[str, int]:
    hides = search.hides
    return paths if hides is None else {path: value for path, value in paths.items() if not hides(path)}


def _find_path_inside(path: Path, root: Path) -> str | None:
    real = path.resolve()
    return str(real.relative_to(root)) if real.is_relative_to(root) and real != root else None


def _refuse_nul(argument: str, pattern: str) -> None:
    """No program takes a NUL in an argument."""
    if "\0" in pattern:
        message = f"`{argument}` contains a NUL character, which no text file does."
        raise Refusal(Problem(Code.INVALID_ARGUMENTS, message, "Leave it out."))
