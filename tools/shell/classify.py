"""What kind of command is this line: one that only reads, one that builds or tests, or one to be asked about?

The line comes taken apart by a grammar of the shell, and every part of it has to be one that is known here: plain
words, plain strings, pipes, `&&`, `||` and `;`. Anything else, and any name that is not listed, is asked about. That is
no protection by itself: a sandbox is. It keeps a person from being asked about `ls`, and lets no word hide another.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from itertools import dropwhile

from mcp_server.model.posture import Profile
from mcp_server.model.shell import ShellWord, WordRole
from mcp_server.model.tools import Arguments, Demand, Effect
from tools.shell.definitions import UNKNOWN
from tools.shell.git_commands import GitCall, find_git_calls
from tools.shell.git_writes import VainGitCall, judge_git_calls
from tools.shell.known_commands import BUILDS, READS
from tools.shell.lines import read_line

LONGEST = 4_000
MOST_COMMANDS = 25
READABLE = re.compile(r"[\t\n\x20-\x7e\xa0-\U0010ffff]*")
"""A carriage return or an escape shows one thing and does another."""
GROWING = frozenset("*?[{~")
BROKEN = re.compile(r"[^\s]\\\n[^\s]")
"""A word that goes on in the next line is one that somebody wants to hide."""
NAME = re.compile(r"[A-Za-z0-9_.+-]+")
IN_QUOTES = re.compile("'[^']*'")
QUIET = re.compile("(?:GIT_)?PAGER=cat|GIT_OPTIONAL_LOCKS=0|NO_COLOR=1|(?:LC_ALL|LANG)=C(?:[.]UTF-8)?")
DISCARDED = re.compile(r"(?:[12&]?> ?/dev/null|2>&1)")


class CommandKind(StrEnum):
    READS = "reads"
    BUILDS = "builds"
    ASKED = "asked"


def demand_running(args: Arguments) -> Demand:
    """Typed into a shell that stays, a line is only as plain as everything typed there before."""
    found = classify_line(args["command"])
    stays = bool(args.get("bash_id") or args.get("shell_id"))
    if found is CommandKind.READS and not stays and not args.get("run_in_background"):
        return Demand(Effect.READ_LOCAL, Profile.NORMAL)
    if found in (CommandKind.READS, CommandKind.BUILDS):
        return Demand(Effect.EXEC, Profile.NORMAL)
    return demand_unknown_line(args["command"])


KEYS = ("", "\x03", "\x04", "\x1a", "\x1c", "q", "y", "n")
"""What answers a program, and is no command."""


def demand_typing(args: Arguments) -> Demand:
    """Whatever is typed may be part of a command; only answers and keys are not."""
    content = args.get("content", "")
    return Demand(Effect.EXEC, Profile.NORMAL) if content in KEYS else demand_unknown_line(content)


def demand_unknown_line(line: str) -> Demand:
    """Asked about; and where a sandbox keeps git from writing its own folder, what would do that is not even asked."""
    asked = Demand(Effect.EXEC, Profile.NORMAL, UNKNOWN, True, Profile.TRUSTED)
    found = find_vain_call(line)
    return replace(asked, takes=found.takes, instead=found.instead) if found else asked


@lru_cache(maxsize=16)
def classify_line(line: str) -> CommandKind:
    """Asked several times about one call: by the list, by the decision, by the record."""
    if len(line) > LONGEST or not READABLE.fullmatch(line) or BROKEN.search(line):
        return CommandKind.ASKED
    found = _list_plain_commands(line)
    if not found or len(found) > MOST_COMMANDS:
        return CommandKind.ASKED
    kinds = {_classify_command(words) for words in found}
    return next(one for one in (CommandKind.ASKED, CommandKind.BUILDS, CommandKind.READS) if one in kinds)


def _classify_command(words: Sequence[str]) -> CommandKind:
    name, rest = words[0], words[1:]
    if name in READS and READS[name](rest):
        return CommandKind.READS
    return CommandKind.BUILDS if name in BUILDS and BUILDS[name](rest) else CommandKind.ASKED


def _list_plain_commands(line: str) -> list[tuple[str, ...]] | None:
    """The words of every command in the line; None where any part of it is not one of the plain ones."""
    read = read_line(line)
    if read is None or not read.listed:
        return None
    try:
        return [tuple(_list_plain_words(command.words)) for command in read.commands]
    except UnknownSyntax:
        return None


class UnknownSyntax(Exception):
    """A part of the shell's language that is asked about."""


def _list_plain_words(words: Sequence[ShellWord]) -> Iterator[str]:
    # A setting that is known stands in front of the name; any other one is not known.
    name, *rest = [*dropwhile(_is_quiet_setting, words)] or words
    # A name in quotes, or put together, is a name somebody wants to hide.
    if name.role is not WordRole.WORD or not NAME.fullmatch(name.source):
        raise UnknownSyntax
    yield name.text
    for word in rest:
        if word.role is not WordRole.TARGET:
            yield _read_plain_word(word)
        elif not DISCARDED.fullmatch(word.source):
            raise UnknownSyntax


def _is_quiet_setting(word: ShellWord) -> bool:
    return word.role is WordRole.ASSIGNMENT and QUIET.fullmatch(word.source) is not None


def _read_plain_word(word: ShellWord) -> str:
    """What the program will see, for words that mean themselves."""
    if not word.known:
        raise UnknownSyntax
    if IN_QUOTES.fullmatch(word.source):
        return word.text
    if "\\" in word.source:
        raise UnknownSyntax
    # It may become any name of a file, and such a name may look like an option.
    return f"-{word.text}" if word.text[:1] in GROWING else word.text


@lru_cache(maxsize=16)
def find_vain_call(line: str) -> VainGitCall | None:
    """Does the line, or one within it, call what git could not do here?"""
    if len(line) > LONGEST or "git" not in line:
        return None
    commands = _list_all_commands(line)
    folders = [words[1] for words in commands if words[0] == "cd" and len(words) > 1]
    return judge_git_calls([call for words in commands for call in find_git_calls(words, _find_calls_within)], folders)


def _find_calls_within(line: str) -> list[GitCall]:
    return [call for words in _list_all_commands(line) for call in find_git_calls(words, _find_calls_within)]


def _list_all_commands(line: str) -> list[list[str]]:
    """The words of every command, also of one inside of another. What a here-document holds is not run here."""
    read = read_line(line)
    runs = [
        [*dropwhile(lambda word: word.role is not WordRole.WORD, command.words)]
        for command in (read.list_commands() if read else ())
    ]
    return [[word.text for word in run if word.role is WordRole.WORD] for run in runs if run]
