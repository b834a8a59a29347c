"""Would this shell line act for the user? Some of menugate's own commands do, others only read.

A line with a command that acts is refused at every profile; if the line cannot be parsed, the name anywhere in it is
enough. Only words are checked, so a line that computes the name passes here. The command itself refuses then: it checks
which process started it.
"""

import re
from collections.abc import Mapping

from mcp_server.model.shell import ReadLine, get_program_name
from mcp_server.policy.shell import list_commands

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
RUNNING = "uv uvx pipx poetry pdm hatch rye pixi conda mamba micromamba pyenv mise rtx sg ltrace gdb"
RUNNERS = frozenset(RUNNING.split())
"""Programs that run a program named somewhere in their arguments."""

QUOTES = re.compile(r"""['"\\]""")
SIGNS = re.compile("[;&|()`<>]")


def find_acting_command(text: str, read: ReadLine) -> str | None:
    """Find the menugate command by which the line would act for the user; None if there is none."""
    commands = list_commands(text, read)
    if commands is None:
        return _find_command_in_unparsed_line(text)
    return next((name for words in commands if (name := _find_command_in_words(words))), None)


def _find_command_in_unparsed_line(text: str) -> str | None:
    """Find a command that acts anywhere after a mention of the program, since what the line runs is unknown."""
    words = iter(SIGNS.sub(" ", QUOTES.sub("", text)).split())
    for word in words:
        if _get_program_name(word) == "menugate" or word.removeprefix("-m") in MODULES:
            return next((word for word in words if ACTS.get(word)), None)
    return None


def _find_command_in_words(words: tuple[str, ...]) -> str | None:
    """Find the command that these words run. After a runner it may be any word: what belongs to the runner's own
    options is unknown."""
    first = _get_program_name(words[0]) if words else ""
    anywhere, is_python = first in RUNNERS, first.startswith(("python", "pypy"))
    for at, word in enumerate(words):
        if _get_program_name(word) == "menugate" and (at == 0 or anywhere):
            return _get_acting_command(words[at + 1 :])
        if at and (anywhere or is_python) and (option := MODULE_OPTION.fullmatch(word)):
            module, *rest = (option[1], *words[at + 1 :]) if option[1] else (*words[at + 1 :], "")
            if module in MODULES:
                return _get_acting_command(tuple(rest))
    return None


def _get_acting_command(words: tuple[str, ...]) -> str | None:
    plain = [word for word in words if not word.startswith("-")]
    acts = ACTS.get(plain[0], False) if plain else False
    if acts is True or (isinstance(acts, frozenset) and acts.intersection(plain[1:])):
        return plain[0]
    return None


def _get_program_name(word: str) -> str:
    return get_program_name(word).casefold().removesuffix(".exe")
