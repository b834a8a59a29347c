"""What does a shell line say? Its commands and their words as plain values.

The parser belongs to the tool that runs such lines. Other code gets it as a `ReadLine`, which returns None for a line
that it cannot parse completely.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct


class WordRole(StrEnum):
    WORD = "word"
    KEYWORD = "keyword"
    """Part of the shell's grammar: `if`, `do`, `{`, `!`."""
    ASSIGNMENT = "assignment"
    """`A=b`, in front of a command or by itself."""
    TARGET = "target"
    """The target of a redirection; its `source` is the whole redirection."""


class ShellWord(Struct, frozen=True):
    text: str
    """What the program gets. A part that the shell computes is a `$` and what follows it."""
    source: str
    """As it was written, with its quotes."""
    role: WordRole = WordRole.WORD
    known: bool = True
    """False if the shell computes a part of it. A `*`, although also unknown, does not count."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """Words without a separator between them. The shell does not start every one of these: the elements of an array
    also count as a command, since they may become one."""

    words: tuple[ShellWord, ...]
    nested: tuple["ShellLine", ...] = ()
    """Lines that run to produce its words: `$(...)`, backticks, `<(...)`."""
    documents: tuple["ShellLine", ...] = ()
    """The bodies of here-documents, parsed as the scripts that they may be."""
    joined: str = ""
    """What joins it to the next command: `&&`, `|`, the end of the line; empty after the last."""
    expansions: tuple[str, ...] = ()
    """Everything in it that bash expands, apart from its nested lines: `$x`, `${x%.py}`, `{1..3}`. A here-document's
    count as well."""
    signs: tuple[str, ...] = field(default=(), compare=False)
    """Every separator between the command before and this one: `(ls); cat` has `)` and `;` in front of `cat`."""
    span: tuple[int, int] | None = field(default=None, compare=False)
    """Its bytes in the text that was parsed; None if it stands there in other words, as between escaped backticks."""

    def list_texts(self, targets: bool = False) -> tuple[str, ...]:
        """Return the texts of its words, with or without the targets of redirections."""
        return tuple(word.text for word in self.words if targets or word.role is not WordRole.TARGET)


class ShellLine(Struct, frozen=True):
    commands: tuple[ShellCommand, ...]
    plain: bool
    """One command and nothing else: no substitution, no redirection, no second command."""
    listed: bool
    """Only commands with words and redirections, joined by `|`, `&&`, `||`, `;` or line ends: no loop, no function, no
    subshell, nothing in the background."""

    def list_commands(self, documents: bool = False) -> Iterator[ShellCommand]:
        """Yield every command in the line, nested ones before the command that contains them."""
        for command in self.commands:
            for line in (*command.nested, *(command.documents if documents else ())):
                yield from line.list_commands(documents)
            yield command


ReadLine: TypeAlias = Callable[[str], ShellLine | None]


def get_program_name(word: str) -> str:
    return word.rsplit("/", 1)[-1]
