"""Where does a condition in `[[ ]]` end? The reader of lines cuts it at `&&` and `||`, which join tests there."""

import dataclasses
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mcp_server.model.shell import ShellCommand, ShellWord, WordRole

JOINING = frozenset(("&&", "||"))


def join_conditions(commands: Iterable[ShellCommand]) -> Iterator[ShellCommand]:
    """Yield the commands, with each condition as one: its `&&` and `||` are words of it."""
    waiting: ShellCommand | None = None
    for command in commands:
        if waiting is not None:
            command = _join(waiting, command)
        waiting = command if command.joined in JOINING and _is_open(command) else None
        if waiting is None:
            yield command
    if waiting is not None:
        yield waiting


def _is_open(command: ShellCommand) -> bool:
    words = [word for word in command.words if word.role is not WordRole.KEYWORD]
    return bool(words) and words[0].source == "[[" and words[-1].source != "]]"


def _join(first: ShellCommand, second: ShellCommand) -> ShellCommand:
    span = (first.span[0], second.span[1]) if first.span and second.span else None
    return dataclasses.replace(
        second,
        words=(*first.words, ShellWord(first.joined, first.joined), *map(_read_negation, second.words)),
        nested=(*first.nested, *second.nested),
        documents=(*first.documents, *second.documents),
        expansions=(*first.expansions, *second.expansions),
        signs=first.signs,
        span=span,
    )


def _read_negation(word: ShellWord) -> ShellWord:
    """A `!` in front of a test is no keyword there."""
    return replace(word, role=WordRole.WORD) if word.source == "!" else word
