"""Does a wildcard pattern match a text or a path?

In texts `*` matches any characters, `?` one character, `[abc]` one of these and `{a,b}` either. In paths they match
within one name, and `**` matches any number of folders; as in a .gitignore, a pattern without `/` matches that name at
any depth, and one with `/` starts at the workspace. Paths are normalized (`./a//b/../c` is `a/c`) and compared relative
to the workspace; links are not followed here, the guards do that. A rule that narrows (`cautious`) also covers
everything below a folder that it matches, and ignores case.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

Text: TypeAlias = Callable[[str], bool | None]
Path: TypeAlias = Callable[[str], bool | None]
Segment: TypeAlias = re.Pattern[str] | None
"""One name of a path; None for `**`."""

LONGEST = 65_536
MAX_ALTERNATIVES = 64
ROOT = "/"


class Impossible(ValueError):
    """A pattern that cannot match anything; the message says why to the person who wrote it."""


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
    """Cached, because every rule asks about the same few paths."""
    return tuple(_normalize_spelling(part, cautious) for part in split_path(path, roots))


def split_path(path: str, roots: Sequence[str] = ()) -> tuple[str, ...]:
    """Split a path into its names; an absolute path that is not below a root begins with `/`."""
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


class _Pattern(Struct, frozen=True):
    segments: tuple[Segment, ...]
    absolute: bool


def _parse_path_pattern(pattern: str, cautious: bool, roots: Sequence[str]) -> _Pattern:
    if pattern.startswith(("!", "~")):
        raise Impossible(f"a path pattern cannot begin with `{pattern[0]}`.")
    parts = list(split_path(pattern, roots))
    if ".." in parts:
        raise Impossible("it leads out of the workspace; write an absolute path, starting with `/`.")
    absolute = parts[:1] == [ROOT]
    if "/" not in pattern.rstrip("/"):
        parts = ["**", *parts]
    if pattern.endswith("/") and parts[-1:] != ["**"]:
        parts.append("**")
    if not cautious and len(parts) > 1 and parts[-1] == "**":
        parts.insert(-1, "*")  # allowing what is in a folder does not allow the folder itself
    return _Pattern(tuple(None if part == "**" else _compile_name(part, cautious) for part in parts), absolute)


def _is_path_matched(pattern: _Pattern, parts: Sequence[str], cautious: bool) -> bool:
    """True if the pattern matches the whole path or, for a rule that narrows, a folder above it."""
    segments = pattern.segments
    if not cautious and parts[:1] in ((ROOT,), ("..",)) and not pattern.absolute:
        return False  # a relative pattern allows only paths in the workspace
    positions = _skip_double_stars(segments, {0})
    for part in parts:
        if cautious and len(segments) in positions:
            return True
        positions = _skip_double_stars(
            segments, {at + (segments[at] is not None) for at in positions if _is_part_matched(segments, at, part)}
        )
    return len(segments) in positions


def _is_part_matched(pattern: Sequence[Segment], at: int, part: str) -> bool:
    if at >= len(pattern):
        return False
    segment = pattern[at]
    return segment is None or segment.match(part) is not None


def _skip_double_stars(pattern: Sequence[Segment], reached: set[int]) -> set[int]:
    """Add the positions behind `**`, which may match no folder at all."""
    for at in sorted(reached):
        while at < len(pattern) and pattern[at] is None:
            at += 1
            reached = reached | {at}
    return reached


def _compile_name(pattern: str, cautious: bool) -> re.Pattern[str]:
    return re.compile(translate(_normalize_spelling(pattern, cautious)))


def _normalize_spelling(text: str, cautious: bool) -> str:
    """Return one spelling for names that some disks treat as the same."""
    return unicodedata.normalize("NFC", text.casefold() if cautious else text)


def _expand_braces(pattern: str) -> list[str]:
    alternatives = list(_list_brace_choices(pattern))
    if len(alternatives) > MAX_ALTERNATIVES:
        raise Impossible(f"its braces expand to more than {MAX_ALTERNATIVES} patterns; write several rules.")
    return alternatives


def _list_brace_choices(pattern: str) -> Iterator[str]:
    waiting, count = [pattern], 0
    while waiting and count <= MAX_ALTERNATIVES:
        one = waiting.pop()
        brace = re.search(r"(?<!\[)\{([^{}]*,[^{}]*)\}", one)
        if brace is None:
            count += 1
            yield one
        else:
            waiting += [one[: brace.start()] + choice + one[brace.end() :] for choice in reversed(brace[1].split(","))]
