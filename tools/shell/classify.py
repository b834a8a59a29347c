"""What kind of command is this line: one that only reads, one that builds or tests, or one to be asked about?

The line is taken apart by a grammar of the shell, and every part of it has to be one that is known here: plain words,
plain strings, pipes, `&&`, `||` and `;`. Anything else, and any name that is not listed, is asked about. That is no
protection by itself: a sandbox is. It keeps a person from being asked about `ls`, and never lets a word hide another.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from itertools import dropwhile
from typing import TYPE_CHECKING

from mcp_server.model.posture import Profile
from mcp_server.model.tools import Arguments, Demand, Effect
from tools.shell.definitions import UNKNOWN
from tools.shell.git_commands import GitCall, find_git_calls
from tools.shell.git_writes import VainGitCall, judge_git_calls
from tools.shell.known_commands import BUILDS, READS

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 4_000
MOST_COMMANDS = 25
READABLE = re.compile(r"[\t\n\x20-\x7e\xa0-\U0010ffff]*")
"""A carriage return or an escape shows one thing and does another."""
AROUND = frozenset({"program", "list", "pipeline", "redirected_statement", "comment", "|", "&&", "||", ";", "\n"})
WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation", "string_content", '"'})
GROWING = frozenset("*?[{~")
NAME = re.compile(r"[A-Za-z0-9_.+-]+")
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
    if found is not CommandKind.ASKED:
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
    if len(line) > LONGEST or not READABLE.fullmatch(line):
        return CommandKind.ASKED
    found = _parse_plain_commands(line)
    if not found or len(found) > MOST_COMMANDS:
        return CommandKind.ASKED
    kinds = {_classify_command(words) for words in found}
    return next(one for one in (CommandKind.ASKED, CommandKind.BUILDS, CommandKind.READS) if one in kinds)


def _classify_command(words: Sequence[str]) -> CommandKind:
    name, rest = words[0], words[1:]
    if name in READS and READS[name](rest):
        return CommandKind.READS
    return CommandKind.BUILDS if name in BUILDS and BUILDS[name](rest) else CommandKind.ASKED


def _parse_plain_commands(line: str) -> list[tuple[str, ...]] | None:
    """The words of every command in the line; None where any part of it is not one of the plain ones."""
    root = _load_parser().parse(line.encode("utf-8", "replace")).root_node
    if root.has_error:
        return None
    try:
        return [tuple(_read_words(node)) for node in _walk_plain_nodes(root)]
    except UnknownSyntax:
        return None


@lru_cache(maxsize=16)
def find_vain_call(line: str) -> VainGitCall | None:
    """Does the line, or one within it, call what git could not do here?"""
    if len(line) > LONGEST or "git" not in line:
        return None
    commands = _parse_all_commands(line)
    folders = [words[1] for words in commands if words[0] == "cd" and len(words) > 1]
    return judge_git_calls([call for words in commands for call in find_git_calls(words, _find_calls_within)], folders)


def _find_calls_within(line: str) -> list[GitCall]:
    return [call for words in _parse_all_commands(line) for call in find_git_calls(words, _find_calls_within)]


def _parse_all_commands(line: str) -> list[list[str]]:
    """The words of every command, also of one inside of another, in the order in which they stand."""
    found: list[list[str]] = []
    waiting = [_load_parser().parse(line.encode("utf-8", "replace")).root_node]
    while waiting:
        node = waiting.pop()
        if node.type == "command":
            found.append([_strip_quotes(child) for child in node.children if child.type != "variable_assignment"])
        waiting += reversed(node.children)
    return [words for words in found if words]


def _strip_quotes(node: "Node") -> str:
    """A word without its quotes, whatever else there may be to it."""
    if node.type in ("word", "command_name") and node.child_count < 2 and not _get_text(node).startswith(("'", '"')):
        return _get_text(node).replace("\\", "")
    return _get_text(node).replace("'", "").replace('"', "") if node.child_count < 2 else _get_text(node).strip("'\"")


class UnknownSyntax(Exception):
    """A part of the shell's language that is asked about."""


def _walk_plain_nodes(node: "Node") -> Iterator["Node"]:
    if node.type == "command":
        yield node
        return
    if node.type == "file_redirect":
        if not DISCARDED.fullmatch(_get_text(node)):
            raise UnknownSyntax
        return
    if node.type not in AROUND:
        raise UnknownSyntax
    for child in node.children:
        yield from _walk_plain_nodes(child)


def _read_words(command: "Node") -> Iterator[str]:
    # A setting that is known stands in front of the name; any other one is not known.
    rest = dropwhile(
        lambda child: child.type == "variable_assignment" and QUIET.fullmatch(_get_text(child)), command.children
    )
    for place, child in enumerate(rest):
        if place == 0:
            name = child.children[0] if child.type == "command_name" and child.child_count == 1 else None
            # A name in quotes, or put together, is a name somebody wants to hide.
            if name is None or name.type != "word" or not NAME.fullmatch(_get_text(name)):
                raise UnknownSyntax
            yield _get_text(name)
        elif child.type == "file_redirect":
            if not DISCARDED.fullmatch(_get_text(child)):
                raise UnknownSyntax
        else:
            yield _read_word(child)


def _read_word(node: "Node") -> str:
    """What the program will see, for words that mean themselves."""
    if node.type not in WORDS:
        raise UnknownSyntax
    text = _get_text(node)
    if node.type == "raw_string":
        return text[1:-1]
    if "\\" in text:
        raise UnknownSyntax
    if node.type in ("string", "concatenation"):
        return "".join(_read_word(child) for child in node.children if child.type != '"')
    # It may become any name of a file, and such a name may look like an option.
    return f"-{text}" if text[:1] in GROWING else text


def _get_text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


@lru_cache(maxsize=1)
def _load_parser() -> "Parser":
    # Here and not above: a server that never sees a command never loads a grammar.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
