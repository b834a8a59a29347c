"""Where in the workspace does this occur? One answer, whichever engine looked."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_server.guards.jail import Jail
from mcp_server.guards.refusals import escape_surrogates
from mcp_server.guards.search.fallback import FallbackSearch
from mcp_server.guards.search.file_types import find_type_globs, may_hold_secrets
from mcp_server.guards.search.globs import BadGlob, Globs
from mcp_server.guards.search.matches import (
    EngineUnavailable,
    SearchDeadline,
    SearchMatches,
    build_search_result,
    make_path_sort_key,
    select_page,
)
from mcp_server.guards.search.ripgrep import FileFilter, Ripgrep
from mcp_server.model.files import Search, SearchResult
from mcp_server.model.results import Code, Problem, Refusal


@dataclass(frozen=True, slots=True)
class SearchRoot:
    """Where a search begins: its real path below the workspace, and whether that is one file."""

    path: str
    is_file: bool


class FileSearch:
    """`ripgrep` is the program, where there is one; where it cannot be shut in, the search is done in Python."""

    def __init__(self, jail: Jail, private: tuple[Path, ...] = (), ripgrep: Path | None = None) -> None:
        self._jail = jail
        self._plain = FallbackSearch(jail)
        places = tuple(place for one in private if (place := _find_path_inside(one, jail.root)) is not None)
        self._ripgrep = None if ripgrep is None else Ripgrep(ripgrep, jail, places)

    def grep(self, search: Search) -> SearchResult:
        _refuse_nul("pattern", search.pattern)
        start = self._find_search_root(search.path)
        deadline = SearchDeadline(search.timeout)
        chosen = self._build_filter(search, start, search.globs)
        harvest = self._search_with_engines(search, start, chosen, deadline)
        readable = self._find_readable_paths(_drop_hidden_paths(harvest.counts, search))
        if len(readable) < len(harvest.counts):
            harvest.counts = {path: count for path, count in harvest.counts.items() if path in readable}
            harvest.lines = [line for line in harvest.lines if line.path in readable]
        return build_search_result(harvest, search)

    def _search_with_engines(
        self, search: Search, start: SearchRoot, chosen: FileFilter, deadline: SearchDeadline
    ) -> SearchMatches:
        engines = (self._ripgrep, self._plain) if self._ripgrep else (self._plain,)
        if start.is_file:
            with self._jail.open_place(start.path, follow=False, reading=True) as place:
                for engine in engines:
                    with suppress(EngineUnavailable):
                        return engine.grep_file(search, place, deadline)
        if self._ripgrep:
            with suppress(EngineUnavailable):
                return self._ripgrep.grep(search, start.path, chosen, deadline)
        return self._plain.grep(search, start.path, chosen.wants, deadline)

    def glob(self, search: Search) -> SearchResult:
        start = self._find_search_root(search.path)
        if start.is_file:
            raise Refusal(
                Problem(Code.INVALID_ARGUMENTS, f"`{search.path}` is a file.", "Give the folder to look in as `path`.")
            )
        deadline = SearchDeadline(search.timeout)
        chosen = self._build_filter(replace(search, type=None), start, (search.pattern,), secrets=True)
        harvest, found = self._find_files(start.path, chosen, deadline)
        times = _drop_hidden_paths(found, search)
        newest = sorted(times, key=lambda path: (-times[path], make_path_sort_key(path)))
        total = len(newest)
        return SearchResult(
            tuple(escape_surrogates(path) for path in select_page(newest, search)),
            total,
            harvest.complete,
            harvest.timed_out,
            harvest.engine,
            files=total,
        )

    def _find_files(
        self, start: str, chosen: FileFilter, deadline: SearchDeadline
    ) -> tuple[SearchMatches, dict[str, int]]:
        if self._ripgrep:
            with suppress(EngineUnavailable):
                harvest = self._ripgrep.find_files(start, chosen, deadline)
                return harvest, {path: found.st_mtime_ns for path, found in self._stat_plain_files(harvest.counts)}
        return self._plain.find_files(start, chosen.wants, deadline)

    def _find_search_root(self, path: str) -> SearchRoot:
        asked = self._jail.to_relative(path)
        with self._jail.open_place(asked, reading=True) as place:
            found = place.stat()
            if found is None:
                raise Refusal(
                    Problem(
                        Code.NOT_FOUND,
                        f"There is nothing at `{escape_surrogates(path)}`.",
                        "Call glob to see what there is.",
                    )
                )
            is_folder = place.name == "." or stat.S_ISDIR(found.st_mode)
            return SearchRoot(place.path, not is_folder)

    def _build_filter(
        self, search: Search, start: SearchRoot, patterns: tuple[str, ...], secrets: bool = False
    ) -> FileFilter:
        for pattern in patterns:
            _refuse_nul("glob", pattern)
        globs = self._parse_globs(patterns, start)
        kinds = find_type_globs(search.type) if search.type else ()
        typed = Globs.from_patterns(kinds)
        skip = 0 if start.path == "." else len(start.path) + 1

        def wants(path: str) -> bool:
            inner = path[skip:]
            return globs.match(inner) and typed.match(inner) and (secrets or not may_hold_secrets(inner))

        names = kinds or tuple(one.rsplit("/", 1)[-1] for one in globs.wanted)
        return FileFilter(wants, () if "**" in names else names)

    def _parse_globs(self, patterns: tuple[str, ...], start: SearchRoot) -> Globs:
        wanted = [one.strip() for pattern in patterns for one in pattern.split(";") if one.strip()]
        try:
            if patterns and not wanted:
                raise BadGlob("it is empty")
            return Globs.from_patterns(self._to_relative_pattern(one, start) for one in wanted)
        except BadGlob as error:
            given = ";".join(patterns)
            raise Refusal(
                Problem(
                    Code.INVALID_ARGUMENTS,
                    f"`{given}` is not a pattern for paths: {error}.",
                    "Patterns look like `*.py`, `src/**/*.ts` or `*.{js,ts}`; several stand side by side with `;`.",
                )
            ) from None

    def _to_relative_pattern(self, pattern: str, start: SearchRoot) -> str:
        """A pattern that begins with the workspace's own path means what is below it."""
        sign, bare = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
        if bare.startswith("/"):
            home = str(self._jail.root / start.path).rstrip("/") + "/"
            if not bare.startswith(home):
                raise BadGlob(f"it does not begin with `{home}`; patterns are relative to `path`")
            bare = bare.removeprefix(home)
        if ".." in bare.split("/"):
            raise BadGlob("`..` leads out of the folder that is searched; set `path` instead")
        return sign + bare

    def _find_readable_paths(self, paths: dict[str, int]) -> set[str]:
        """The files that the jail would open, too: plain ones with one name. Whatever else was met is not told."""
        found: set[str] = set()
        for path, stats in self._stat_plain_files(paths):
            if stats.st_nlink > 1:
                try:
                    os.close(self._jail.open(path, os.O_RDONLY))
                except Refusal:
                    continue
            found.add(path)
        return found

    def _stat_plain_files(self, paths: dict[str, int]) -> Iterator[tuple[str, os.stat_result]]:
        """What the plain files among these look like now, each asked in its own open folder."""
        folders: dict[str, list[str]] = {}
        for path in paths:
            folder, _, name = path.rpartition("/")
            folders.setdefault(folder or ".", []).append(name)
        for folder, names in folders.items():
            try:
                opened = self._jail.open_folder(folder)
            except Refusal:
                continue
            try:
                for name in names:
                    with suppress(OSError):
                        found = os.stat(name, dir_fd=opened, follow_symlinks=False)
                        if stat.S_ISREG(found.st_mode):
                            yield (name if folder == "." else f"{folder}/{name}"), found
            finally:
                os.close(opened)


def _drop_hidden_paths(paths: dict[str, int], search: Search) -> dict[str, int]:
    hides = search.hides
    return paths if hides is None else {path: one for path, one in paths.items() if not hides(path)}


def _find_path_inside(place: Path, root: Path) -> str | None:
    real = place.resolve()
    return str(real.relative_to(root)) if real.is_relative_to(root) and real != root else None


def _refuse_nul(what: str, pattern: str) -> None:
    """Text has none, and no program can be given one as an argument."""
    if "\0" in pattern:
        says = f"the {what} holds a NUL character, and no text does."
        raise Refusal(Problem(Code.INVALID_ARGUMENTS, says, "Leave it out."))
