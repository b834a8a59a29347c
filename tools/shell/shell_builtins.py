"""Which builtins of bash may run unasked, and with which words?

`eval`, `exec`, `trap`, `alias`, `let`, `declare` and others are not here. Several others would run what is in brackets
after a variable's name, as in `test -v 'a[$(rm x)]'`, so names are checked.
"""

import re
from collections.abc import Mapping, Sequence

from tools.shell.program_arguments import SOME_UNKNOWN, Fits, is_certain, is_unknown, may_have_any_words
from tools.shell.variables import is_own_variable, may_be_set

ALL_NAMES = """
. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable
eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd
read readarray readonly return set shift shopt source suspend test time times trap true type typeset ulimit umask
unalias unset wait coproc
"""
BUILTIN_NAMES = frozenset(ALL_NAMES.split())
"""All of them."""
UNARY = re.compile("-[bcdefghkLnNoOprsStuwxzG]")
BINARY = re.compile("=|==|!=|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)")
JOINING = re.compile(r"-[ao]|!|\(|\)")
COMPARING = re.compile("=|==|!=|=~|<|>|-(?:nt|ot|ef)")
COMPARING_NUMBERS = re.compile("-(?:eq|ne|lt|le|gt|ge)")
LITERAL_NUMBER = re.compile("-?[0-9]+")
SETTINGS = re.compile("[-+](?:[eux]+o?|o)|pipefail|errexit|nounset|xtrace")
READ_FLAGS = re.compile("-[rs]+")
READ_VALUES = re.compile("-r?[dntpN]")


def is_plain_test(words: Sequence[str]) -> bool:
    """Judge `test`. An unknown word must be a single one, and stand where no operator can."""
    # Between single brackets, `<` and `>` redirect although the grammar takes them for comparisons.
    if any(word.startswith((SOME_UNKNOWN, "-*", "-?", "-[")) or "<" in word or ">" in word for word in words):
        return False
    if not any(is_unknown(word) for word in words):
        known = (UNARY, BINARY, JOINING)
        return all(any(one.fullmatch(word) for one in known) for word in words if word.startswith("-"))
    return _is_single_test(words[1:] if words[0] == "!" else words, BINARY)


def _is_single_test(words: Sequence[str], binary: re.Pattern[str]) -> bool:
    if len(words) == 2:
        return UNARY.fullmatch(words[0]) is not None
    return len(words) == 1 or (len(words) == 3 and binary.fullmatch(words[1]) is not None)


def is_plain_bracket_test(words: Sequence[str]) -> bool:
    return words[-1:] == ("]",) and (len(words) == 1 or is_plain_test(words[:-1]))


def is_plain_condition(words: Sequence[str]) -> bool:
    """Judge `[[ ]]`, where bash splits no words. Its `-v` and `-eq` would evaluate what they compare."""
    if words[-1:] != ("]]",):
        return False
    tests: list[list[str]] = [[]]
    for word in words[:-1]:
        if word in ("&&", "||"):
            tests.append([])
        else:
            tests[-1].append(word)
    return all(_is_single_condition(one[1:] if one[:1] == ["!"] else one) for one in tests)


def _is_single_condition(words: Sequence[str]) -> bool:
    if len(words) == 3 and COMPARING_NUMBERS.fullmatch(words[1]):
        return all(LITERAL_NUMBER.fullmatch(one) for one in (words[0], words[2]))
    return _is_single_test(words, COMPARING)


def is_plain_read(words: Sequence[str]) -> bool:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if not (READ_FLAGS.fullmatch(words[at]) or READ_VALUES.fullmatch(words[at])):
            return False
        if READ_VALUES.fullmatch(words[at]) and not all(map(is_certain, words[at + 1 : at + 2])):
            return False
        at += 1 if READ_FLAGS.fullmatch(words[at]) else 2
    return all(is_own_variable(word) for word in words[at:])


def is_plain_mapfile(words: Sequence[str]) -> bool:
    """Its `-C` runs a command for every line."""
    names = words[1:] if words[:1] == ("-t",) else words
    return len(names) == 1 and is_certain(names[0]) and is_own_variable(names[0])


def allow_matching(pattern: str, most: int = 99) -> Fits:
    known = re.compile(pattern)
    return lambda words: len(words) <= most and all(known.fullmatch(word) for word in words)


BUILTINS: Mapping[str, Fits] = {
    **dict.fromkeys((":", "true", "false", "echo", "type", "which", "pwd"), may_have_any_words),
    "jobs": allow_matching("-[lnprs]+"),
    **dict.fromkeys(("exit", "return", "break", "continue", "shift"), allow_matching("[0-9]+", 1)),
    "wait": allow_matching(r"[0-9]+|%[0-9]+|-n"),
    "set": lambda words: words[:1] == ("--",) or all(SETTINGS.fullmatch(word) for word in words),
    "shopt": allow_matching("-[sup]+|globstar|nullglob|failglob|nocaseglob"),
    "unset": lambda words: all(is_own_variable(word) or may_be_set(word) for word in words),
    "read": is_plain_read,
    **dict.fromkeys(("mapfile", "readarray"), is_plain_mapfile),
    "ulimit": lambda words: (
        len(words) == 2
        and re.fullmatch("-[SH]?[cdflmnstuv]", words[0]) is not None
        and re.fullmatch("[0-9]+|unlimited", words[1]) is not None
    ),
    "test": is_plain_test,
    "[": is_plain_bracket_test,
    "[[": is_plain_condition,
    "command": lambda words: words[:1] in (("-v",), ("-V",)),
}
