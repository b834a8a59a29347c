"""Does a shell line run a command that a rule names? Matches leading words (`git push:*`) and words with `*`.

A rule that narrows (`cautious`) looks at every command that might run: after `;` and `&&`, in substitutions and
here-documents, behind `sudo` or `sh -c`, whatever folder its program lies in and whatever options stand between its
words; a word that the shell would compute could be any word. A command with a redirection counts twice: as it runs, and
with the file among its words. A rule that allows matches only the exact words of one plain command. Only words are
compared, not meanings: `rm -rf` does not match `rm -r -f`. The protection is the profile and the sandbox.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from mcp_server.model.shell import ReadLine, ShellLine, get_program_name
from mcp_server.policy.globs import Impossible, Text, compile_text_glob

Command: TypeAlias = tuple[str, ...]
COMPUTED = frozenset("$*?[{")
SIMPLE = re.compile(r"[\w./:@%+,=*?!~^{}\[\] -]+")
"""Words with only blanks between them, whatever the shell may expand."""
ASSIGNMENT = re.compile(r"[^\W\d]\w*(\[.*?\])?\+?=", re.DOTALL)
SIGNS = re.compile("[;()+!]*")
"""Arguments of `find` that would be the shell's own words elsewhere, and run nothing."""
MAX_DEPTH = 8
MAX_STARTS = 64
"""Words after a wrapper at which a command may start."""
KEYWORDS = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac", "in", "{", "}", "!")
)
WRAPPING = """
sudo doas env nohup nice ionice timeout command exec builtin xargs stdbuf setsid busybox find parallel watch strace
chroot flock script unshare time coproc function su runuser trap
"""
WRAPPERS = frozenset(WRAPPING.split())
LINE_OPTIONS = frozenset(("-c", "-S", "--command", "--split-string"))
"""Options of a wrapper whose value is a shell line."""
LINE_TAKERS = frozenset(("trap", "watch", "parallel"))
"""Wrappers whose first argument is a shell line."""
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "eval", "source", "."))


class UnreadableLine(Exception):
    """The line contains another one that cannot be parsed, or is nested too deeply."""


@lru_cache(maxsize=8)
def list_commands(text: str, read: ReadLine) -> tuple[Command, ...] | None:
    """List every command that the line runs or may run; None if that is unknown.

    Cached, because every rule asks about the same few lines."""
    line = read(text)
    if line is None:
        return None
    try:
        return tuple(command for words in _list_runs(line) for command in _list_started_commands(words, 0, read))
    except (UnreadableLine, RecursionError):
        return None


def list_plain_words(line: ShellLine | None) -> Command | None:
    """Return the words of a line that is one plain command, else None."""
    return line.commands[0].list_texts() if line and line.plain else None


def _read_pattern(pattern: str, read: ReadLine) -> Command | None:
    # Most patterns are simple words, so that a server with command rules starts without loading the grammar.
    if SIMPLE.fullmatch(pattern):
        return tuple(pattern.split())
    return list_plain_words(read(pattern))


def find_pattern_program(pattern: str, read: ReadLine) -> str | None:
    """Return the program that a pattern starts with."""
    words = _read_pattern(pattern.removesuffix(":*"), read)
    return words[0] if words else None


def _list_runs(line: ShellLine) -> Iterator[Command]:
    for command in line.list_commands(documents=True):
        yield from dict.fromkeys(words for words in (command.list_texts(), command.list_texts(targets=True)) if words)


def _list_started_commands(words: Command, depth: int, read: ReadLine) -> Iterator[Command]:
    """Yield the command and those it would start: after `then`, `A=b`, `sudo`, `sh -c`."""
    if depth > MAX_DEPTH:
        raise UnreadableLine
    yield words
    if not words:
        return
    name, rest = get_program_name(words[0]), words[1:]
    if words[0] in KEYWORDS or ASSIGNMENT.match(words[0]):
        yield from _list_started_commands(rest, depth, read)
    elif name in WRAPPERS:
        for start, word in enumerate(rest[:MAX_STARTS]):
            if not word.startswith("-"):
                started = rest[start:]
                shell = get_program_name(word) in SHELLS
                yield from _list_started_commands(started, depth + 1, read) if shell else (started,)
        yield from _list_line_commands(_find_inner_lines(name, rest), depth, read)
    elif name in SHELLS:
        lines = [" ".join(rest)] if name == "eval" else [word for word in rest if not word.startswith("-")]
        yield from _list_line_commands(lines, depth, read)


