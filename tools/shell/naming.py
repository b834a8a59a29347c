"""Which command of git do these words call? Whatever stands in front of it: other programs, and git's own options."""

import re
from collections.abc import Callable, Sequence

AHEAD = frozenset(("command", "builtin", "exec", "env", "nohup", "nice", "time", "sudo"))
"""Programs that start the one named behind their options."""
SHELLS = frozenset(("bash", "sh", "dash", "zsh"))
TAKING = frozenset(("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"))
"""Options of git that take the next word with them."""
SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def git_command(words: Sequence[str], within: Callable[[str], bool]) -> str | None:
    """`within`: asked about a line that is given to a shell; where it says yes, that is a commit."""
    at = 0
    while at < len(words) and _leads_on(words, at):
        at += 1
    if at >= len(words):
        return None
    name, rest = words[at].rpartition("/")[2], words[at + 1 :]
    if name in SHELLS:
        return "commit" if any(within(line) for line in _given_to_a_shell(rest)) else None
    if name != "git":
        return None
    at = 0
    while at < len(rest) and rest[at].startswith("-"):
        at += 2 if rest[at] in TAKING else 1
    return rest[at] if at < len(rest) else None


def _leads_on(words: Sequence[str], at: int) -> bool:
    word = words[at]
    return word.rpartition("/")[2] in AHEAD or (at > 0 and (word.startswith("-") or bool(SETTING.fullmatch(word))))


def _given_to_a_shell(words: Sequence[str]) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c", word)]
