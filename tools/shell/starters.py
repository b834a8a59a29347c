"""Which programs do these words start, behind `timeout`, `env`, `xargs` and the like?

A closed list. Each entry knows the options that only say how the program runs; with any other option, the line needs
approval. `sudo`, `setsid`, `exec`, `watch` and many more are not here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from tools.shell.program_arguments import ONE_UNKNOWN, SOME_UNKNOWN, PartlyKnown, is_certain, is_pattern, is_unknown
from tools.shell.variables import judge_variable
from tools.shell.verdicts import CommandKind

Starts: TypeAlias = Callable[[Sequence[str]], "list[tuple[str, ...]] | None"]
"""Returns the words of each program that is started; None if there may be more to it."""


def skip_options(flags: str, valued: str = "(?!)", positions: int = 0) -> Starts:
    """Skip options, those that take the next word, and as many words in front of the program."""
    flag, takes_value = re.compile(flags), re.compile(valued)

    def start(words: Sequence[str]) -> list[tuple[str, ...]] | None:
        at = 0
        while at < len(words) and words[at].startswith("-"):
            if takes_value.fullmatch(words[at]):
                at += 2
            elif flag.fullmatch(words[at]):
                at += 1
            else:
                return None
        if any(is_unknown(word) or is_pattern(word) for word in words[: at + positions]):
            return None
        return [tuple(words[at + positions :])] if at + positions < len(words) else None

    return start


SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def start_with_environment(words: Sequence[str]) -> list[tuple[str, ...]] | None:
    at = len(list(takewhile(_is_ahead_of_program, words)))
    return [tuple(words[at:])] if at < len(words) and words[at][:1] != "-" else None


def _is_ahead_of_program(word: str) -> bool:
    return word in ("-i", "-") or SETTING.fullmatch(word) is not None


def judge_settings(words: Sequence[str]) -> list[CommandKind]:
    """Judge the variables that `env` sets for a program. Raises NeedsApproval."""
    kinds: list[CommandKind] = []
    for word in takewhile(_is_ahead_of_program, words):
        name, given, value = word.partition("=")
        if given:
            kinds.append(judge_variable(name, value if is_certain(word) else None, exported=True))
    return kinds


READ_BY_XARGS = "what xargs reads"
XARGS_VALUE = re.compile(r"\d+|\\?.", re.DOTALL)
XARGS_FLAGS = re.compile(r"-[0rtx]+|-[nLPsd].+|--(?:null|no-run-if-empty)")


def start_for_each_input(words: Sequence[str]) -> list[tuple[str, ...]] | None:
    """What `xargs` adds may be anything. Given `-I`, it replaces that text wherever it stands, but not with `-n` or
    `-L`."""
    at, replaced, counted = 0, "", False
    while at < len(words) and words[at].startswith("-"):
        if words[at].startswith("-I") and is_certain(words[at]):
            replaced = words[at][2:] or next(iter(words[at + 1 : at + 2]), "")
            at += 1 if words[at] != "-I" else 2
        elif words[at] in ("-n", "-L", "-P", "-s", "-d"):
            if not all(is_certain(value) and XARGS_VALUE.fullmatch(value) for value in words[at + 1 : at + 2]):
                return None
            counted |= words[at] in ("-n", "-L")
            at += 2
        elif XARGS_FLAGS.fullmatch(words[at]) and not is_unknown(words[at]):
            counted |= words[at].startswith(("-n", "-L"))
            at += 1
        else:
            return None
    if not is_certain(replaced) or (replaced and counted):
        return None
    if replaced:
        return [tuple(f"{ONE_UNKNOWN}{word}" if replaced in word else word for word in words[at:] or ("echo",))]
    return [(*(words[at:] or ("echo",)), f"{SOME_UNKNOWN}{READ_BY_XARGS}")]


FIND_TESTS = re.compile(
    "-(?:name|iname|path|ipath|wholename|regex|iregex|type|xtype|size|mtime|atime|ctime|mmin|amin|newer|perm|user|group"
    "|maxdepth|mindepth|links|samefile|printf)"
)
FIND_FLAGS = re.compile(
    "[(),!]|-(?:empty|print|print0|ls|not|and|or|o|a|prune|quit|true|false|readable|writable|executable|depth|xdev|mount"
    "|follow|daystart|[HLP])?"
)
FIND_STARTS = frozenset(("-exec",))
"""`-execdir` starts its program in another folder for each file, which nobody has looked at."""


def start_for_each_file(words: Sequence[str]) -> list[tuple[str, ...]] | None:
    """Read the words of `find`: what it looks for, and the programs that it starts."""
    started: list[tuple[str, ...]] = []
    at = 0
    while at < len(words):
        word = words[at]
        if FIND_TESTS.fullmatch(word):
            if at + 1 >= len(words) or words[at + 1].startswith((SOME_UNKNOWN, "-*", "-?", "-[")):
                return None
            at += 2
        elif word in FIND_STARTS:
            end = next((end for end in range(at + 1, len(words)) if words[end] in (";", "+")), None)
            if end is None or end == at + 1 or (words[end] == "+" and words[end - 1] != "{}"):
                return None
            # An unknown word may be the `;` that ends this program and begins more of find's own words.
            if any(is_unknown(one) or (is_pattern(one) and one[:1] in "-;+") for one in words[at + 1 : end]):
                return None
            started.append(tuple(_read_found_name(one) for one in words[at + 1 : end]))
            at = end + 1
        elif not word.startswith("-") or FIND_FLAGS.fullmatch(word):
            at += 1
        else:
            return None
    return started


def _read_found_name(word: str) -> str:
    """A name that `find` fills in begins with the folder where it looked, so it is never an option."""
    return PartlyKnown("./{}") if word == "{}" else f"{ONE_UNKNOWN}{word}" if "{}" in word else word


STARTERS: Mapping[str, Starts] = {
    "timeout": skip_options(
        "--(?:foreground|preserve-status|verbose|(?:signal|kill-after)=.+)|-v|-[sk][A-Za-z0-9.]+", "-[sk]", 1
    ),
    "nice": skip_options(r"-n?-?\d+|--adjustment=-?\d+", "-n"),
    "time": skip_options("-p"),
    **dict.fromkeys(("command", "nohup"), skip_options("(?!)")),
    "stdbuf": skip_options(r"-[ioe](?:L|\d+)|--(?:input|output|error)=(?:L|\d+)"),
    "env": start_with_environment,
    "xargs": start_for_each_input,
    "find": start_for_each_file,
}
