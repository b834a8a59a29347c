"""Would this shell line act for the user? Some of menugate's own commands do, others only read.

A line with a command that acts is refused at every profile; if the line cannot be parsed, the name anywhere in it is
enough. Only words are checked, so a line that computes the name passes here. The command itself refuses then: it checks
which process started it.
"""

import re
from collections.abc import Iterable, Mapping

from mcp_server.model.shell import ReadLine, get_program_name
from mcp_server.policy.shell import ASSIGNMENT, list_commands

ACTS: Mapping[str, bool | frozenset[str]] = {
    "serve": False,
    "menus": frozenset(("propose",)),
    "check": False,
    "rules": False,
    "trust": True,
    "untrust": True,
    "explain": False,
    "call": True,
    "status": False,
    "messages": True,
    "upstreams": frozenset(("approve", "add", "disable", "enable", "remove", "test")),
    "secret": frozenset(("set", "remove")),
    "mode": True,
    "control": True,
    "profile": True,
    "model": True,
    "ai-mode": True,
    "reasoning": True,
    "autonomous": True,
    "steer": True,
    "doctor": frozenset(("fix",)),
    "todos": frozenset(("accept", "reject")),
    "memory": frozenset(("add", "forget")),
    "index": False,
    "approvals": False,
    "approve": True,
    "deny": True,
    "pause": True,
    "next": True,
    "stop": True,
    "report": False,
    "audit": False,
    "summary": False,
    "completion": False,
    "help": False,
    "version": False,
}
"""For every command: whether it answers, chooses or changes something for the user, or which words after it do."""
MODULES = ("mcp_server", "mcp_server.__main__", "mcp_server.cli", "mcp_server.cli.main")
MODULE_OPTION = re.compile("-[bBdEhiIOPqRsSuvVx?]*m(.*)", re.DOTALL)
"""Python's `-m`, alone or after options without a value; the module follows it, or is the next word."""
SCRIPT = re.compile(r"(.*/)?mcp_server(/__main__\.py|/cli|/cli/\w+\.py)?/?")
"""Our own module as a file or folder, which Python runs as well."""
CODE = re.compile(r"mcp_server\W+(cli|__main__|import\W+cli)|(runpy|import_module|__import__)\W.*mcp_server", re.DOTALL)
"""Python that may run a command of ours."""
RUNNING = """
uv uvx pipx poetry pdm hatch rye pixi conda mamba micromamba pyenv mise rtx sg ltrace gdb coverage kernprof scalene
memray viztracer npx bunx ssh systemd-run tmux screen pkexec nsenter valgrind perf
"""
RUNNERS = frozenset(RUNNING.split())
"""Programs that run a program named somewhere in their arguments."""

NAMERS = frozenset(("alias", "ln", "cp", "mv", "install", "which", "type", "readlink", "realpath", "hash", "whereis"))
"""Programs that give a program another name, or tell where it is."""

QUOTES = re.compile(r"""['"\\]""")
PACKAGE_VERSION = re.compile(r"[@=<>~!\[].*", re.DOTALL)
COMPUTED = re.compile(r"[$*?{\[]")
"""The shell makes another word of it, which may be any command."""
SIGNS = re.compile("[;&|()`<>]")


def find_acting_command(text: str, read: ReadLine) -> str | None:
    """Find the menugate command by which the line would act for the user; None if there is none."""
    commands = list_commands(text, read)
    if commands is None:
        return _find_command_in_unparsed_line(text)
    if found := next((name for words in commands if (name := _find_command_in_words(words))), None):
        return found
    return _find_command_by_other_name(commands) if any(map(_names_program_anew, commands)) else None


def _find_command_in_unparsed_line(text: str) -> str | None:
    """Find a command that acts anywhere after a mention of the program, since what the line runs is unknown."""
    words = iter(SIGNS.sub(" ", QUOTES.sub("", text)).split())
    for word in words:
        if _get_program_name(word) == "menugate" or word.removeprefix("-m") in MODULES:
            return next((word for word in words if ACTS.get(word)), None)
    return None


def _names_program_anew(words: tuple[str, ...]) -> bool:
    """True for `m=menugate`, `alias m=menugate`, `ln -s "$(which menugate)" m`: other commands may be ours, too."""
    if not words:
        return False
    named = words if ASSIGNMENT.match(words[0]) or words[:2] == ("command", "-v") else ()
    named = words[1:] if _get_program_name(words[0]) in NAMERS else named
    return any(_get_program_name(ASSIGNMENT.sub("", word).partition(" ")[0]) == "menugate" for word in named)


def _find_command_by_other_name(commands: Iterable[tuple[str, ...]]) -> str | None:
    """Find a command of ours behind any program, or in the text of an alias."""
    for words in commands:
        texts = [words[1:2], *(tuple(word.split()[1:2]) for word in words if " " in word)]
        if found := next((text[0] for text in texts if text and ACTS.get(text[0])), None):
            return found
    return None


def _find_command_in_words(words: tuple[str, ...]) -> str | None:
    """Find the command that these words run. After a runner it may be any word: what belongs to the runner's own
    options is unknown."""
    first = _get_program_name(words[0]) if words else ""
    anywhere, is_python = first in RUNNERS, first.startswith(("python", "pypy"))
    for at, word in enumerate(words):
        name = PACKAGE_VERSION.sub("", _get_program_name(word)) if anywhere else _get_program_name(word)
        if name == "menugate" and (at == 0 or anywhere):
            return _get_acting_command(words[at + 1 :])
        if at and anywhere and " " in word and (found := _find_command_in_unparsed_line(word)):
            return found
        if at and is_python and CODE.search(word):
            later = re.findall(r"[\w-]+", " ".join(words[at:]))
            return next((one for one in later if ACTS.get(one)), None)
        if at and (anywhere or is_python) and SCRIPT.fullmatch(word):
            return _get_acting_command(words[at + 1 :])
        if at and (anywhere or is_python) and (option := MODULE_OPTION.fullmatch(word)):
            module, *rest = (option[1], *words[at + 1 :]) if option[1] else (*words[at + 1 :], "")
            if module in MODULES:
                return _get_acting_command(tuple(rest))
    return None


def _get_acting_command(words: tuple[str, ...]) -> str | None:
    plain = [word for word in words if not word.startswith("-")]
    # The value of an option may stand before it.
    at = next((at for at, word in enumerate(plain) if word in ACTS), 0)
    acts = ACTS.get(plain[at], COMPUTED.search(plain[at]) is not None) if plain else False
    if acts is True or (isinstance(acts, frozenset) and acts.intersection(plain[at + 1 :])):
        return plain[at]
    return None


def _get_program_name(word: str) -> str:
    return get_program_name(word).casefold().removesuffix(".exe")
