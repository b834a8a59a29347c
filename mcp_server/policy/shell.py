"""Does a line of shell run a command that a rule names? Its first words and what may follow, or words with `*`.

For a rule that narrows, a command counts wherever its program lies and whatever options stand between its words; a word
that the shell would compute could be any word. For a rule that allows, only the words themselves, in a plain line.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mcp_server.policy.globs import Impossible, Text, compile_text_glob
from mcp_server.policy.shell_reader import read_plain_words, read_shell_line

Command: TypeAlias = tuple[str, ...]
COMPUTED = frozenset("$*?[{")


def compile_command_pattern(pattern: str, cautious: bool) -> Text:
    begins = pattern.endswith(":*")
    words = read_plain_words(pattern.removesuffix(":*"))
    if not words:
        raise Impossible("it is not one plain command; write a rule for each command.")
    one = _build_command_test(words, begins, cautious)

    def fits(text: str) -> bool | None:
        line = read_shell_line(text)
        if line is None:
            return None
        if not cautious:
            return line.plain and one(line.commands[0])
        return any(one(command) is not False for command in line.commands)

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
