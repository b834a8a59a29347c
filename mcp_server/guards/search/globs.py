"""Does this path match that pattern? One glob syntax for file search, the symbol index and .gitignore.

A pattern may come from a model or a hostile workspace, so no path may take long to match. Every star but the last is
atomic: it takes the shortest text that fits and never tries another. That always finds a match if there is one.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from mcp_server.model.results import Code, Problem, Refusal

MAX_ALTERNATIVES = 64
MAX_CHARACTERS = 1_000
ANY_DEPTH = "**"


class BadGlob(ValueError):
    """The pattern is invalid; the message says why."""


def build_glob_refusal(pattern: str, error: BadGlob) -> Refusal:
    return Refusal(
        Problem(
            Code.INVALID_ARGUMENTS,
            f"`{pattern}` is not a valid glob: {error}.",
            "Globs look like `*.py`, `src/**/*.ts` or `*.{js,ts}`; separate several with `;`.",
        )
    )


@lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern without braces; it matches a whole relative path."""
    if len(pattern) > MAX_CHARACTERS:
        raise BadGlob(f"it is longer than {MAX_CHARACTERS:,} characters")
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
    parts = ["(?s)", *(f"{segment_pattern}/" for segment_pattern in first or [])]
    parts += [
        "(?>(?:[^/]+/)*?" + "".join(f"{segment_pattern}/" for segment_pattern in group) + ")"
        for group in middle
        if group
    ]
    # `a/**` matches everything below `a`, but not `a` itself.
    parts.append("(?:[^/]+/)*" + ("/".join(last) if last else "[^/]+") + r"\Z")
    return re.compile("".join(parts))


def _compile_segment(segment: str) -> str:
    chunks = list(_compile_chunks(segment))
    if len(chunks) == 1:
        return chunks[0]
    first, *middle, last = chunks
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in middle if chunk) + f"[^/]*{last}"


def _compile_chunks(segment: str) -> Iterator[str]:
    """Yield the parts between the stars, as regular expressions."""
    chunk, offset = "", 0
    while offset < len(segment):
        character = segment[offset]
        if character == "*":
            yield chunk
            chunk = ""
            while segment[offset + 1 : offset + 2] == "*":
                offset += 1
        elif character == "?":
            chunk += "[^/]"
        elif character == "[" and (parsed := _parse_character_class(segment, offset)):
            part, offset = parsed
            chunk += part
            continue
        elif character == "\\" and offset + 1 < len(segment):
            offset += 1
            chunk += re.escape(segment[offset])
        else:
            chunk += re.escape(character)
        offset += 1
    yield chunk


def _parse_character_class(segment: str, offset: int) -> tuple[str, int] | None:
    """Parse `[a-z]` or `[!abc]`: return it as a regular expression, and where it ends. An unclosed bracket is
    literal."""
    start = offset + 2 if segment[offset + 1 : offset + 2] in ("!", "^") else offset + 1
    end = segment.find("]", start + 1)
    if end < 0:
        return None
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", segment[start:end])
    # A reversed range such as `z-a` matches nothing, as in a shell.
    inner = re.sub(r"([^\\])-([^\\])", lambda match: match[0] if match[1] <= match[2] else "", inner)
    negated = start == offset + 2
    if not inner:
        return ("[^/]" if negated else r"(?!)"), end + 1
    return (f"(?!/)[{'^' if negated else ''}{inner}]"), end + 1


def expand_braces(pattern: str) -> list[str]:
    """`*.{ts,tsx}` -> `*.ts`, `*.tsx`."""
    expanded: list[str] = []
    pending = [pattern]
    while pending:
        current = pending.pop()
        if braces := _find_braces(current):
            start, end, options = braces
            pending += [current[:start] + option + current[end:] for option in reversed(options)]
        else:
            expanded.append(current)
        if len(expanded) + len(pending) > MAX_ALTERNATIVES:
            raise BadGlob(f"its braces expand to more than {MAX_ALTERNATIVES} patterns")
    return expanded


def _find_braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """Find the first closed `{a,b}`: its start, its end and its options."""
    start = pattern.find("{")
    while start >= 0:
        depth, commas = 0, [start]
        for offset in range(start, len(pattern)):
            depth += {"{": 1, "}": -1}.get(pattern[offset], 0)
            if pattern[offset] == "," and depth == 1:
                commas.append(offset)
            if depth == 0:
                edges = [*commas, offset]
                return start, offset + 1, [pattern[left + 1 : right] for left, right in pairwise(edges)]
        start = pattern.find("{", start + 1)
    return None


class Globs(Struct, frozen=True):
    """Several patterns: a path matches if it matches one of `included` (or there are none) and none of `excluded`."""

    included: tuple[str, ...]
    excluded: tuple[str, ...]

    @classmethod
    def from_patterns(cls, patterns: Iterable[str]) -> "Globs":
        globs: tuple[list[str], list[str]] = ([], [])
        for pattern in patterns:
            negated = pattern.startswith("!")
            for alternative in expand_braces(pattern[negated:]):
                glob = _to_full_pattern(alternative)
                compile_glob(glob)
                globs[negated].append(glob)
        return cls(tuple(globs[0]), tuple(globs[1]))

    def match(self, path: str) -> bool:
        if self.included and not any(compile_glob(glob).match(path) for glob in self.included):
            return False
        return not any(compile_glob(glob).match(path) for glob in self.excluded)


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
