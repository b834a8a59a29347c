"""What does a search find without ripgrep? The same, but in Python and slower."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_server.guards.jail import Jail, JailPath
from mcp_server.guards.search.matches import MAX_LINES, MatchLine, SearchDeadline, SearchMatches, shorten_line
from mcp_server.guards.search.walk import Walk
from mcp_server.model.files import Search
from mcp_server.model.regex import describe_pattern_danger
from mcp_server.model.results import Code, Problem, Refusal

if TYPE_CHECKING:
    import regex

NAME = "python"
HEAD_BYTES = 64 << 10
"""A NUL within the first 64 KB makes a file binary, as in ripgrep."""
MAX_FILE_BYTES = 64 << 20
MAX_SHOWN_PATTERN_CHARS = 200
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UNSAFE_ACROSS_LINES = re.compile(r"\(\?(?![:i)])|[*+?}]\+|\\[AZzGK]")
"""Lookaround, possessive repeats and anchors to the ends of the text match differently within a line."""
BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def compile_expression(search: Search) -> "regex.Pattern[str]":
    import regex  # costs a megabyte that a server without searches need not spend

    if danger := describe_pattern_danger(search.pattern):
        raise build_pattern_refusal(search.pattern, danger)
    flags = regex.MULTILINE
    flags |= regex.IGNORECASE if search.ignore_case else 0
    flags |= regex.DOTALL if search.multiline else 0
    try:
        return regex.compile(search.pattern, flags)
    except (regex.error, RecursionError, OverflowError, MemoryError, ValueError) as error:
        raise build_pattern_refusal(search.pattern, str(error) or "it is too large") from None


def build_pattern_refusal(pattern: str, reason: str) -> Refusal:
    shown = pattern if len(pattern) <= MAX_SHOWN_PATTERN_CHARS else f"{pattern[:MAX_SHOWN_PATTERN_CHARS]}…"
    return Refusal(
        Problem(
            Code.INVALID_ARGUMENTS,
            f"`{shown}` cannot be used as a regular expression: {reason}.",
            "To search for the literal text, put a backslash before each of `.*+?()[]{}|^$\\`.",
        )
    )


def is_binary(head: bytes) -> bool:
    return b"\0" in head and not head.startswith(UTF16_MARKS)


class FallbackSearch:
    def __init__(self, jail: Jail) -> None:
        self._jail = jail

    def find_files(
        self, folder: str, wants: Callable[[str], bool], deadline: SearchDeadline
    ) -> tuple[SearchMatches, dict[str, int]]:
        """Return the wanted files, and when each was last changed."""
        walk = Walk(self._jail, folder, deadline)
        times = {entry.place.path: entry.mtime_ns for entry in walk.walk_files() if wants(entry.place.path)}
        matches = SearchMatches(dict.fromkeys(times, 1), complete=walk.complete, timed_out=walk.timed_out, engine=NAME)
        return matches, times

    def grep(
        self, search: Search, folder: str, wants: Callable[[str], bool], deadline: SearchDeadline
    ) -> SearchMatches:
        pattern = compile_expression(search)
        matches = SearchMatches(engine=NAME, searched=0)
        walk = Walk(self._jail, folder, deadline)
        for entry in walk.walk_files():
            if not wants(entry.place.path):
                continue
            with suppress(Refusal, OSError):  # gone by now, or hardlinked, which the jail refuses
                file = self._jail.open_at(entry.place, os.O_RDONLY)
                FallbackRead(search, pattern, deadline, matches).search_file(file, entry.place.path)
            if matches.timed_out or len(matches.lines) >= MAX_LINES:
                matches.complete = False
                return matches
        matches.complete &= walk.complete
        matches.timed_out |= walk.timed_out
        return matches

    def grep_file(self, search: Search, place: JailPath, deadline: SearchDeadline) -> SearchMatches:
        matches = SearchMatches(engine=NAME, searched=0)
        pattern = compile_expression(search)
        FallbackRead(search, pattern, deadline, matches).search_file(self._jail.open_at(place, os.O_RDONLY), place.path)
        return matches


class FallbackRead:
    """Applies one pattern to one file."""

    def __init__(
        self, search: Search, pattern: "regex.Pattern[str]", deadline: SearchDeadline, matches: SearchMatches
    ) -> None:
        self._search, self._pattern, self._deadline, self._matches = search, pattern, deadline, matches

    def search_file(self, file: int, path: str) -> None:
        with os.fdopen(file, "rb") as source:
            head = source.read(HEAD_BYTES)
            if is_binary(head):
                return
            data = head + source.read(MAX_FILE_BYTES - len(head))
            self._matches.complete &= source.read(1) == b""
        if b"\0" in data and not data.startswith(UTF16_MARKS):
            if self._search.want == "count":
                return
            data = data[: data.index(b"\0")]  # like ripgrep, show what comes before the NUL
        self._matches.searched = (self._matches.searched or 0) + 1
        text = _decode_text(data)
        try:
            self._search_across_lines(text, path) if self._search.multiline else self._search_by_line(text, path)
        except (TimeoutError, MemoryError):  # backtracking takes memory as well as time
            self._matches.complete, self._matches.timed_out = False, True

    def _search_by_line(self, text: str, path: str) -> None:
        matched: dict[int, list[str]] = {}
        for number, line in self._find_candidate_lines(text):
            pieces = self._find_in_line(line)
            if pieces is None:
                continue
            matched[number] = pieces
            if self._search.want == "files":
                break
        self._add_matches(path, text, matched, len(matched))

    def _find_candidate_lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the lines worth checking. Most patterns that match in a line also match there in the whole text, so a
        file without matches takes one search, not one per line."""
        if UNSAFE_ACROSS_LINES.search(self._search.pattern):
            yield from enumerate(_split_lines(text))
            return
        number, offset = 0, 0
        while offset < len(text):
            match = self._pattern.search(text, offset, timeout=self._get_seconds_left(), concurrent=True)
            if match is None:
                return
            start = text.rfind("\n", offset, match.start()) + 1 or offset
            if start >= len(text):
                return
            number += text.count("\n", offset, start)
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            yield number, text[start:end]
            number, offset = number + 1, end + 1

    def _find_in_line(self, line: str) -> list[str] | None:
        """Return the pieces of a line to show, or None if it does not match."""
        if not self._search.only_matching:
            return [line] if self._pattern.search(line, timeout=self._get_seconds_left(), concurrent=True) else None
        spans = list(self._find_spans(line))
        return [line[start:end] for start, end in spans if end > start] if spans else None

    def _search_across_lines(self, text: str, path: str) -> None:
        lines = _split_lines(text) if self._search.want == "content" else []
        length = len(text) - text.endswith("\n")
        matched: dict[int, list[str]] = {}
        count, counted_to, number = 0, 0, 0
        for start, end in self._find_spans(text):
            if start > length:
                break
            count += 1
            number += text.count("\n", counted_to, start)
            counted_to = start
            pieces = text[start:end].split("\n")
            last = len(pieces) - (len(pieces) > 1 and not pieces[-1])
            for index in range(last):
                line_pieces = matched.setdefault(number + index, [])
                if self._search.only_matching:
                    line_pieces += [pieces[index]] if pieces[index] else []
                elif lines:
                    line_pieces[:] = [lines[number + index]]
            if self._search.want == "files":
                break
        self._add_matches(path, text, matched, count)

    def _find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        for match in self._pattern.finditer(text, timeout=self._get_seconds_left(), concurrent=True):
            yield match.span()

    def _get_seconds_left(self) -> float:
        seconds_left = self._deadline.seconds_left
        if seconds_left <= 0:
            raise TimeoutError
        return seconds_left

    def _add_matches(self, path: str, text: str, matched: dict[int, list[str]], count: int) -> None:
        if self._search.want == "content":
            count = sum(map(len, matched.values()))  # count what is shown
        if not count:
            return
        self._matches.counts[path] = count
        if self._search.want != "content":
            return
        lines = _split_lines(text)
        shown_lines = dict.fromkeys(sorted(self._find_shown_lines(matched, len(lines))))
        for number in shown_lines:
            if len(self._matches.lines) >= MAX_LINES:
                self._matches.complete = False
                return
            for piece in matched.get(number, [lines[number]]):
                self._matches.lines.append(MatchLine(path, number + 1, shorten_line(piece), number in matched))

    def _find_shown_lines(self, matched: dict[int, list[str]], length: int) -> Iterator[int]:
        before, after = (0, 0) if self._search.only_matching else (self._search.before, self._search.after)
        for number in matched:
            yield from range(max(number - before, 0), min(number + after + 1, length))


def _decode_text(data: bytes) -> str:
    text = next(
        (data[len(mark) :].decode(encoding, "replace") for mark, encoding in BYTE_ORDER_MARKS if data.startswith(mark)),
        None,
    )
    text = data.decode("utf-8", "surrogateescape") if text is None else text
    return text.replace("\r\n", "\n").removesuffix("\r")


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
