"""Which files does a command delete or overwrite, as far as its words say?

A closed table of programs. Of a word that is not known yet, or of words that the table does not take apart, it is said
that something is lost, and not what.
"""

import math
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product, takewhile
from typing import NamedTuple, TypeAlias

from mcp_server.model.shell import ShellWord, WordRole
from mcp_server.model.tools import Loss, LossDoubt, LossKind
from tools.shell.line_judge import strip_keywords
from tools.shell.line_scope import REDIRECTION
from tools.shell.place_judge import STREAMS
from tools.shell.program_arguments import (
    BRACES,
    SOME_UNKNOWN,
    is_certain,
    is_unknown,
    read_argument,
    show_argument,
)
from tools.shell.runners import STARTING
from tools.shell.sed_scripts import SedCall, read_sed_call
from tools.shell.starters import READ_BY_XARGS
from tools.shell.verdicts import NeedsApproval

OVERWRITING = frozenset((">", ">|", "&>", ">&"))
SYSTEM = re.compile(r"/(?:usr/)?bin/(\w+)")
DELETING = frozenset(("rm", "rmdir", "unlink"))
DEEPEST = 4
MOST_SPELLINGS = 100
UNREAD_SIGNS = frozenset("'\"\\<>…")


class LossPlace(NamedTuple):
    """Where a command runs, as far as that is known."""

    folders: Sequence[str] = (".",)
    """Below the workspace. If there are several, earlier parts decide which one; if there is none, nobody knows."""
    altered: bool = False
    """An earlier part may have changed what is there."""


Lost: TypeAlias = tuple[LossKind, str]
"""What happens, and the word that says to what."""
Find: TypeAlias = Callable[[Sequence[str]], Iterator[Lost]]


def find_losses(words: Sequence[ShellWord], place: LossPlace) -> Iterator[Loss]:
    """Find them in a command that runs there."""
    try:
        plain = strip_keywords(words) if words else ()
    except NeedsApproval:
        return
    for does, word in _find_lost(tuple(_read_word(word) for word in plain if word.role is WordRole.WORD), DEEPEST):
        yield from _build_losses(does, word, place)
    for word in plain:
        sign = REDIRECTION.match(word.source) if word.role is WordRole.TARGET else None
        is_plain = word.known and not set(word.source) & set("*?[{~") and word.text not in STREAMS
        if sign is not None and sign[1] in OVERWRITING and is_plain and not word.text.isdecimal():
            yield from _build_losses("overwrites", word.text, place)


def _read_word(word: ShellWord) -> str:
    try:
        return read_argument(word)
    except NeedsApproval:
        return SOME_UNKNOWN + word.source


def _find_lost(words: Sequence[str], depth: int) -> Iterator[Lost]:
    if not words or not depth or not is_certain(words[0]):
        return
    system = SYSTEM.fullmatch(words[0])
    name, rest = system[1] if system else words[0], tuple(words[1:])
    if name == "find":
        yield from _find_found(rest, depth)
    elif name in LOSING:
        yield from LOSING[name](rest)
    elif name in STARTING:
        try:
            started = STARTING[name](rest)
        except NeedsApproval:
            started = None
        if started is None and any(word in DELETING for word in rest):
            yield "deletes", ""
        for one in started or ():
            yield from _find_lost(one, depth - 1)


def _build_losses(does: LossKind, word: str, place: LossPlace) -> Iterator[Loss]:
    """Behind a link, `..` is another folder than the text says, so it stays for who can look. A slash at the end stands
    for what a link leads to."""
    shown = "" if READ_BY_XARGS in word else show_argument(word)
    if not (word and is_certain(word) and word == shown) or BRACES.search(shown):
        yield Loss(does, shown, known=False, fits=_list_patterns(word, shown, place))
        return
    folders = (".",) if word.startswith("/") else place.folders
    doubt: LossDoubt = "folder" if len(folders) != 1 else ("altered" if place.altered else "")
    if not folders:
        yield Loss(does, shown, known=False, doubt=doubt)
    for folder in folders:
        joined = word if folder == "." else posixpath.join(folder, word)
        if ".." not in word.split("/"):
            joined = posixpath.normpath(joined) + ("/" if joined.endswith("/") else "")
        yield Loss(does, joined, doubt=doubt)


