"""Which words may a program have? The few shapes that the tables of known programs are written in."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from tools.shell.program_arguments import Fits, is_certain, may_become_option


def allow_only(*options: str) -> Fits:
    """Allow file names and these options."""
    pattern = re.compile("|".join(options))
    return lambda words: all(pattern.fullmatch(word) for word in words if word.startswith(("-", "+")) and word != "-")


def has_no_words(words: Sequence[str]) -> bool:
    return not words


def allow_version(*ways: str) -> Fits:
    """Allow only one of these ways to ask for the version."""
    return lambda words: len(words) == 1 and words[0] in ways


def allow_first_word(table: Mapping[str, Fits]) -> Fits:
    """Let the first word choose which others are allowed."""
    return lambda words: bool(words) and words[0] in table and table[words[0]](words[1:])


def allow_among(*names: str) -> Fits:
    return lambda words: bool(words) and words[0] in names


def allow_any_of(*ways: Fits) -> Fits:
    return lambda words: any(fits(words) for fits in ways)


def allow_exactly(pattern: str, least: int = 0, most: int = 99) -> Fits:
    """Allow words that fit the pattern, as many as that; none of them may be unknown."""
    known = re.compile(pattern)
    return lambda words: (
        least <= len(words) <= most and all(is_certain(word) and known.fullmatch(word) is not None for word in words)
    )


def require_word(fits: Fits, *needed: str) -> Fits:
    """Allow what fits, if one of these words is among it, before `--`."""
    return lambda words: fits(words) and any(word in needed for word in takewhile(lambda one: one != "--", words))


def without_response_files(fits: Fits) -> Fits:
    """Programs of binutils and compilers read further options from a file that is given as `@FILE`."""
    return lambda words: fits(words) and not any(word.startswith("@") for word in words)


def allow_names(words: Sequence[str]) -> bool:
    """Allow words that cannot be options."""
    return not any(word.startswith(("-", "+")) or may_become_option(word) for word in words)
