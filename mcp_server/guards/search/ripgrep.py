"""What does a search find with ripgrep? We fix its options, and check its output against our own rules."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search import walk as search_walk
from mcp_server.guards.search.fallback import HEAD_BYTES, build_pattern_refusal, is_binary
from mcp_server.guards.search.matches import (
    MAX_LINES,
    EngineUnavailable,
    MatchLine,
    SearchDeadline,
    SearchMatches,
    shorten_line,
)
from mcp_server.guards.search.ripgrep_run import THREADS, RipgrepAccess, RipgrepOutput, run_ripgrep
from mcp_server.guards.search.walk import Walk, hold_folder_open, load_rules_above
from mcp_server.model.files import Search
from mcp_server.model.results import Code, Problem, Refusal

NAME = "ripgrep"
BASE_OPTIONS = (
    *("--no-config", "--color=never", "--no-messages", f"--threads={THREADS}", "--hidden", "--glob=!.git", "--null"),
    # Only .gitignore counts, in a repository or not, as in the fallback.
    *("--no-require-git", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
)
GREP_OPTIONS = (
    *("--no-heading", "--with-filename", "--line-number", "--crlf", "--no-mmap", "--no-context-separator"),
    # Counted in bytes; a character takes four at most.
    *("--max-columns=2100", "--max-columns-preview"),
)
RESULT_OPTIONS = {"files": ("--files-with-matches",), "count": ("--count",), "content": ()}
MAX_PATHS = 2_000
"""We exclude a private folder by naming its siblings; if there are more than this, we search in Python instead."""
SIMPLE_NAME = re.compile(r"[A-Za-z0-9_.*? +-]+")
RECORD = re.compile(rb"([^\0]+)\0(\d+)([:-])([^\n]*)\n")
COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
BINARY_WARNING = re.compile(rb"(?m)^[^\0\n]*: WARNING: stopped searching binary file[^\0\n]*\n")
"""Printed among the matches, about a file whose first NUL comes late. A match has a NUL right after its path."""


class FileFilter(Struct, frozen=True):
    """Which files are wanted? `wants` decides."""

    wants: Callable[[str], bool]
    names: tuple[str, ...] = ()
    """ripgrep may skip files that match none of these; `wants` would reject them too."""


class Ripgrep:
    def __init__(self, program: Path, jail: Jail, private: tuple[str, ...]) -> None:
        self._program, self._jail = program, jail
        self._private = private
        """menugate's own files and folders below the workspace."""

    def find_files(self, folder: str, file_filter: FileFilter, deadline: SearchDeadline) -> SearchMatches:
        result = self._run_in_sandbox(("--files",), folder, file_filter, deadline)
        paths = [_to_workspace_path(path, folder) for path in result.output.split(b"\0") if path.startswith(b"./")]
        return self._build_matches(result, dict.fromkeys(filter(file_filter.wants, paths), 1))

    def grep(self, search: Search, folder: str, file_filter: FileFilter, deadline: SearchDeadline) -> SearchMatches:
        result = self._run_in_sandbox(_build_options(search), folder, file_filter, deadline)
        return self._parse_output(result, search, file_filter.wants, lambda name: _to_workspace_path(name, folder))

    def grep_file(self, search: Search, place: JailPath, deadline: SearchDeadline) -> SearchMatches:
        """Search one file that the jail opens, through its descriptor."""
        file = self._jail.open_at(place, os.O_RDONLY)
        try:
            if is_binary(os.pread(file, HEAD_BYTES, 0)):
                return SearchMatches(engine=NAME, searched=0)
            with hold_folder_open(self._jail, ".") as folder:
                arguments = (*BASE_OPTIONS, *_build_options(search), "--", "-")
                result = run_ripgrep(self._program, arguments, RipgrepAccess(folder, (), (), file), deadline)
        finally:
            os.close(file)
        matches = self._parse_output(result, search, lambda _: True, lambda _: place.path)
        matches.searched = 1
        return matches

    def _run_in_sandbox(
        self, options: Sequence[str], folder: str, file_filter: FileFilter, deadline: SearchDeadline
    ) -> RipgrepOutput:
        paths, split_folders = self._find_readable_paths(folder, file_filter, deadline)
        ignore_files = list(self._open_ignore_files([*_list_folders_above(folder), *split_folders]))
        descriptor = self._jail.open_folder(folder, exact=True)
        try:
            access = RipgrepAccess(descriptor, tuple(paths), tuple(ignore_files))
            arguments = [*BASE_OPTIONS, *_build_name_filter(file_filter.names), *options]
            result = run_ripgrep(self._program, [*arguments, "--", *paths], access, deadline)
            if result.truncated:  # the part that is shown must not depend on which thread was faster
                result = run_ripgrep(self._program, [*arguments, "--sort=path", "--", *paths], access, deadline)
            return result
        finally:
            for file in (descriptor, *ignore_files):
                os.close(file)

    def _find_readable_paths(
        self, folder: str, file_filter: FileFilter, deadline: SearchDeadline
    ) -> tuple[list[str], list[str]]:
        """Return the paths that ripgrep may read, and the folders that were split up for that.

        Usually that is the whole folder. If it contains private paths, it is everything else in it.
        """
        if not any(_is_below(private, folder) for private in self._private):
            return ["./"], []
        paths: list[str] = []
        split_folders: list[str] = []
        walk = Walk(self._jail, folder, deadline)
        pending = [(folder, load_rules_above(self._jail, folder))]
        while pending:
            path, rules = pending.pop()
            split_folders.append(path)
            for entry, inner in walk.walk_folder(path, rules):
                inside = entry.place.path
                if inside in self._private:
                    continue
                if entry.is_folder and any(_is_below(private, inside) for private in self._private):
                    pending.append((inside, inner))
                elif entry.is_folder or (file_filter.wants(inside) and not self._is_binary(entry.place)):
                    paths.append("./" + _to_relative_path(inside, folder))
                if len(paths) > MAX_PATHS:
                    raise EngineUnavailable("too many entries beside the private folder")
        return paths, split_folders

    def _is_binary(self, place: JailPath) -> bool:
        """Is it binary? ripgrep searches such a file if its command line names it, so we must not name it."""
        try:
            file = self._jail.open_at(place, os.O_RDONLY)
        except (OSError, Refusal):
            return True
        try:
            return is_binary(os.pread(file, HEAD_BYTES, 0))
        finally:
            os.close(file)

    def _open_ignore_files(self, folders: Sequence[str]) -> Iterator[int]:
        """Open the .gitignore of each of these folders, which ripgrep's sandbox would not let it open."""
        for folder in folders:
            with suppress(Refusal, OSError):
                yield self._jail.open(f"{folder}/{search_walk.GITIGNORE}", os.O_RDONLY)

    def _parse_output(
        self, result: RipgrepOutput, search: Search, wants: Callable[[str], bool], to_path: Callable[[bytes], str]
    ) -> SearchMatches:
        _refuse_bad_pattern(result, search)
        if search.want == "files":
            names = [to_path(name) for name in result.output.split(b"\0") if name]
            return self._build_matches(result, dict.fromkeys(filter(wants, names), 1))
        if search.want == "count":
            counts = {to_path(name): int(count) for name, count in COUNT.findall(result.output)}
            return self._build_matches(result, {name: count for name, count in counts.items() if wants(name)})
        matches = self._build_matches(result, {})
        output = result.output
        for record in RECORD.finditer(BINARY_WARNING.sub(b"", output) if b"binary file" in output else output):
            name, number, sign, text = record.groups()
            text = text.removesuffix(b"\r")
            if (text or not search.only_matching) and wants(path := to_path(name)):
                is_match = sign == b":"
                shown = shorten_line(text.decode("utf-8", "surrogateescape"))
                matches.lines.append(MatchLine(path, int(number), shown, is_match))
                matches.counts[path] = matches.counts.get(path, 0) + is_match
        if len(matches.lines) > MAX_LINES:
            del matches.lines[MAX_LINES:]
            matches.complete = False
        return matches

    @staticmethod
    def _build_matches(result: RipgrepOutput, counts: dict[str, int]) -> SearchMatches:
        complete = not (result.truncated or result.timed_out)
        return SearchMatches(counts, complete=complete, timed_out=result.timed_out, engine=NAME)


