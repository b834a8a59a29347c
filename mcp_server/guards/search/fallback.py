"""What does a search find without ripgrep? The same, in Python and somewhat slower."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.matches import MOST_LINES, MatchLine, SearchDeadline, SearchMatches, shorten_line
from mcp_server.guards.search.walk import Walk
from mcp_server.model.files import Search
from mcp_server.model.regex import describe_pattern_danger
from mcp_server.model.results import Code, Problem, Refusal

if TYPE_CHECKING:
    import regex

NAME = "python"
HEAD = 64 << 10
"""A NUL in the first bytes makes a file binary; ripgrep checks as many."""
MOST_FILE_BYTES = 64 << 20
LONGEST_NAMED = 200
WIDE = (b"\xff\xfe", b"\xfe\xff")
PECULIAR = re.compile(r"\(\?(?![:i)])|[*+?}]\+|\\[AZzGK]")
"""Lookaround, possessive repeats, or anchors to the ends of the text."""
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def compile_expression(search: Search) -> "regex.Pattern[str]":
    import regex  # costs a megabyte that a server without searches need not spend

    if why := describe_pattern_danger(search.pattern):
        raise build_pattern_refusal(search.pattern, why)
    flags = regex.MULTILINE
    flags |= regex.IGNORECASE if search.ignore_case else 0
    flags |= regex.DOTALL if search.multiline else 0
    try:
        return regex.compile(search.pattern, flags)
    except (regex.error, RecursionError, OverflowError, MemoryError, ValueError) as error:
        raise build_pattern_refusal(search.pattern, str(error) or "it is too large") from None


def build_pattern_refusal(pattern: str, reason: str) -> Refusal:
    named = pattern if len(pattern) <= LONGEST_NAMED else f"{pattern[:LONGEST_NAMED]}…"
    return Refusal(
        Problem(
            Code.INVALID_ARGUMENTS,
            f"`{named}` is not a regular expression that can be searched for: {reason}.",
            "To look for these characters themselves, put a backslash before each of `.*+?()[]{}|^$\\`.",
        )
    )


def is_binary(head: bytes) -> bool:
    return b"\0" in head and not head.startswith(WIDE)


class FallbackSearch:
    def __init__(self, jail: Jail) -> None:
        self._jail = jail

    def find_files(
        self, start: str, wants: Callable[[str], bool], deadline: SearchDeadline
    ) -> tuple[SearchMatches, dict[str, int]]:
        """Find the wanted files, and when each was last changed."""
        walk = Walk(self._jail, start, deadline)
        times = {found.place.path: found.mtime_ns for found in walk.walk_files() if wants(found.place.path)}
        harvest = SearchMatches(dict.fromkeys(times, 1), complete=walk.complete, timed_out=walk.timed_out, engine=NAME)
        return harvest, times

    def grep(self, search: Search, start: str, wants: Callable[[str], bool], deadline: SearchDeadline) -> SearchMatches:
        pattern = compile_expression(search)
        harvest = SearchMatches(engine=NAME, searched=0)
        walk = Walk(self._jail, start, deadline)
        for found in walk.walk_files():
            if not wants(found.place.path):
                continue
            with suppress(Refusal, OSError):  # gone, or hardlinked: not ours to read
                file = self._jail.open_at(found.place, os.O_RDONLY)
                FallbackRead(search, pattern, deadline, harvest).search_file(file, found.place.path)
            if harvest.timed_out or len(harvest.lines) >= MOST_LINES:
                harvest.complete = False
                return harvest
        harvest.complete &= walk.complete
        harvest.timed_out |= walk.timed_out
        return harvest

    def grep_file(self, search: Search, place: JailPath, deadline: SearchDeadline) -> SearchMatches:
        harvest = SearchMatches(engine=NAME, searched=0)
        pattern = compile_expression(search)
        FallbackRead(search, pattern, deadline, harvest).search_file(self._jail.open_at(place, os.O_RDONLY), place.path)
        return harvest


class FallbackRead:
    """Applies one pattern to one file."""

    def __init__(
        self, search: Search, pattern: "regex.Pattern[str]", deadline: SearchDeadline, into: SearchMatches
    ) -> None:
        self._search, self._pattern, self._deadline, self._into = search, pattern, deadline, into

    def search_file(self, file: int, path: str) -> None:
        with os.fdopen(file, "rb") as source:
            head = source.read(HEAD)
            if is_binary(head):
                return
            data = head + source.read(MOST_FILE_BYTES - len(head))
            self._into.complete &= source.read(1) == b""
        if b"\0" in data and not data.startswith(WIDE):
            if self._search.want == "count":
                return
            data = data[: data.index(b"\0")]  # what comes before it is text, and is shown
        self._into.searched = (self._into.searched or 0) + 1
        text = _decode_text(data)
        try:
            self._search_across_lines(text, path) if self._search.multiline else self._search_by_line(text, path)
        except (TimeoutError, MemoryError):  # backtracking takes memory as well as time
            self._into.complete, self._into.timed_out = False, True

    def _search_by_line(self, text: str, path: str) -> None:
        matched: dict[int, list[str]] = {}
        for number, line in self._find_candidate_lines(text):
            found = self._find_in_line(line)
            if found is None:
                continue
            matched[number] = found
            if self._search.want == "files":
                break
        self._add_matches(path, text, matched, len(matched))

    def _find_candidate_lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the lines worth checking. What matches inside a line also matches there in the whole text, unless the
        pattern uses lookaround or possessive repeats. So most files take one search, not one per line."""
        if PECULIAR.search(self._search.pattern):
            yield from enumerate(_split_lines(text))
            return
        number, at = 0, 0
        while at < len(text):
            found = self._pattern.search(text, at, timeout=self._get_seconds_left(), concurrent=True)
            if found is None:
                return
            start = text.rfind("\n", at, found.start()) + 1 or at
            if start >= len(text):
                return
            number += text.count("\n", at, start)
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            yield number, text[start:end]
            number, at = number + 1, end + 1

    def _find_in_line(self, line: str) -> list[str] | None:
        """Return the pieces of a line to show, or None if it does not match."""
        if not self._search.only_matching:
            return [line] if self._pattern.search(line, timeout=self._get_seconds_left(), concurrent=True) else None
        places = list(self._find_spans(line))
        return [line[start:end] for start, end in places if end > start] if places else None

    def _search_across_lines(self, text: str, path: str) -> None:
        lines = _split_lines(text) if self._search.want == "content" else []
        length = len(text) - text.endswith("\n")
        matched: dict[int, list[str]] = {}
        count, seen, number = 0, 0, 0
        for start, end in self._find_spans(text):
            if start > length:
                break
            count += 1
            number += text.count("\n", seen, start)
            seen = start
            pieces = text[start:end].split("\n")
            last = len(pieces) - (len(pieces) > 1 and not pieces[-1])
            for step in range(last):
                known = matched.setdefault(number + step, [])
                if self._search.only_matching:
                    known += [pieces[step]] if pieces[step] else []
                elif lines:
                    known[:] = [lines[number + step]]
            if self._search.want == "files":
                break
        self._add_matches(path, text, matched, count)

    def _find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        for found in self._pattern.finditer(text, timeout=self._get_seconds_left(), concurrent=True):
            yield found.span()

    def _get_seconds_left(self) -> float:
        left = self._deadline.seconds_left
        if left <= 0:
            raise TimeoutError
        return left

    def _add_matches(self, path: str, text: str, matched: dict[int, list[str]], count: int) -> None:
        if self._search.want == "content":
            count = sum(map(len, matched.values()))  # what is shown
        if not count:
            return
        self._into.counts[path] = count
        if self._search.want != "content":
            return
        lines = _split_lines(text)
        around = dict.fromkeys(sorted(self._find_shown_lines(matched, len(lines))))
        for number in around:
            if len(self._into.lines) >= MOST_LINES:
                self._into.complete = False
                return
            for piece in matched.get(number, [lines[number]]):
                self._into.lines.append(MatchLine(path, number + 1, shorten_line(piece), number in matched))

    def _find_shown_lines(self, matched: dict[int, list[str]], length: int) -> Iterator[int]:
        before, after = (0, 0) if self._search.only_matching else (self._search.before, self._search.after)
        for number in matched:
            yield from range(max(number - before, 0), min(number + after + 1, length))


def _decode_text(data: bytes) -> str:
    text = next(
        (data[len(mark) :].decode(encoding, "replace") for mark, encoding in MARKS if data.startswith(mark)),
        None,
    )
    text = data.decode("utf-8", "surrogateescape") if text is None else text
    return text.replace("\r\n", "\n").removesuffix("\r")


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
