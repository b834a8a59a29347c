"""May this line run unasked? It may if it only reads, or builds and tests what the project holds.

The line comes parsed, and every part of it must be known: the programs and their options, redirections, assignments and
what bash expands. For anything else the user is asked, with the reason. The sandbox is what protects; this spares the
user questions about `ls`, and lets no part of a line hide another one.
"""

import posixpath
import re
from functools import lru_cache
from itertools import dropwhile

from msgspec import Struct

from mcp_server.model.path_steps import PathStep
from mcp_server.model.shell import ShellLine, WordRole
from mcp_server.model.text import quote_text
from tools.shell.git_commands import GitCall, find_git_calls
from tools.shell.git_writes import VainGitCall, judge_git_calls
from tools.shell.line_judge import LineJudge
from tools.shell.lines import read_line
from tools.shell.path_steps import find_steps
from tools.shell.verdicts import CommandKind, NeedsApproval

MAX_CHARS = 4_000
READABLE = re.compile(r"[\t\n\x20-\x7e\xa0-\U0010ffff]*")
"""A carriage return or an escape shows one thing and does another."""
WORD = re.compile(r"[^\s;&|()<>'\"`$]+")
MOST_LETTERS = 8
SPLIT_WORD = re.compile(r"[^\s]\\\n[^\s]")


class LineVerdict(Struct, frozen=True):
    kind: CommandKind
    because: str = ""
    """Why the user must approve the line."""


@lru_cache(maxsize=16)
def classify_line(line: str, folder: str = ".") -> LineVerdict:
    """`folder` is where it starts, below the workspace. Cached, because the list, the decision and the record ask about
    the same line."""
    try:
        return LineVerdict(_judge_text(line, folder))
    except NeedsApproval as reason:
        return LineVerdict(CommandKind.ASKED, str(reason))


@lru_cache(maxsize=16)
def find_line_steps(text: str, folder: str) -> tuple[PathStep, ...]:
    """Return what has to be looked at before the line may run unasked; nothing if it needs approval in any case."""
    try:
        return find_steps(read_whole_line(text), *find_start(folder))
    except NeedsApproval:
        return ()


def _judge_text(text: str, folder: str) -> CommandKind:
    line = read_whole_line(text)
    return LineJudge(*find_start(folder)).judge_line(line)


def read_whole_line(text: str) -> ShellLine:
    """Read a line that can be judged. Raises NeedsApproval."""
    if len(text) > MAX_CHARS:
        raise NeedsApproval(f"it has more than {MAX_CHARS:,} characters")
    if not READABLE.fullmatch(text):
        raise NeedsApproval("it contains a control character, so it may not do what it shows")
    if SPLIT_WORD.search(text):
        raise NeedsApproval("a backslash continues a word in the next line")
    line = read_line(text)
    if line is None:
        raise NeedsApproval(f"bash may read it differently than it looks{_name_foreign_letters(text)}")
    if not line.commands:
        raise NeedsApproval("it contains no command")
    return line


def _name_foreign_letters(text: str) -> str:
    """Some look like those of another command."""
    letters = [f"U+{ord(letter):04X}" for letter in dict.fromkeys(text) if not letter.isascii()]
    return f": it contains {', '.join(letters[:MOST_LETTERS])}" if letters else ""


def find_start(folder: str) -> tuple[str, str]:
    """Return where a line starts, below the workspace, and what has left the project by then, if anything has."""
    folder = posixpath.normpath(folder)
    is_outside = folder.startswith(("/", "~")) or folder.split("/")[0] == ".."
    return folder, f"a start in {quote_text(folder)}" if is_outside else ""


@lru_cache(maxsize=16)
def find_vain_call(line: str) -> VainGitCall | None:
    """Find a call of git in the line, or in one within it, that the sandbox would not let git finish."""
    if len(line) > MAX_CHARS or "git" not in line:
        return None
    commands = _list_all_commands(line)
    folders = [words[1] for words in commands if words[0] == "cd" and len(words) > 1]
    return judge_git_calls([call for words in commands for call in find_git_calls(words, _find_calls_within)], folders)


def _find_calls_within(line: str) -> list[GitCall]:
    return [call for words in _list_all_commands(line) for call in find_git_calls(words, _find_calls_within)]


def list_words(line: str) -> set[str]:
    """List everything in the line that may become the name of a command, as it is written and as bash reads it."""
    read = read_line(line) if len(line) <= MAX_CHARS else None
    commands = read.list_commands(documents=True) if read else ()
    return {*WORD.findall(line), *(word.text for command in commands for word in command.words)}


def _list_all_commands(line: str) -> list[list[str]]:
    """List the words of every command, nested ones included. Here-documents are not run by this line."""
    read = read_line(line)
    runs = [
        [*dropwhile(lambda word: word.role is not WordRole.WORD, command.words)]
        for command in (read.list_commands() if read else ())
    ]
    return [[word.text for word in run if word.role is WordRole.WORD] for run in runs if run]
