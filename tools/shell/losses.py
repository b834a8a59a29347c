"""Which files does a command delete or overwrite, as far as its words say?"""

import posixpath
from collections.abc import Iterator, Sequence
from typing import Literal

from mcp_server.model.shell import ShellWord, WordRole
from mcp_server.model.tools import Loss
from tools.shell.line_judge import REDIRECTION, STREAMS, strip_keywords
from tools.shell.program_arguments import is_certain, read_argument, show_argument
from tools.shell.verdicts import NeedsApproval

DELETING = frozenset(("rm", "rmdir", "unlink", "/bin/rm", "/usr/bin/rm"))
"""Their options take no values, so that every other word is a path."""
OVERWRITING = frozenset((">", ">|", "&>", ">&"))


def find_losses(words: Sequence[ShellWord], folder: str) -> Iterator[Loss]:
    """Find them in a command that runs in this folder of the workspace."""
    try:
        plain = strip_keywords(words) if words else ()
    except NeedsApproval:
        return
    yield from _find_deleted([word for word in plain if word.role is WordRole.WORD], folder)
    for word in plain:
        sign = REDIRECTION.match(word.source) if word.role is WordRole.TARGET else None
        is_plain = word.known and not set(word.source) & set("*?[{~") and word.text not in STREAMS
        if sign is not None and sign[1] in OVERWRITING and is_plain and not word.text.isdecimal():
            yield _build_loss("overwrites", folder, word, word.text)


def _find_deleted(words: Sequence[ShellWord], folder: str) -> Iterator[Loss]:
    if not words or words[0].source not in DELETING:
        return
    only_paths = False
    for word in words[1:]:
        try:
            argument = read_argument(word)
        except NeedsApproval:
            argument = ""
        if not argument or not is_certain(argument) or argument != show_argument(argument):
            yield Loss("deletes", word.source, known=False)
        elif argument == "--" and not only_paths:
            only_paths = True
        elif only_paths or not argument.startswith("-"):
            yield _build_loss("deletes", folder, word, argument)


def _build_loss(does: Literal["deletes", "overwrites"], folder: str, word: ShellWord, path: str) -> Loss:
    """Behind a link, `..` is another folder than the text says. A slash at the end stands for what a link leads to."""
    joined = posixpath.join(folder, path)
    if ".." in joined.split("/"):
        return Loss(does, word.source, known=False)
    end = "/" if joined.endswith("/") else ""
    return Loss(does, posixpath.normpath(joined) + end)
