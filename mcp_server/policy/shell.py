"""Does a line of shell run a command that a rule names? Its first words and what may follow, or words with `*`.

The line comes parsed, from whoever runs such lines. For a rule that narrows, every command that might run counts: after
`;` and `&&`, in substitutions and here-documents, behind `sudo` or `sh -c`, wherever its program lies and whatever
options stand between its words; a word that the shell would compute could be any word. Where something is redirected
the command counts twice: as it runs, and with the file among its words. For a rule that allows, only the words
themselves, in a plain line. This reads words, not meanings: `rm -r -f` is not found by `rm -rf`. The profile and the
sandbox are the protection.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from mcp_server.model.shell import ReadLine, ShellLine
from mcp_server.policy.globs import Impossible, Text, compile_text_glob

Command: TypeAlias = tuple[str, ...]
COMPUTED = frozenset("$*?[{")
SIMPLE = re.compile(r"[\w./:@%+,=*?!~^{}\[\] -]+")
"""Words between which nothing stands but blanks, whatever the shell may make of one."""
SIGNS = re.compile("[;()+!]*")
"""What `find` takes behind `.`, which would be a shell's own word elsewhere, and runs nothing."""
DEEPEST = 8
MOST_STARTS = 64
"""Words behind a wrapper that are looked at."""
KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac", "in", "{", "}", "!")
)
WRAPPING = """
sudo doas env nohup nice ionice timeout command exec builtin xargs stdbuf setsid busybox find parallel watch strace
chroot flock script unshare time coproc function su runuser trap
"""
WRAPPERS = frozenset(WRAPPING.split())
LINE_OPTIONS = frozenset(("-c", "-S", "--command", "--split-string"))
"""What follows one of these behind a wrapper is a line of its own."""
LINE_TAKERS = frozenset(("trap", "watch", "parallel"))
"""The first word behind these is."""
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "eval", "source", "."))


class UnreadableLine(Exception):
    """A line within the line that is not understood, or more nesting than anybody writes."""


@lru_cache(maxsize=8)
def list_commands(text: str, read: ReadLine) -> tuple[Command, ...] | None:
    """Every command that the line runs or may run; None where that cannot be told. The last few are remembered, because
    every rule asks about the same one."""
    line = read(text)
    if line is None:
        return None
    try:
        return tuple(command for words in _list_runs(line) for command in _list_started_commands(words, 0, read))
    except (UnreadableLine, RecursionError):
        return None


def list_plain_words(line: ShellLine | None) -> Command | None:
    """The words of one plain command; None where the line is anything else."""
    return line.commands[0].list_texts() if line and line.plain else None


def _read_pattern(pattern: str, read: ReadLine) -> Command | None:
    # Nearly every pattern is made of simple words: a server with rules about commands begins without the grammar.
    if SIMPLE.fullmatch(pattern):
        return tuple(pattern.split())
    return list_plain_words(read(pattern))


def find_pattern_program(pattern: str, read: ReadLine) -> str | None:
    """The program that a pattern begins with."""
    words = _read_pattern(pattern.removesuffix(":*"), read)
    return words[0] if words else None


def _list_runs(line: ShellLine) -> Iterator[Command]:
    for command in line.list_commands(documents=True):
        yield from dict.fromkeys(words for words in (command.list_texts(), command.list_texts(targets=True)) if words)


def _list_started_commands(words: Command, depth: int, read: ReadLine) -> Iterator[Command]:
    """The command itself, and those it would start: behind `then`, `A=b`, `sudo`, `sh -c`."""
    if depth > DEEPEST:
        raise UnreadableLine
    yield words
    if not words:
        return
    name, rest = get_program_name(words[0]), words[1:]
    if words[0] in KEYWORDS or ("=" in words[0] and words[0].split("=")[0].removesuffix("+").isidentifier()):
        yield from _list_started_commands(rest, depth, read)
    elif name in WRAPPERS:
        for start, word in enumerate(rest[:MOST_STARTS]):
            if not word.startswith("-"):
                started = rest[start:]
                shell = get_program_name(word) in SHELLS
                yield from _list_started_commands(started, depth + 1, read) if shell else (started,)
        yield from _list_line_commands(_find_inner_lines(name, rest), depth, read)
    elif name in SHELLS:
        lines = [" ".join(rest)] if name == "eval" else [word for word in rest if not word.startswith("-")]
        yield from _list_line_commands(lines, depth, read)