def _list_patterns(word: str, shown: str, place: LossPlace) -> tuple[str, ...]:
    """List what the word must fit, in each folder where it may be."""
    shown = f"{shown[:-1]}*" if shown.endswith("/…") else shown
    may_be_quoted = is_unknown(word) and set(shown) & UNREAD_SIGNS
    if not shown or may_be_quoted or shown[:1] == "~" or set(shown) & set("$`"):
        return ()
    folders = (".",) if shown.startswith("/") else place.folders
    return tuple(
        one if folder == "." else posixpath.join(folder, one) for folder in folders for one in _expand_braces(shown)
    )


def _expand_braces(pattern: str) -> Iterator[str]:
    """What is nested, or would be too many, becomes a pattern that fits all of it."""
    pieces = BRACES.split(pattern)
    choices = [one[1:-1].split(",") if ".." not in one else ["*"] for one in BRACES.findall(pattern)]
    if math.prod(map(len, choices)) > MOST_SPELLINGS or set("".join(pieces)) & set("{}"):
        yield re.sub(r"\{.*\}", "*", pattern)
        return
    for chosen in product(*choices):
        yield "".join(chain.from_iterable(zip(pieces, (*chosen, ""), strict=True)))


# What does each program lose?


def _each(does: LossKind, names: Iterable[str]) -> Iterator[Lost]:
    for name in names:
        yield does, name


def split_words(words: Sequence[str], valued: str = "(?!)") -> tuple[list[str], list[str]]:
    """Return the options and the other words; an option that takes the next word keeps it."""
    options, names, at = list[str](), list[str](), 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return options, [*names, *words[at + 1 :]]
        if is_certain(word) and word.startswith("-") and len(word) > 1 and word == show_argument(word):
            options.append(word)
            at += re.fullmatch(valued, word) is not None
        else:
            names.append(word)
        at += 1
    return options, names


def has_letter(options: Sequence[str], letters: str, *names: str) -> bool:
    return any(
        (not one.startswith("--") and bool(set(letters) & set(one))) or one.split("=")[0] in names for one in options
    )


def lose_deleted(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words)
    does: LossKind = "deletes" if has_letter(options, "rR", "--recursive") else "unlinks"
    yield from _each(does, names)


def lose_empty_folders(words: Sequence[str]) -> Iterator[Lost]:
    yield from _each("removes", split_words(words)[1])


