"""Would this line of shell speak for the person? Which of menugate's own commands act, and which only read.

A line that names one that acts is refused whatever the profile. It is read by its words, so a line that computes the
name passes here; the command itself looks who started it, and refuses then.
"""

import re
from collections.abc import Mapping

from mcp_server.policy.shell_reader import read_shell_line

ACTS: Mapping[str, bool | frozenset[str]] = {
    "serve": False,
    "menus": False,
    "check": False,
    "rules": False,
    "trust": True,
    "untrust": True,
    "explain": False,
    "call": True,
    "status": False,
    "messages": True,
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
}
"""Every command of the command line: does it answer, choose or change for the person, or which words behind it do?"""
MODULES = ("mcp_server", "mcp_server.__main__", "mcp_server.cli", "mcp_server.cli.main")
MODULE_OPTION = re.compile("-[bBdEhiIOPqRsSuvVx?]*m(.*)", re.DOTALL)
"""Python's, alone or behind options that take no value; the module stands behind it or in the next word."""
RUNNERS = frozenset(
    [
        "uv",
        "uvx",
        "pipx",
        "poetry",
        "pdm",
        "hatch",
        "rye",
        "pixi",
        "conda",
        "mamba",
        "micromamba",
        "pyenv",
        "mise",
        "rtx",
        "sg",
        "ltrace",
        "gdb",
    ]
)
"""Programs that run what is named somewhere behind them."""


def find_acting_command(text: str) -> str | None:
    """The command of menugate's by which the line would speak for the person; None where it names none."""
    line = read_shell_line(text)
    if line is None:
        return None
    return next((found for words in line.commands if (found := _find_command_in_words(words))), None)


def _find_command_in_words(words: tuple[str, ...]) -> str | None:
    """Whatever stands before it that is a program too: a wrapper's own options are not told from what it runs."""
    anywhere = bool(words) and _get_program_name(words[0]) in RUNNERS
    for at, word in enumerate(words):
        if _get_program_name(word) == "menugate" and (at == 0 or anywhere):
            return _get_acting_command(words[at + 1 :])
        if at and (anywhere or _is_python(words[0])) and (option := MODULE_OPTION.fullmatch(word)):
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
    return word.rsplit("/", 1)[-1].casefold().removesuffix(".exe")


def _is_python(word: str) -> bool:
    return _get_program_name(word).startswith(("python", "pypy"))