def _find_inner_lines(name: str, rest: Command) -> list[str]:
    """What a wrapper takes as a line and not as words. Behind a shell among them its own options are looked at."""
    if any(get_program_name(word) in SHELLS for word in rest):
        return []
    found = [word for before, word in pairwise(rest) if before in LINE_OPTIONS]
    first = next((word for word in rest if not word.startswith("-")), None)
    return [*found, first] if first is not None and name in LINE_TAKERS else found


def _list_line_commands(texts: Iterable[str], depth: int, read: ReadLine) -> Iterator[Command]:
    for text in texts:
        if SIGNS.fullmatch(text):
            continue
        # What stands for the output of a substitution is no line of shell by itself.
        line = read(text.replace("$()", "$_"))
        if line is None:
            raise UnreadableLine
        for words in _list_runs(line):
            yield from _list_started_commands(words, depth + 1, read)


def compile_command_pattern(pattern: str, cautious: bool, read: ReadLine) -> Text:
    begins = pattern.endswith(":*")
    words = _read_pattern(pattern.removesuffix(":*"), read)
    if not words:
        raise Impossible("it is not one plain command; write a rule for each command.")
    one = _build_command_test(words, begins, cautious)

    def fits(text: str) -> bool | None:
        commands = list_commands(text, read)
        if commands is None:
            return None
        if cautious:
            return any(one(command) is not False for command in commands)
        plain = list_plain_words(read(text))
        return plain is not None and one(plain)

    return fits


def _build_command_test(words: Command, begins: bool, cautious: bool) -> Callable[[Command], bool | None]:
    if not begins and any("*" in word for word in words):
        whole, each = (
            _compile_starred_text(" ".join(words), cautious),
            [_compile_starred_text(word, cautious) for word in words],
        )
        if not cautious:
            return lambda command: whole(" ".join(command))
        return lambda command: _has_starred_words(command, words, each) or bool(whole(" ".join(command)))
    if not cautious:
        return lambda command: command[: len(words)] == words and (begins or len(command) == len(words))
    return lambda command: _has_leading_words(command, words, begins)


def _compile_starred_text(text: str, cautious: bool) -> Text:
    """Of the signs that a pattern could give a meaning to, only `*` has one in a command."""
    return compile_text_glob(text.replace("[", "[[]").replace("?", "[?]").replace("{", "[{]"), cautious)


def _has_leading_words(command: Command, words: Command, begins: bool) -> bool | None:
    """Does the command begin with these words, its options and what may belong to them left out of the count?"""
    if not command:
        return False
    if COMPUTED & set(command[0]):
        return None
    if not _is_same_word(get_program_name(command[0]), get_program_name(words[0])):
        return False
    at = {1}
    for word in words[1:]:
        at = {here + 1 for here in _skip_options(command, at) if _may_be_word(command[here], word)}
    return bool(at) if begins else any(here == len(command) for here in at)


def _has_starred_words(command: Command, words: Command, each: Sequence[Text]) -> bool:
    """The same for words among which there are stars: one that stands alone is for one word or more."""
    if not command:
        return False
    if COMPUTED & set(command[0]) and "*" not in words[0]:
        return True
    named = (get_program_name(command[0]), *command[1:])
    wanted = (get_program_name(words[0]), *words[1:])
    at = {0}
    for word, fits in zip(wanted, each, strict=True):
        if word == "*":
            at = set(range(min(at, default=len(named)) + 1, len(named) + 1))
        elif "*" in word:
            at = {here + 1 for here in _skip_options(named, at) if fits(named[here]) or COMPUTED & set(named[here])}
        else:
            at = {here + 1 for here in _skip_options(named, at) if _may_be_word(named[here], word)}
    return bool(at) if words[-1].endswith("*") else len(named) in at


def get_program_name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _skip_options(command: Command, starts: set[int]) -> set[int]:
    reached: set[int] = set()
    waiting = list(starts)
    while waiting:
        here = waiting.pop()
        if here >= len(command) or here in reached:
            continue
        reached.add(here)
        if command[here].startswith("-"):
            waiting += [here + 1, here + 2]
    return reached


def _may_be_word(word: str, wanted: str) -> bool:
    return _is_same_word(word, wanted) or bool(COMPUTED & set(word))


def _is_same_word(word: str, wanted: str) -> bool:
    return word.casefold() == wanted.casefold()