def lose_moved_over(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[tS]")
    yield from _lose_at_destination(options, names, "replaces")


def lose_copied_over(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[tS]")
    yield from _lose_at_destination(options, names, "overwrites")
    if has_letter(options, "n", "--no-clobber") or not has_letter(options, "raR", "--recursive", "--archive"):
        return
    for name in names[:-1]:
        into = names[-1] if name.endswith("/.") or has_letter(options, "T") else _join(names[-1], name)
        yield "overwrites in", into


def _lose_at_destination(options: Sequence[str], names: Sequence[str], does: LossKind) -> Iterator[Lost]:
    """With several sources, or if a folder is there, it is what has a source's name in it."""
    if has_letter(options, "n", "--no-clobber"):
        return
    if has_letter(options, "t", "--target-directory"):
        yield does, ""
    elif len(names) > 1:
        inside = [] if has_letter(options, "T") else [_join(names[-1], name) for name in names[:-1]]
        # What is said of an unknown folder includes the folder itself.
        is_included = len(names) > 2 or any(map(is_inside_unknown, inside))
        itself = () if is_included else (names[-1],)
        yield from _each(does, dict.fromkeys((*itself, *inside)))


INSIDE = "/…"
"""Behind a word that only bash can tell: the file itself, or files in it if it is a folder."""


def is_inside_unknown(word: str) -> bool:
    return not is_certain(word) and word.endswith(INSIDE)


def _join(folder: str, name: str) -> str:
    if not is_certain(folder) or not is_certain(name):
        return SOME_UNKNOWN + show_argument(folder) + INSIDE
    return posixpath.join(folder, posixpath.basename(name.rstrip("/")))


def lose_linked_over(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[tS]")
    if not has_letter(options, "f", "--force"):
        return
    if len(names) == 2 and has_letter(options, "nT", "--no-dereference"):
        yield "relinks", names[1]
    else:
        yield from _lose_at_destination([one for one in options if one.startswith("--")], names, "replaces")


def lose_overwritten(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[srnoi]")
    if not has_letter(options, "a", "--append"):
        yield from _each("overwrites", names)


def lose_shredded(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[ns]")
    yield from _each("unlinks" if has_letter(options, "u", "--remove") else "overwrites", names)


def lose_output(words: Sequence[str]) -> Iterator[Lost]:
    for word in words:
        if word.startswith("of=") or not is_certain(word):
            yield "overwrites", word.removeprefix("of=") if is_certain(word) else word


def lose_synchronized(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[eBfMT]|--(?:exclude|include|rsh|filter)")
    if len(names) > 1 and ":" not in names[-1]:
        deletes = any(one.startswith("--del") for one in options)
        yield "deletes in" if deletes else "overwrites in", names[-1]


def lose_edited(words: Sequence[str]) -> Iterator[Lost]:
    places = [word for word in words if re.fullmatch("-[nErsz]*i|--in-place", word)]
    call = read_sed_call(words) if places else SedCall(False, ())
    files = call.files if isinstance(call, SedCall) else ("",)
    yield from _each("overwrites", files) if places else ()


FIND_ALL = frozenset(("-delete", "-depth"))


def _find_found(words: Sequence[str], depth: int) -> Iterator[Lost]:
    """What `find` finds in a folder, only `find` knows."""
    roots = [*takewhile(lambda word: not is_certain(word) or word[:1] not in "-(!", words)] or ["."]
    started = STARTING["find"]([word for word in words if word != "-delete"]) or []
    found = [does for one in started for does, _ in _find_lost(one, depth - 1)]
    if "-delete" in words or any(does in ("deletes", "unlinks", "removes") for does in found):
        is_filtered = bool(set(words) - set(roots) - FIND_ALL)
        for root in roots:
            in_all: LossKind = "deletes in" if posixpath.normpath(root) == "." else "deletes"
            yield "deletes some in" if is_filtered else in_all, root
    elif found:
        yield from _each("overwrites in", roots)


TAR_EXTRACTS = re.compile("-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get")
TAR_KEEPS = re.compile("--(?:skip-old-files|keep-old-files|to-stdout)|-[a-zA-Z]*[kO][a-zA-Z]*")


def lose_extracted(words: Sequence[str]) -> Iterator[Lost]:
    """`tar` does not say before what is in an archive."""
    if not any(TAR_EXTRACTS.fullmatch(word) for at, word in enumerate(words) if not at or word.startswith("-")):
        return
    if not any(TAR_KEEPS.fullmatch(word) for word in words):
        yield "overwrites in", _find_value(words, "-C", "--directory") or "."


def lose_unzipped(words: Sequence[str]) -> Iterator[Lost]:
    """Without `-o` it asks before it overwrites, and nobody answers."""
    options, _ = split_words(words, "-[dx]")
    if has_letter(options, "o") and not has_letter(options, "ltpvZ"):
        yield "overwrites in", _find_value(words, "-d") or "."


def lose_patched(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[pidorBzYDFgV]")
    if has_letter(options, "", "--dry-run"):
        return
    folder = _find_value(words, "-d", "--directory") or ""
    if names and not folder:
        yield "overwrites", names[0]
    else:
        yield "overwrites in", folder or "."


def lose_installed_over(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-[mogtS]")
    if not has_letter(options, "d", "--directory"):
        yield from _lose_at_destination([one for one in options if one[:2] in ("-t", "-T", "--")], names, "replaces")


def _find_value(words: Sequence[str], *options: str) -> str:
    """Return what an option is given, in the next word or behind a sign."""
    for at, word in enumerate(words):
        name, given, value = word.partition("=")
        if name in options and (given or at + 1 < len(words)):
            return value if given else words[at + 1]
    return ""


# What does git lose?


def lose_by_git(words: Sequence[str]) -> Iterator[Lost]:
    folder, rest = "", list(words)
    while rest[:1] in (["-C"], ["--no-pager"]):
        folder = posixpath.join(folder, rest[1]) if rest[0] == "-C" and len(rest) > 1 else folder
        del rest[: 2 if rest[0] == "-C" else 1]
    if rest and rest[0] in GIT:
        for does, name in GIT[rest[0]](rest[1:]):
            is_plain = is_certain(name) and is_certain(folder)
            yield does, posixpath.join(folder, name) if folder and is_plain else name


def lose_cleaned(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-e|--exclude")
    if has_letter(options, "n", "--dry-run"):
        return
    does: LossKind = "cleans all" if has_letter(options, "x") and has_letter(options, "d") else "cleans"
    yield from _each(does, names or ["."])


def lose_checked_out(words: Sequence[str]) -> Iterator[Lost]:
    ahead = [*takewhile(lambda word: word != "--", words)]
    options, names = split_words(ahead, "-[bB]|--orphan")
    names = list(words[len(ahead) + 1 :]) if "--" in words else names
    if has_letter(options, "f", "--force", "--discard-changes"):
        yield "resets", "."
    elif not has_letter(options, "bB", "--orphan"):
        # Without `--`, the first name may be a commit, and then no file of that name is lost.
        is_commit = "--" not in words and bool(names) and REVISION.fullmatch(show_argument(names[0])) is not None
        yield from _each("discards", names[is_commit:])


REVISION = re.compile(r"(?:HEAD|@)(?:[~^@].*)?|.+[~^]\d+|.+\^+|.*@\{.*\}")


def lose_switched(words: Sequence[str]) -> Iterator[Lost]:
    if has_letter(split_words(words)[0], "f", "--force", "--discard-changes"):
        yield "resets", "."


def lose_restored(words: Sequence[str]) -> Iterator[Lost]:
    options, names = split_words(words, "-s|--source")
    if has_letter(options, "W", "--worktree") or not has_letter(options, "S", "--staged"):
        yield from _each("discards", names)


def lose_reset(words: Sequence[str]) -> Iterator[Lost]:
    if {"--hard", "--merge", "--keep"}.intersection(words):
        yield "resets", "."


def lose_removed(words: Sequence[str]) -> Iterator[Lost]:
    yield from () if "--cached" in words else lose_deleted(words)


def lose_applied(words: Sequence[str]) -> Iterator[Lost]:
    if not {"--check", "--stat", "--numstat", "--summary", "--cached"}.intersection(words):
        yield "overwrites in", _find_value(words, "--directory") or "."


GIT: Mapping[str, Find] = {
    "apply": lose_applied,
    "clean": lose_cleaned,
    "checkout": lose_checked_out,
    "switch": lose_switched,
    "restore": lose_restored,
    "reset": lose_reset,
    "rm": lose_removed,
}
LOSING: Mapping[str, Find] = {
    **dict.fromkeys(("rm", "unlink"), lose_deleted),
    "rmdir": lose_empty_folders,
    "mv": lose_moved_over,
    "cp": lose_copied_over,
    "ln": lose_linked_over,
    **dict.fromkeys(("tee", "truncate"), lose_overwritten),
    "shred": lose_shredded,
    "dd": lose_output,
    "rsync": lose_synchronized,
    **dict.fromkeys(("tar", "bsdtar"), lose_extracted),
    "unzip": lose_unzipped,
    "patch": lose_patched,
    "install": lose_installed_over,
    "sed": lose_edited,
    "git": lose_by_git,
}
"""`find` is not here, because it starts others of these."""
