"""What does a line of shell say? Its commands and their words as plain values, for whoever judges a line.

The parse itself lies with the tool that runs such lines. Whoever needs one is handed `ReadLine`, which answers None for
a line that it does not understand from end to end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class WordRole(StrEnum):
    WORD = "word"
    KEYWORD = "keyword"
    """Of the shell's grammar: `if`, `do`, `{`, `!`."""
    ASSIGNMENT = "assignment"
    """`A=b`, in front of a command or instead of one."""
    TARGET = "target"
    """Where something is redirected; its `source` is the whole redirection."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    text: str
    """What the program is given. What the shell computes stands in it as a `$`, and whatever follows that."""
    source: str
    """As it was written, quotes and all."""
    role: WordRole = WordRole.WORD
    known: bool = True
    """False where the shell computes some of it. What a `*` stands for is not known either, but is not said here."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A run of words with nothing that separates commands between them. Not each of them is one that the shell would
    start: the elements of an array stand here like the words of a command, since they may become one."""

    words: tuple[ShellWord, ...]
    nested: tuple["ShellLine", ...] = ()
    """What runs to make its words: `$(...)`, backticks, `<(...)`."""
    documents: tuple["ShellLine", ...] = ()
    """The bodies of here-documents, each read as the script that it may be."""
    joined: str = ""
    """What joins it to the next command: `&&`, `|`, the end of the line; empty behind the last."""

    def list_texts(self, targets: bool = False) -> tuple[str, ...]:
        """What its words say, with the targets of redirections among them or without."""
        return tuple(word.text for word in self.words if targets or word.role is not WordRole.TARGET)


@dataclass(frozen=True, slots=True)
class ShellLine:
    commands: tuple[ShellCommand, ...]
    plain: bool
    """One command and nothing around it: no substitution, no redirection, no second command."""
    listed: bool
    """Nothing but commands, joined by `|`, `&&`, `||`, `;` or the end of a line, each with its words and redirections:
    no loop, no function, no subshell, nothing in the background."""

    def list_commands(self, documents: bool = False) -> Iterator[ShellCommand]:
        """Every command in the line, those inside of another one before it."""
        for command in self.commands:
            for line in (*command.nested, *(command.documents if documents else ())):
                yield from line.list_commands(documents)
            yield command


ReadLine: TypeAlias = Callable[[str], ShellLine | None]
