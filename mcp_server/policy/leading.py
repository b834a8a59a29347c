"""By which word is a rule found among a thousand about the same tool?

A specifier with a name in it can only fit a call that holds this name: the command it runs, or a folder or file along
its path. The test itself stays the same; this only spares the rules that could not fit.
"""

import unicodedata
from collections.abc import Iterable, Sequence

from mcp_server.model.tools import RuleSubject
from mcp_server.policy.globs import LONGEST, lexical
from mcp_server.policy.shell_reader import read

WILD = frozenset("$*?[{")


def plain(word: str) -> str:
    return unicodedata.normalize("NFC", word.casefold())


def word_of(specifier: str, kind: RuleSubject, roots: Sequence[str] = ()) -> str | None:
    """The name a call has to hold for the specifier to fit it; None where there is none to be named."""
    if kind is RuleSubject.PATH and "{" not in specifier:
        parts = lexical(specifier, roots)
        return next((plain(part) for part in parts if part not in ("/", "..") and not WILD & set(part)), None)
    if kind is RuleSubject.COMMAND:
        line = read(specifier.removesuffix(":*"))
        first = line.commands[0][0] if line and line.plain else "*"
        return None if WILD & set(first) else plain(first.rsplit("/", 1)[-1])
    return None


def words_of(values: Iterable[object], kind: RuleSubject) -> frozenset[str] | None:
    """The names that a call holds; None where that cannot be told, and every rule has to be asked."""
    words: set[str] = set()
    for value in values:
        if not isinstance(value, str) or len(value) > LONGEST or kind is RuleSubject.TEXT:
            return None
        found = _in_path(value) if kind is RuleSubject.PATH else _in_command(value)
        if found is None:
            return None
        words |= found
    return frozenset(words)


def _in_path(path: str) -> set[str] | None:
    return None if "\0" in path else set(plain(path).split("/"))


def _in_command(text: str) -> set[str] | None:
    line = read(text)
    if line is None:
        return None
    names = [command[0] for command in line.commands if command]
    if any(WILD & set(name) for name in names):
        return None
    return {plain(name.rsplit("/", 1)[-1]) for name in names}
