"""Which git command do these words call, behind other programs and git's own options?"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

AHEAD = {
    **dict.fromkeys(("command", "builtin", "nohup", "setsid"), ""),
    **{"exec": "a", "env": "u", "nice": "n", "ionice": "cn", "time": "fo", "stdbuf": "ioe", "timeout": "sk"},
    **{"sudo": "ugp", "xargs": "adEILnPs"},
}
"""Programs that start another one, with the letters of their options that take a value. This list finds what may run;
`starters.py` is the strict one."""
FILLED = ("…",)
"""Stands for the words that `xargs` adds, which are unknown."""
SHELLS = frozenset(("bash", "sh", "dash", "zsh"))
TAKING = frozenset(("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"))
"""Options of git whose value is the next word."""
PLACING = frozenset(("-C", "--git-dir", "--work-tree"))
SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


class GitCall(Struct, frozen=True):
    name: str
    rest: tuple[str, ...]
    places: tuple[str, ...] = ()
    """Folders that its options name to work in."""


def find_git_calls(words: Sequence[str], within: Callable[[str], Iterable[GitCall]]) -> Iterator[GitCall]:
    """`within` finds the calls in a line that is given to a shell."""
    at, filled = 0, ()
    while at < len(words) and (program := _get_program_name(words[at])) in AHEAD:
        filled = FILLED if program == "xargs" else filled
        at = _skip_program_options(words, at + 1, program)
    if at >= len(words):
        return
    name, rest = _get_program_name(words[at]), [*words[at + 1 :], *filled]
    if name in SHELLS or name == "eval":
        for line in [" ".join(rest)] if name == "eval" else _find_shell_lines(rest):
            yield from within(line)
    elif name == "find":
        for at in (at for at, word in enumerate(rest) if word in ("-exec", "-execdir", "-ok", "-okdir")):
            yield from find_git_calls([*takewhile(lambda word: word not in (";", "+"), rest[at + 1 :])], within)
    elif name == "git":
        yield from _parse_git_call(rest)


def _get_program_name(word: str) -> str:
    return word.rpartition("/")[2]


def _skip_program_options(words: Sequence[str], at: int, program: str) -> int:
    """Return the position of the program that this one starts, behind options, settings and a duration."""
    while at < len(words) and (words[at].startswith("-") or SETTING.fullmatch(words[at])):
        at += 2 if re.fullmatch(f"-[{AHEAD[program]}]" if AHEAD[program] else "(?!)", words[at]) else 1
    return at + (program == "timeout")


def _parse_git_call(words: Sequence[str]) -> Iterator[GitCall]:
    at, places = 0, list[str]()
    while at < len(words) and words[at].startswith("-"):
        option, _, value = words[at].partition("=")
        taking = words[at] in TAKING
        if option in PLACING:
            places.append(" ".join(words[at + 1 : at + 2]) if taking else value)
        at += 2 if taking else 1
    if at < len(words):
        yield GitCall(words[at], tuple(words[at + 1 :]), tuple(places))


def _find_shell_lines(words: Sequence[str]) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c", word)]
