"""Which command of git do these words call? Whatever stands in front of it: other programs, and git's own options."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

AHEAD = frozenset(("command", "builtin", "exec", "env", "nohup", "nice", "time", "sudo"))
"""Programs that start the one named behind their options."""
SHELLS = frozenset(("bash", "sh", "dash", "zsh"))
TAKING = frozenset(("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"))
"""Options of git that take the next word with them."""
PLACING = frozenset(("-C", "--git-dir", "--work-tree"))
SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GitCall:
    name: str
    rest: tuple[str, ...]
    places: tuple[str, ...] = ()
    """Folders that git is told to work in."""


def git_calls(words: Sequence[str], within: Callable[[str], Iterable[GitCall]]) -> Iterator[GitCall]:
    """`within`: asked about a line that is given to a shell, for the calls in it."""
    at = 0
    while at < len(words) and _leads_on(words, at):
        at += 1
    if at >= len(words):
        return
    name, rest = words[at].rpartition("/")[2], words[at + 1 :]
    if name in SHELLS:
        for line in _given_to_a_shell(rest):
            yield from within(line)
    elif name == "git":
        yield from _git(rest)


def _git(words: Sequence[str]) -> Iterator[GitCall]:
    at, places = 0, list[str]()
    while at < len(words) and words[at].startswith("-"):
        option, _, value = words[at].partition("=")
        taking = words[at] in TAKING
        if option in PLACING:
            places.append(" ".join(words[at + 1 : at + 2]) if taking else value)
        at += 2 if taking else 1
    if at < len(words):
        yield GitCall(words[at], tuple(words[at + 1 :]), tuple(places))


def _leads_on(words: Sequence[str], at: int) -> bool:
    word = words[at]
    return word.rpartition("/")[2] in AHEAD or (at > 0 and (word.startswith("-") or bool(SETTING.fullmatch(word))))


def _given_to_a_shell(words: Sequence[str]) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c", word)]
