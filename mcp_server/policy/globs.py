"""Does a wildcard pattern fit a text or a path?

Texts: `*` any run, `?` one character, `[abc]` one of these, `{a,b}` either. Paths: the same within one name, `**` any
number of folders; as in a .gitignore, a pattern without `/` fits that name at any depth, and one with `/` starts at
the workspace. Paths are compared as written, put in order (`./a//b/../c` is `a/c`), relative to the workspace; links
are not followed here, the guards do that. A rule that narrows covers whatever is beneath a folder it fits, and ignores
upper and lower case.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import TypeAlias

Text: TypeAlias = Callable[[str], bool | None]
Path: TypeAlias = Callable[[str], bool | None]
Segment: TypeAlias = re.Pattern[str] | None
"""One name of a path; None for `**`."""

LONGEST = 65_536
MOST_BRACES = 64
ROOT = "/"


class Impossible(ValueError):
    """Why a pattern can fit nothing, in words for the person who wrote it."""


def compile_text_glob(pattern: str, cautious: bool) -> Text:
    compiled = [_compile_name(one, cautious) for one in _expand_braces(pattern)]

    def fits(text: str) -> bool | None:
        if len(text) > LONGEST:
            return None
        plain = _normalize_spelling(text, cautious)
        return any(one.match(plain) for one in compiled)

    return fits


def compile_path_glob(pattern: str, cautious: bool, roots: Sequence[str] = ()) -> Path:
    """`roots` are the absolute paths under which the workspace is known."""
    patterns, places = [_parse_path_pattern(one, cautious, roots) for one in _expand_braces(pattern)], tuple(roots)

    def fits(path: str) -> bool | None:
        if len(path) > LONGEST or "\0" in path:
            return None
        parts = _normalize_path_parts(path, cautious, places)
        return any(_is_path_matched(one, parts, cautious) for one in patterns)

    return fits


@lru_cache(maxsize=16)
def _normalize_path_parts(path: str, cautious: bool, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The last few are remembered, because every rule asks about the same one."""
    return tuple(_normalize_spelling(part, cautious) for part in split_path(path, roots))


def split_path(path: str, roots: Sequence[str] = ()) -> tuple[str, ...]:
    """The names along a path, in order; an absolute one that is not beneath a root begins with `/`."""
    parts: list[str] = [ROOT] if path.startswith("/") else []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("..", ROOT):
            parts.pop()
        elif part not in ("", ".") and not (part == ".." and parts == [ROOT]):
            parts.append(part)
    for root in roots:
        beneath = [ROOT, *(part for part in root.split("/") if part)]
        if parts[: len(beneath)] == beneath:
            return tuple(parts[len(beneath) :])
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class _Pattern:
    segments: tuple[Segment, ...]
    absolute: bool


def _parse_path_pattern(pattern: str, cautious: bool, roots: Sequence[str]) -> _Pattern:
    if pattern.startswith(("!", "~")):
        raise Impossible(f"a path pattern cannot begin with `{pattern[0]}`.")
    parts = list(split_path(pattern, roots))
    if ".." in parts:
        raise Impossible("it points outside of the workspace; write such a path from `/` on.")
    absolute = parts[:1] == [ROOT]
    if "/" not in pattern.rstrip("/"):
        parts = ["**", *parts]
    if pattern.endswith("/") and parts[-1:] != ["**"]:
        parts.append("**")
    if not cautious and len(parts) > 1 and parts[-1] == "**":
        parts.insert(-1, "*")  # to allow what is in a folder is not to allow the folder
    return _Pattern(tuple(None if part == "**" else _compile_name(part, cautious) for part in parts), absolute)


def _is_path_matched(pattern: _Pattern, parts: Sequence[str], cautious: bool) -> bool:
    """Does the pattern fit the whole path, or, for a rule that narrows, a folder it is in?"""
    segments = pattern.segments
    if not cautious and parts[:1] in ((ROOT,), ("..",)) and not pattern.absolute:
        return False  # what is allowed by name is allowed in the workspace
    here = _skip_double_stars(segments, {0})
    for part in parts:
        if cautious and len(segments) in here:
            return True
        here = _skip_double_stars(
            segments, {at + (segments[at] is not None) for at in here if _is_part_matched(segments, at, part)}
        )
    return len(segments) in here


def _is_part_matched(pattern: Sequence[Segment], at: int, part: str) -> bool:
    if at >= len(pattern):
        return False
    segment = pattern[at]
    return segment is None or segment.match(part) is not None


def _skip_double_stars(pattern: Sequence[Segment], reached: set[int]) -> set[int]:
    """`**` may stand for no folder at all."""
    for at in sorted(reached):
        while at < len(pattern) and pattern[at] is None:
            at += 1
            reached = reached | {at}
    return reached


def _compile_name(pattern: str, cautious: bool) -> re.Pattern[str]:
    return re.compile(translate(_normalize_spelling(pattern, cautious)))


def _normalize_spelling(text: str, cautious: bool) -> str:
    """One spelling for what some disks hold to be one name."""
    return unicodedata.normalize("NFC", text.casefold() if cautious else text)


def _expand_braces(pattern: str) -> list[str]:
    found = list(_list_brace_choices(pattern))
    if len(found) > MOST_BRACES:
        raise Impossible(f"its braces stand for more than {MOST_BRACES} patterns; write several rules.")
    return found


def _list_brace_choices(pattern: str) -> Iterator[str]:
    waiting, count = [pattern], 0
    while waiting and count <= MOST_BRACES:
        one = waiting.pop()
        brace = re.search(r"(?<!\[)\{([^{}]*,[^{}]*)\}", one)
        if brace is None:
            count += 1
            yield one
        else:
            waiting += [one[: brace.start()] + choice + one[brace.end() :] for choice in reversed(brace[1].split(","))]
