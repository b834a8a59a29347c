"""Which commands does a shell line run, as far as that can be told without running it?

For a rule that narrows, every command that might run counts (after `;` and `&&`, in substitutions, behind `sudo` or
`sh -c`); for a rule that allows, only a line that is one plain command. Where something is redirected the command
counts twice: as it runs, and with the file among its words. This reads words, not meanings: `rm -r -f` is not found by
`rm -rf`. The profile and the sandbox are the protection.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

LONGEST = 65_536
DEEPEST = 8
KEYWORDS = frozenset(
    (
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "while",
        "until",
        "for",
        "case",
        "esac",
        "in",
    )
) | frozenset("{}!")
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


@dataclass(frozen=True, slots=True)
class ShellLine:
    commands: tuple[tuple[str, ...], ...]
    plain: bool
    """One command and nothing around it: no substitution, no redirection, no second command."""


def read_plain_words(text: str) -> tuple[str, ...] | None:
    """The words of one plain command; None where the text is anything else."""
    line = read_shell_line(text)
    return line.commands[0] if line and line.plain else None


class UnreadableLine(Exception):
    """A quote that never ends, or more nesting than anybody writes."""


@lru_cache(maxsize=4)
def read_shell_line(text: str) -> ShellLine | None:
    """None where the line cannot be read. The last few are remembered, because every rule asks about the same one."""
    if len(text) > LONGEST:
        return None
    try:
        reader = _scan_text(text, 0)
        every = [command for words in reader.commands for command in _list_started_commands(words, 0)]
    except (UnreadableLine, RecursionError):
        return None
    return ShellLine(tuple(every), reader.plain and len(reader.commands) == 1)


@dataclass(slots=True)
class _Reader:
    """Where in the text we are, and what was found so far."""

    text: str
    depth: int
    at: int = 0
    word: str | None = None
    words: list[str] = field(default_factory=list[str])
    commands: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    plain: bool = True
    target: bool = False
    """The next word is where something is redirected, and no word of the command."""
    every: list[str] = field(default_factory=list[str])
    """The words with those among them: `cat < notes` reads what `cat notes` reads."""

    def add(self, piece: str) -> None:
        self.word = (self.word or "") + piece

    def end_word(self) -> None:
        if self.word is None:
            return
        self.every.append(self.word)
        if not self.target:
            self.words.append(self.word)
        self.word, self.target = None, False

    def end_command(self) -> None:
        self.end_word()
        self.commands += dict.fromkeys(tuple(words) for words in (self.words, self.every) if words)
        self.words, self.every, self.target = [], [], False

    def redirect(self) -> None:
        """The target comes next; a number right before the operator says what is redirected."""
        if self.word is not None and self.word.isdigit():
            self.word = None
        self.end_word()
        self.plain = False
        while self.text[self.at : self.at + 1] in tuple("<>&|"):
            self.at += 1
        self.target = True

    def read_until(self, mark: str) -> str:
        """The text up to the next mark, which is passed over."""
        end = self.text.find(mark, self.at)
        if end < 0:
            raise UnreadableLine
        body, self.at = self.text[self.at : end], end + len(mark)
        return body

    def read_bracketed(self) -> str:
        """The text up to the bracket that closes the one just passed."""
        depth, start = 1, self.at
        while depth:
            if self.at >= len(self.text):
                raise UnreadableLine
            depth += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
        return self.text[start : self.at - 1]

    def add_substitution(self, body: str) -> None:
        """A command inside a command: it runs too, and its output is part of the word."""
        self.commands += _scan_text(body, self.depth + 1).commands
        self.add("$()")
        self.plain = False


def _scan_text(text: str, depth: int) -> _Reader:
    if depth > DEEPEST:
        raise UnreadableLine
    reader = _Reader(text.replace("\\\n", ""), depth)
    while reader.at < len(reader.text):
        char = reader.text[reader.at]
        reader.at += 1
        _read_character(reader, char)
    reader.end_command()
    return reader


def _read_character(reader: _Reader, char: str) -> None:
    if char == "'":
        reader.add(reader.read_until("'"))
    elif char == '"':
        _read_double_quotes(reader)
    elif char == "\\":
        reader.add(reader.text[reader.at : reader.at + 1])
        reader.at += 1
    elif _read_substitution(reader, char):
        pass
    elif char in " \t\r":
        reader.end_word()
    elif char == "#" and reader.word is None:
        end = reader.text.find("\n", reader.at)
        reader.at = len(reader.text) if end < 0 else end
    elif char in "<>" or (char == "&" and reader.text.startswith(">", reader.at)):
        reader.redirect()
    elif char in ";&|\n()":
        # A line that ends in a newline is still one command; a second one shows in the count.
        reader.plain = reader.plain and char == "\n"
        reader.end_command()
    else:
        reader.add(char)


def _read_substitution(reader: _Reader, char: str) -> bool:
    if char == "`":
        reader.add_substitution(reader.read_until("`"))
    elif char in "$<>" and reader.text.startswith("(", reader.at):
        reader.at += 1
        reader.add_substitution(reader.read_bracketed())
    elif char == "$" and reader.text.startswith("'", reader.at):
        # Escapes inside $'...' can spell anything: a word nobody knows beforehand.
        reader.at += 1
        reader.read_until("'")
        reader.add("$")
        reader.plain = False
    else:
        return False
    return True


def _read_double_quotes(reader: _Reader) -> None:
    reader.add("")
    while True:
        if reader.at >= len(reader.text):
            raise UnreadableLine
        char = reader.text[reader.at]
        reader.at += 1
        if char == '"':
            return
        following = reader.text[reader.at : reader.at + 1]
        if char == "\\":
            # Before most characters the shell keeps the backslash; a line that needs this is not a plain one.
            reader.plain = reader.plain and following in tuple('$`"\\')
            reader.add(following)
            reader.at += 1
        elif char == "`" or (char == "$" and following == "("):
            _read_substitution(reader, char)
        else:
            reader.add(char)


def _list_started_commands(words: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """The command itself, and those it would start: behind `then`, `A=b`, `sudo`, `sh -c`."""
    if depth > DEEPEST:
        raise UnreadableLine
    yield words
    if not words:
        return
    name, rest = words[0].rsplit("/", 1)[-1], words[1:]
    if words[0] in KEYWORDS or ("=" in words[0] and words[0].split("=")[0].removesuffix("+").isidentifier()):
        yield from _list_started_commands(rest, depth)
    elif name in WRAPPERS:
        for start, word in enumerate(rest[:64]):
            if not word.startswith("-"):
                yield from (
                    _list_started_commands(rest[start:], depth + 1)
                    if word.rsplit("/", 1)[-1] in SHELLS
                    else (rest[start:],)
                )
        yield from _list_line_commands(_find_inner_lines(name, rest), depth)
    elif name in SHELLS:
        lines = [" ".join(rest)] if name == "eval" else [word for word in rest if not word.startswith("-")]
        yield from _list_line_commands(lines, depth)


def _find_inner_lines(name: str, rest: tuple[str, ...]) -> list[str]:
    """What a wrapper takes as a line and not as words. Behind a shell among them its own options are looked at."""
    if any(word.rsplit("/", 1)[-1] in SHELLS for word in rest):
        return []
    found = [word for before, word in pairwise(rest) if before in LINE_OPTIONS]
    first = next((word for word in rest if not word.startswith("-")), None)
    return [*found, first] if first is not None and name in LINE_TAKERS else found


def _list_line_commands(lines: Iterable[str], depth: int) -> Iterator[tuple[str, ...]]:
    for line in lines:
        for command in _scan_text(line, depth + 1).commands:
            yield from _list_started_commands(command, depth + 1)
