"""What does a search find with ripgrep? Its options are pinned, and our own rules check its output again."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search import walk as search_walk
from mcp_server.guards.search.fallback import HEAD, build_pattern_refusal, is_binary
from mcp_server.guards.search.matches import (
    MOST_LINES,
    EngineUnavailable,
    MatchLine,
    SearchDeadline,
    SearchMatches,
    shorten_line,
)
from mcp_server.guards.search.ripgrep_run import THREADS, RipgrepAccess, RipgrepOutput, run_ripgrep
from mcp_server.guards.search.walk import Walk, load_rules_above
from mcp_server.model.files import Search
from mcp_server.model.results import Code, Problem, Refusal

NAME = "ripgrep"
ALWAYS = (
    *("--no-config", "--color=never", "--no-messages", f"--threads={THREADS}", "--hidden", "--glob=!.git", "--null"),
    # Only .gitignore decides, in a repository or not, as in the other engine.
    *("--no-require-git", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
)
GREP = (
    *("--no-heading", "--with-filename", "--line-number", "--crlf", "--no-mmap", "--no-context-separator"),
    # Counted in bytes; one shown character takes four at most.
    *("--max-columns=2100", "--max-columns-preview"),
)
WANT = {"files": ("--files-with-matches",), "count": ("--count",), "content": ()}
MOST_PATHS = 2_000
"""The private folder is excluded by naming its siblings; with more entries than this, we search in Python instead."""
SIMPLE_NAME = re.compile(r"[A-Za-z0-9_.*? +-]+")
RECORD = re.compile(rb"([^\0]+)\0(\d+)([:-])([^\n]*)\n")
COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
BINARY = re.compile(rb"(?m)^[^\0\n]*: WARNING: stopped searching binary file[^\0\n]*\n")
"""Printed in between, about a file whose first NUL comes late. Not a match: a match has a NUL right after its path."""


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Which files are wanted: names by which ripgrep may skip files, and the test that decides."""

    wants: Callable[[str], bool]
    names: tuple[str, ...] = ()


