"""Does this path match that pattern? One glob syntax for file search, the symbol index and .gitignore.

A pattern may come from a model or a hostile workspace, so no path may take long to match. Every star but the last takes
the first place that fits and never another: a star needs no more, and this leaves nothing to retry.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

MOST_ALTERNATIVES = 64
MOST_CHARACTERS = 1_000
ANY_DEPTH = "**"


class BadGlob(ValueError):
    """Says what is wrong with the pattern, for whoever wrote it."""


@lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern without braces, to be matched against a whole relative path."""
    if len(pattern) > MOST_CHARACTERS:
        raise BadGlob(f"it is longer than {MOST_CHARACTERS:,} characters")
    groups: list[list[str]] = [[]]
    segments = pattern.split("/")
    for segment in segments:
        if segment == ANY_DEPTH:
            groups.append([])
        else:
            groups[-1].append(_compile_segment(segment))
    first, *middle, last = groups if len(groups) > 1 else [groups[0], None]
    if last is None:
        return re.compile("(?s)" + "/".join(first or []) + r"\Z")
    parts = ["(?s)", *(f"{one}/" for one in first or [])]
    parts += ["(?>(?:[^/]+/)*?" + "".join(f"{one}/" for one in group) + ")" for group in middle if group]
    # `a/**` matches everything below `a`, but not `a` itself.
    parts.append("(?:[^/]+/)*" + ("/".join(last) if last else "[^/]+") + r"\Z")
    return re.compile("".join(parts))


def _compile_segment(segment: str) -> str:
    chunks = list(_compile_chunks(segment))
    if len(chunks) == 1:
        return chunks[0]
    first, *middle, last = chunks
    return first + "".join(f"(?>[^/]*?{one})" for one in middle if one) + f"[^/]*{last}"


def _compile_chunks(segment: str) -> Iterator[str]:
    """Yield what stands between the stars, as regular expressions."""
    chunk, at = "", 0
    while at < len(segment):
        one = segment[at]
        if one == "*":
            yield chunk
            chunk = ""
            while segment[at + 1 : at + 2] == "*":
                at += 1
        elif one == "?":
            chunk += "[^/]"
        elif one == "[" and (found := _parse_character_class(segment, at)):
            part, at = found
            chunk += part
            continue
        elif one == "\\" and at + 1 < len(segment):
            at += 1
            chunk += re.escape(segment[at])
        else:
            chunk += re.escape(one)
        at += 1
    yield chunk


def _parse_character_class(segment: str, at: int) -> tuple[str, int] | None:
    """Parse `[a-z]` or `[!abc]`: return it as a regular expression, and where it ends. An unclosed bracket is
    literal."""
    start = at + 2 if segment[at + 1 : at + 2] in ("!", "^") else at + 1
    end = segment.find("]", start + 1)
    if end < 0:
        return None
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", segment[start:end])
    # A reversed range matches nothing, as in a shell.
    inner = re.sub(r"([^\\])-([^\\])", lambda two: two[0] if two[1] <= two[2] else "", inner)
    negated = start == at + 2
    if not inner:
        return ("[^/]" if negated else r"(?!)"), end + 1
    return (f"(?!/)[{'^' if negated else ''}{inner}]"), end + 1


def expand_braces(pattern: str) -> list[str]:
    """`*.{ts,tsx}` -> `*.ts`, `*.tsx`."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        one = todo.pop()
        if braces := _find_braces(one):
            start, end, options = braces
            todo += [one[:start] + option + one[end:] for option in reversed(options)]
        else:
            done.append(one)
        if len(done) + len(todo) > MOST_ALTERNATIVES:
            raise BadGlob(f"its braces stand for more than {MOST_ALTERNATIVES} patterns")
    return done


def _find_braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """Find the first closed `{a,b}`: its start, its end and its options."""
    start = pattern.find("{")
    while start >= 0:
        depth, commas = 0, [start]
        for at in range(start, len(pattern)):
            depth += {"{": 1, "}": -1}.get(pattern[at], 0)
            if pattern[at] == "," and depth == 1:
                commas.append(at)
            if depth == 0:
                edges = [*commas, at]
                return start, at + 1, [pattern[one + 1 : two] for one, two in pairwise(edges)]
        start = pattern.find("{", start + 1)
    return None


@dataclass(frozen=True)
class Globs:
    """Several patterns: a path is wanted if one of them matches (or there is none) and none with `!` does."""

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]

    @classmethod
    def from_patterns(cls, patterns: Iterable[str]) -> "Globs":
        sides: tuple[list[str], list[str]] = ([], [])
        for pattern in patterns:
            negated = pattern.startswith("!")
            for one in expand_braces(pattern[negated:]):
                deep = _to_full_pattern(one)
                compile_glob(deep)
                sides[negated].append(deep)
        return cls(tuple(sides[0]), tuple(sides[1]))

    def match(self, path: str) -> bool:
        if self.wanted and not any(compile_glob(one).match(path) for one in self.wanted):
            return False
        return not any(compile_glob(one).match(path) for one in self.unwanted)


def _to_full_pattern(pattern: str) -> str:
    """A bare name matches at any depth; a folder stands for everything in it."""
    pattern = pattern.removeprefix("./")
    if not pattern:
        raise BadGlob("it is empty")
    if pattern.endswith("/"):
        pattern += ANY_DEPTH
    if "/" not in pattern:
        return f"{ANY_DEPTH}/{pattern}" if pattern != ANY_DEPTH else ANY_DEPTH
    return pattern