def _build_options(search: Search) -> tuple[str, ...]:
    options = [*GREP_OPTIONS, *RESULT_OPTIONS[search.want]]
    options += ["--ignore-case"] if search.ignore_case else []
    options += ["--multiline", "--multiline-dotall"] if search.multiline else []
    if search.want == "content":
        if search.only_matching:
            options.append("--only-matching")
        else:
            options += [f"--before-context={search.before}", f"--after-context={search.after}"]
    return (*options, "-e", search.pattern)


def _build_name_filter(names: tuple[str, ...]) -> list[str]:
    """Let ripgrep filter by name, but only if it is certain to read the names as we do."""
    if not names or not all(SIMPLE_NAME.fullmatch(name) for name in names):
        return []
    return [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]


def _refuse_bad_pattern(result: RipgrepOutput, search: Search) -> None:
    errors = result.errors
    if result.status != 2 or not errors:
        return
    if "look-around" in errors or "backreference" in errors:
        raise EngineUnavailable("the pattern needs another engine")
    if '"\\n" is not allowed' in errors or "literal '\"\\n\"'" in errors:
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS,
                f"`{search.pattern}` contains a line break, but lines are searched one by one.",
                "Set `multiline` to true to search across lines.",
            )
        )
    reason = re.search(r"error: (.*)|(Compiled regex exceeds size limit)", errors, re.IGNORECASE)
    if reason is None or "regex" not in errors.lower():
        raise EngineUnavailable(errors)
    raise build_pattern_refusal(search.pattern, (reason[1] or "it is too large").strip().rstrip("."))


def _to_workspace_path(name: bytes, start: str) -> str:
    inner = os.fsdecode(name).removeprefix("./")
    return inner if start == "." else f"{start}/{inner}"


def _list_folders_above(start: str) -> list[str]:
    """List the folders above the start, from the workspace down."""
    names = [] if start == "." else start.split("/")
    return ["/".join(names[:depth]) or "." for depth in range(len(names))]


def _is_below(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(folder + "/")


def _to_relative_path(path: str, start: str) -> str:
    return path if start == "." else path[len(start) + 1 :]