class Ripgrep:
    def __init__(self, program: Path, jail: Jail, private: tuple[str, ...]) -> None:
        self._program, self._jail = program, jail
        self._private = private
        """menugate's own places below the workspace."""

    def find_files(self, start: str, chosen: FileFilter, deadline: SearchDeadline) -> SearchMatches:
        said = self._run_shut_in(("--files",), start, chosen, deadline)
        paths = [_to_workspace_path(one, start) for one in said.output.split(b"\0") if one.startswith(b"./")]
        return self._build_matches(said, dict.fromkeys(filter(chosen.wants, paths), 1))

    def grep(self, search: Search, start: str, chosen: FileFilter, deadline: SearchDeadline) -> SearchMatches:
        said = self._run_shut_in(_build_options(search), start, chosen, deadline)
        return self._parse_output(said, search, chosen.wants, lambda name: _to_workspace_path(name, start))

    def grep_file(self, search: Search, place: JailPath, deadline: SearchDeadline) -> SearchMatches:
        """Search one file, which the jail opened, through its descriptor."""
        file = self._jail.open_at(place, os.O_RDONLY)
        try:
            if is_binary(os.pread(file, HEAD, 0)):
                return SearchMatches(engine=NAME, searched=0)
            folder = self._jail.open_folder(".")
            try:
                said = run_ripgrep(
                    self._program,
                    (*ALWAYS, *_build_options(search), "--", "-"),
                    RipgrepAccess(folder, (), (), file),
                    deadline,
                )
            finally:
                os.close(folder)
        finally:
            os.close(file)
        _refuse_bad_pattern(said, search)
        harvest = self._parse_output(said, search, lambda _: True, lambda _: place.path)
        harvest.searched = 1
        return harvest

    def _run_shut_in(
        self, options: Sequence[str], start: str, chosen: FileFilter, deadline: SearchDeadline
    ) -> RipgrepOutput:
        paths, opened = self._find_readable_paths(start, chosen, deadline)
        lent = list(self._open_ignore_files([*_list_folders_above(start), *opened]))
        folder = self._jail.open_folder(start)
        try:
            reach = RipgrepAccess(folder, tuple(paths), tuple(lent))
            words = [*ALWAYS, *_build_name_filter(chosen.names), *options]
            said = run_ripgrep(self._program, [*words, "--", *paths], reach, deadline)
            if said.cut:  # Which part of too much is shown must not depend on which thread was faster.
                said = run_ripgrep(self._program, [*words, "--sort=path", "--", *paths], reach, deadline)
            return said
        finally:
            for file in (folder, *lent):
                os.close(file)

    def _find_readable_paths(
        self, start: str, chosen: FileFilter, deadline: SearchDeadline
    ) -> tuple[list[str], list[str]]:
        """Return what may be read, and which folders had to be split for that: the start, or everything in it except
        the private places."""
        if not any(_is_below(one, start) for one in self._private):
            return ["./"], []
        found: list[str] = []
        opened: list[str] = []
        walk = Walk(self._jail, start, deadline)
        todo = [(start, load_rules_above(self._jail, start))]
        while todo:
            path, rules = todo.pop()
            opened.append(path)
            for entry, inner in walk.walk_folder(path, rules):
                inside = entry.place.path
                if inside in self._private:
                    continue
                if entry.is_folder and any(_is_below(one, inside) for one in self._private):
                    todo.append((inside, inner))
                elif entry.is_folder or (chosen.wants(inside) and not self._is_binary(entry.place)):
                    found.append("./" + _to_relative_path(inside, start))
                if len(found) > MOST_PATHS:
                    raise EngineUnavailable("too many entries beside the private folder")
        return found, opened

    def _is_binary(self, place: JailPath) -> bool:
        """ripgrep searches a file named on its command line even if it is binary, so do not name it."""
        try:
            file = self._jail.open_at(place, os.O_RDONLY)
        except (OSError, Refusal):
            return True
        try:
            return is_binary(os.pread(file, HEAD, 0))
        finally:
            os.close(file)

    def _open_ignore_files(self, folders: Sequence[str]) -> Iterator[int]:
        """Open the .gitignore of each of these folders, so that ripgrep can read it though the folder itself is
        closed."""
        for folder in folders:
            with suppress(Refusal, OSError):
                yield self._jail.open(f"{folder}/{search_walk.FILE}", os.O_RDONLY)

    def _parse_output(
        self, said: RipgrepOutput, search: Search, wants: Callable[[str], bool], path: Callable[[bytes], str]
    ) -> SearchMatches:
        _refuse_bad_pattern(said, search)
        if search.want == "files":
            names = [path(one) for one in said.output.split(b"\0") if one]
            return self._build_matches(said, dict.fromkeys(filter(wants, names), 1))
        if search.want == "count":
            counts = {path(name): int(count) for name, count in COUNT.findall(said.output)}
            return self._build_matches(said, {name: count for name, count in counts.items() if wants(name)})
        harvest = self._build_matches(said, {})
        for record in RECORD.finditer(BINARY.sub(b"", said.output) if b"binary file" in said.output else said.output):
            name, number, sign, text = record.groups()
            text = text.removesuffix(b"\r")
            if (text or not search.only_matching) and wants(where := path(name)):
                matched = sign == b":"
                shown = shorten_line(text.decode("utf-8", "surrogateescape"))
                harvest.lines.append(MatchLine(where, int(number), shown, matched))
                harvest.counts[where] = harvest.counts.get(where, 0) + matched
        if len(harvest.lines) > MOST_LINES:
            del harvest.lines[MOST_LINES:]
            harvest.complete = False
        return harvest

    @staticmethod
    def _build_matches(said: RipgrepOutput, counts: dict[str, int]) -> SearchMatches:
        whole = not (said.cut or said.timed_out)
        return SearchMatches(counts, complete=whole, timed_out=said.timed_out, engine=NAME)


def _build_options(search: Search) -> tuple[str, ...]:
    words = [*GREP, *WANT[search.want]]
    words += ["--ignore-case"] if search.ignore_case else []
    words += ["--multiline", "--multiline-dotall"] if search.multiline else []
    if search.want == "content":
        if search.only_matching:
            words.append("--only-matching")
        else:
            words += [f"--before-context={search.before}", f"--after-context={search.after}"]
    return (*words, "-e", search.pattern)


def _build_name_filter(names: tuple[str, ...]) -> list[str]:
    """ripgrep may filter by name itself only if it certainly reads the names as we do."""
    if not names or not all(SIMPLE_NAME.fullmatch(name) for name in names):
        return []
    return [*(f"--type-add=wanted:{name}" for name in names), "--type=wanted"]


def _refuse_bad_pattern(said: RipgrepOutput, search: Search) -> None:
    complaint = said.complaint
    if said.status != 2 or not complaint:
        return
    if "look-around" in complaint or "backreference" in complaint:
        raise EngineUnavailable("the pattern needs another engine")
    if '"\\n" is not allowed' in complaint or "literal '\"\\n\"'" in complaint:
        raise Refusal(
            Problem(
                Code.INVALID_ARGUMENTS,
                f"`{search.pattern}` looks for a line end, and lines are searched one by one.",
                "Set `multiline` to true to search across lines.",
            )
        )
    reason = re.search(r"error: (.*)|(Compiled regex exceeds size limit)", complaint, re.IGNORECASE)
    if reason is None or "regex" not in complaint.lower():
        raise EngineUnavailable(complaint)
    raise build_pattern_refusal(search.pattern, (reason[1] or "it becomes too large").strip().rstrip("."))


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
