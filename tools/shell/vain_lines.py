"""Can this line succeed at all? If not, nobody needs to be asked about it.

Only a line that stops when a command fails is looked at. What its first command needs must be there, because nothing
earlier can have made it; what the sandbox keeps from it fails anywhere in the line. The facts come in as functions, so
that this stays pure.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mcp_server.model.results import Code
from mcp_server.model.shell import ShellCommand, ShellLine, WordRole
from mcp_server.model.text import quote_text
from tools.shell.offline_lines import find_remote_command
from tools.shell.program_arguments import is_certain, read_argument
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.starters import STARTERS
from tools.shell.surroundings import Surroundings
from tools.shell.verdicts import NeedsApproval

PROGRAM = re.compile(r"[\w./+-]+")
PATH = re.compile(r"(?!-)[\w.@%+=:,-]+(?:/[\w.@%+=:,-]*)*")
STOPPING = frozenset(("&&", "|"))
STARTING_ONE = frozenset(("timeout", "nice", "time", "stdbuf", "env"))
RAISING = frozenset(("sudo", "su", "doas", "pkexec"))
SCRIPT_RUNNERS = frozenset("bash sh dash zsh python python3 node ruby perl php . source".split())  # noqa: SIM905
SEARCHING = frozenset((".", "source", "bash", "sh", "dash", "zsh"))
NODE_FILE = re.compile(r".*\.(?:[cm]?[jt]s|json)")
READERS = frozenset("cat head tail wc ls stat file cp mv rm rmdir cd sort".split())  # noqa: SIM905
NO_FILE = re.compile(r"/dev/null|\d+|-")
LAST_IS_NEW = frozenset(("cp", "mv"))
OPERANDS_NEEDED = frozenset(("rm", "rmdir", "cp", "mv"))
OFFLINE = (
    "Continue without it, or tell the user why you need it: only they can give commands the network, with "
    "`menugate profile trusted` at a terminal."
)
PLAIN_FLAGS = {
    **dict.fromkeys(("rm", "rmdir"), re.compile("-[dirRvI]+|--recursive|--verbose")),
    **dict.fromkeys(("cp", "mv"), re.compile("-[aifnrRpuvT]+")),
    **dict.fromkeys(("cat", "ls", "stat", "file"), re.compile("-[A-Za-z]+")),
}
"""Options that take no value, so that the other words are files. `rm -f` succeeds without any."""


class VainLine(Struct, frozen=True):
    because: str
    """Why it would fail, in a sentence."""
    way_out: str = "Check the name, or what the line expects."
    code: Code = Code.NOT_FOUND


def find_failure(line: ShellLine, folder: str, around: Surroundings) -> VainLine | None:
    """Say why the line would fail; None if it may succeed."""
    *ahead, last = line.commands
    if not line.listed or any(command.joined not in STOPPING for command in ahead) or last.joined.strip():
        return None
    started = [_find_started(command) for command in line.commands]
    piped = line.commands[0].joined == "|"
    if started[0] and (missing := _find_missing(started[0], line.commands[0], folder, around, piped)):
        return VainLine(missing)
    return _find_walled(started[0], [words for words in started if words], around)


def _find_walled(first: Sequence[str], each: Iterable[Sequence[str]], around: Surroundings) -> VainLine | None:
    """Say what the sandbox keeps from the line. It has no network at any place, and whatever has run before."""
    if first and first[0] in RAISING and not around.may_gain_privileges:
        because = f"{quote_text(first[0])} cannot get other privileges in a sandbox"
        return VainLine(because, "Run the command without it.", Code.PROFILE_TOO_LOW)
    remote = () if around.network else tuple(name for words in each if (name := find_remote_command(words)))
    if not remote:
        return None
    because = f"{quote_text(remote[0])} needs the network, and commands have none here"
    return VainLine(because, OFFLINE, Code.PROFILE_TOO_LOW)


def _find_missing(words: Sequence[str], first: ShellCommand, folder: str, around: Surroundings, piped: bool) -> str:
    """Behind a pipe, a line goes on when its first command fails, and may be about that: `ls x | grep -q …`."""
    name, rest = words[0], words[1:]
    missing = _find_missing_program(name, folder, around)
    # A redirection makes its file before the program looks for it, but no program.
    if missing or any(word.role is WordRole.TARGET and not NO_FILE.fullmatch(word.text) for word in first.words):
        return missing
    if name in SCRIPT_RUNNERS:
        return _find_missing_script(name, rest, folder, around)
    return _find_missing_operand(name, rest, folder, around) if name in READERS and not piped else ""


def _find_started(command: ShellCommand) -> tuple[str, ...]:
    """Return the words of what the command starts in the end; nothing if that is not plain."""
    words = _read_words(command)
    while words and words[0] in STARTING_ONE:
        words = _start(words) or ()
    return words


def _read_words(command: ShellCommand) -> tuple[str, ...]:
    """Return the words behind assignments; nothing if one of them is not plain."""
    words = [word for word in command.words if word.role not in (WordRole.ASSIGNMENT, WordRole.TARGET)]
    if any(word.role is WordRole.ASSIGNMENT and "PATH" in word.text.partition("=")[0] for word in command.words):
        return ()
    if command.nested or not words or any(word.role is not WordRole.WORD for word in words):
        return ()
    try:
        return tuple(read_argument(word) for word in words) if PROGRAM.fullmatch(words[0].source) else ()
    except NeedsApproval:
        return ()


def _start(words: Sequence[str]) -> tuple[str, ...] | None:
    if words[0] == "env" and any(word.startswith("PATH=") for word in words):
        return None
    started = STARTERS[words[0]](words[1:])
    return started[0] if started and is_certain(started[0][0]) and PROGRAM.fullmatch(started[0][0]) else None


def _find_missing_program(name: str, folder: str, around: Surroundings) -> str:
    if "/" not in name:
        known = name in BUILTIN_NAMES or around.has_program(name)
        return "" if known else f"there is no program {quote_text(name)}"
    if name.startswith("/"):
        # Its own `/tmp` begins empty, and nothing tells what is in other places that are hidden from here.
        is_system = re.match("/(?:usr|bin|sbin|opt)/", name) is not None
        return f"there is no program {quote_text(name)}" if is_system and not around.has_program(name) else ""
    kind = around.find_kind(_place(folder, name)) if _is_path(name) else "other"
    wrong = {"": "there is no file {}", "file": "{} is not executable", "directory": "{} is a folder"}
    return wrong[kind].format(quote_text(name)) if kind in wrong else ""


def _find_missing_script(name: str, rest: Sequence[str], folder: str, around: Surroundings) -> str:
    if not rest or not _is_path(rest[0]):
        return ""
    # A shell looks among the programs, too, and `node` tries the endings of its modules.
    if (name in SEARCHING and "/" not in rest[0] and around.has_program(rest[0])) or (
        name == "node" and not NODE_FILE.fullmatch(rest[0])
    ):
        return ""
    missing = not around.find_kind(_place(folder, rest[0]))
    return f"there is no file {quote_text(rest[0])}" if missing else ""


def _find_missing_operand(name: str, rest: Sequence[str], folder: str, around: Surroundings) -> str:
    flags = [word for word in rest if word.startswith("-")]
    known = PLAIN_FLAGS.get(name)
    if any(known is None or not known.fullmatch(flag) for flag in flags):
        return ""
    paths = [word for word in rest if not word.startswith("-")]
    if not paths and name in OPERANDS_NEEDED:
        return f"{quote_text(name)} names no file"
    read = paths[:-1] if name in LAST_IS_NEW else paths
    if not read or not all(map(_is_path, read)):
        return ""
    if any(around.find_kind(_place(folder, path)) for path in read):
        return ""
    return f"there is no file {quote_text(read[0])}" if name != "cd" else f"there is no folder {quote_text(read[0])}"


def _place(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _is_path(word: str) -> bool:
    """True if the word names one file below the current folder, whatever is there."""
    return is_certain(word) and PATH.fullmatch(word) is not None and ".." not in word.split("/")