def _find_inner_lines(name: str, rest: Command) -> list[str]:
    """Find the arguments that a wrapper runs as shell lines; if it runs a shell, that shell's own options count."""
    if any(get_program_name(word) in SHELLS for word in rest):
        return []
    lines = [word for option, word in pairwise(rest) if option in LINE_OPTIONS]
    first = next((word for word in rest if not word.startswith("-")), None)
    return [*lines, first] if first is not None and name in LINE_TAKERS else lines


def _list_line_commands(texts: Iterable[str], depth: int, read: ReadLine) -> Iterator[Command]:
    for text in texts:
        if SIGNS.fullmatch(text):
            continue
        # `$()` stands for the output of a substitution and is not valid shell by itself.
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
    test = _build_command_test(words, begins, cautious)

    def fits(text: str) -> bool | None:
        commands = list_commands(text, read)
        if commands is None:
            return None
        if cautious:
            return any(test(command) is not False for command in commands)
        plain = list_plain_words(read(text))
        return plain is not None and test(plain)

    return fits


def _build_command_test(words: Command, begins: bool, cautious: bool) -> Callable[[Command], bool | None]:
    if not begins and any("*" in word for word in words):
        whole = _compile_starred_text(" ".join(words), cautious)
        each = [_compile_starred_text(word, cautious) for word in words]
        if not cautious:
            return lambda command: whole(" ".join(command))
        return lambda command: _has_starred_words(command, words, each) or bool(whole(" ".join(command)))
    if not cautious:
        return lambda command: command[: len(words)] == words and (begins or len(command) == len(words))
    return lambda command: _has_leading_words(command, words, begins)


def _compile_starred_text(text: str, cautious: bool) -> Text:
    """Compile a glob in which only `*` is special."""
    return compile_text_glob(text.replace("[", "[[]").replace("?", "[?]").replace("{", "[{]"), cautious)


def _has_leading_words(command: Command, words: Command, begins: bool) -> bool | None:
    """True if the command starts with these words, options and their values aside; None if its program is unknown."""
    if not command:
        return False
    if COMPUTED & set(command[0]):
        return None
    if not _is_same_word(get_program_name(command[0]), get_program_name(words[0])):
        return False
    ends = {1}
    for word in words[1:]:
        ends = {start + 1 for start in _skip_options(command, ends) if _may_be_word(command[start], word)}
    return bool(ends) if begins else len(command) in ends


def _has_starred_words(command: Command, words: Command, each: Sequence[Text]) -> bool:
    """True if the command matches words with stars; a star by itself matches one or more words."""
    if not command:
        return False
    if COMPUTED & set(command[0]) and "*" not in words[0]:
        return True
    command = (get_program_name(command[0]), *command[1:])
    ends = {0}
    for word, fits in zip((get_program_name(words[0]), *words[1:]), each, strict=True):
        if word == "*":
            ends = set(range(min(ends, default=len(command)) + 1, len(command) + 1))
            continue
        starts = _skip_options(command, ends)
        if "*" in word:
            ends = {start + 1 for start in starts if fits(command[start]) or COMPUTED & set(command[start])}
        else:
            ends = {start + 1 for start in starts if _may_be_word(command[start], word)}
    return bool(ends) if words[-1].endswith("*") else len(command) in ends


def _skip_options(command: Command, starts: set[int]) -> set[int]:
    """Add the positions after any options, which may each take the next word as a value."""
    positions: set[int] = set()
    pending = list(starts)
    while pending:
        position = pending.pop()
        if position >= len(command) or position in positions:
            continue
        positions.add(position)
        if command[position].startswith("-"):
            pending += [position + 1, position + 2]
    return positions


def _may_be_word(word: str, name: str) -> bool:
    return _is_same_word(word, name) or bool(COMPUTED & set(word))


def _is_same_word(word: str, name: str) -> bool:
    return word.casefold() == name.casefold()
