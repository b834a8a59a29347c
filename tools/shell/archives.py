"""Which files does a program that packs or splits others write? Closed lists of words: some options start programs."""

import re
from collections.abc import Sequence

from tools.shell.program_arguments import is_certain, may_become_option

PACKING = re.compile("-?c[zjJvahp]*f")
UNPACKING = re.compile("-?x[zjJvp]*f")
TAR_FLAGS = re.compile(
    r"-[vzjJah]+|--(?:exclude=.+|exclude-vcs|gzip|bzip2|xz|zstd|verbose|strip-components=\d+|no-recursion)"
)
OWN_TEMPORARY = re.compile(r"/tmp(?:/(?!.*\.\.)[\w.-]+)*/?")  # noqa: S108  # the command's own
ZIP_FLAGS = re.compile("-[rqjXyv0-9]+|-[xi]")
SPLIT_FLAGS = re.compile(
    r"-[lbnaC]\d+\w*|-[dxe]+|--(?:lines|bytes|number|suffix-length|line-bytes)=\d+\w*|--(?:numeric|hex)-suffixes|--verbose"
)
SPLIT_VALUES = re.compile("-[lbnaC]")
PREFIX = re.compile(r"(?!\.)(?:\w[\w-]*/)*[\w-][\w.-]*|/tmp/[\w-][\w.-]*")


def find_packed_file(words: Sequence[str]) -> str | None:
    """Return the archive that `tar` makes; empty if it unpacks one into the command's own temporary folder; None if it
    may do more."""
    if len(words) < 2 or not is_certain(words[1]) or words[1].startswith("-") or ":" in words[1]:
        return None
    places, at = list[str](), 2
    while at < len(words):
        word = words[at]
        if word in ("-C", "--exclude"):
            if not all(map(is_certain, words[at : at + 2])) or words[at + 1 : at + 2] in ((), []):
                return None
            places += [words[at + 1]] if word == "-C" else []
            at += 1
        elif may_become_option(word) or (word.startswith("-") and not TAR_FLAGS.fullmatch(word)):
            return None
        at += 1
    if PACKING.fullmatch(words[0]):
        return words[1]
    unpacks = UNPACKING.fullmatch(words[0]) and len(places) == 1 and OWN_TEMPORARY.fullmatch(places[0])
    return "" if unpacks else None


def find_zipped_files(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the archive that `zip` writes, with the ending that it may add."""
    if any(may_become_option(word) or word.startswith("@") for word in words):
        return None
    names = [word for word in words if not word.startswith("-")]
    if len(names) < 2 or not all(ZIP_FLAGS.fullmatch(word) for word in words if word.startswith("-")):
        return None
    first = next(at for at, word in enumerate(words) if not word.startswith("-"))
    if {"-x", "-i"}.intersection(words[:first]) or not is_certain(names[0]):
        return None
    return (names[0], f"{names[0]}.zip")


def find_split_prefix(words: Sequence[str]) -> str | None:
    """Return what the names of the files begin with that `split` writes."""
    names, at = list[str](), 0
    while at < len(words):
        word = words[at]
        if not is_certain(word):
            return None
        if SPLIT_VALUES.fullmatch(word):
            if not re.fullmatch(r"\d+\w*", "".join(words[at + 1 : at + 2])):
                return None
            at += 1
        elif not word.startswith("-") or word == "-":
            names.append(word)
        elif not SPLIT_FLAGS.fullmatch(word):
            return None
        at += 1
    prefix = names[1] if len(names) == 2 else "x"
    return prefix if len(names) <= 2 and PREFIX.fullmatch(prefix) else None
