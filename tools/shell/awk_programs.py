"""Does this awk program only compute and print? Judged by its text.

A program that this module cannot take apart needs approval. awk starts programs with `system()` and pipes, writes files
with `>` after `print`, and gawk loads code with `@load`.
"""

import re
from collections.abc import Sequence

from tools.shell.program_arguments import is_certain, is_pattern, is_unknown

TOKEN = re.compile(
    r"""
      [ \t]+ | [;{}\n]
    | "(?:[^"\\\n]|\\.)*"  # a string
    | [A-Za-z_]\w* | [0-9.]+
    | \|\| | && | [-+*%^=!<>~?:,()\[\]$]
    """,
    re.VERBOSE,
)
VALUE = re.compile(r"[A-Za-z_]\w*|[0-9.]+|\]")
REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n/]|\\.)*\])+/")
BEFORE_REGEX = frozenset(("", "(", ",", "!", "~", "&&", "||", ";", "{", "}", "\n"))
"""After these a `/` begins a regular expression; after a value it divides, and what follows is code."""
PRINTING = frozenset(("print", "printf"))
DANGEROUS = frozenset(("system", "extension"))
KEYWORDS = """
if else while for do break continue next nextfile exit return delete in function func getline case default switch BEGIN
END BEGINFILE ENDFILE length
"""
NO_VALUES = PRINTING.union(KEYWORDS.split())
"""Names after which a `/` need not divide."""
OPTIONS = re.compile(r"-F.+")
SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def find_awk_danger(words: Sequence[str]) -> str:
    """Return the part of the words after `awk` that may do more than print; empty if there is none."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        takes_value = words[at] in ("-F", "-v") and words[at + 1 : at + 2] and not is_unknown(words[at + 1])
        # A pattern could become several words, one of which would be the program.
        takes_value = takes_value and not is_pattern(words[at + 1])
        if is_unknown(words[at]) or not (takes_value or OPTIONS.fullmatch(words[at])):
            return words[at]
        if words[at] == "-v" and not SETTING.fullmatch(words[at + 1]):
            return words[at + 1]
        at += 2 if takes_value else 1
    # Options end at the program; everything behind it is a file.
    if at >= len(words):
        return "awk"
    return _find_danger(words[at]) if is_certain(words[at]) else words[at]


def _find_danger(program: str) -> str:
    at, before, printing = 0, "", False
    while at < len(program):
        if program[at] == "/" and VALUE.fullmatch(before) and before not in NO_VALUES:
            at, before = at + 1, "/"
            continue
        token = (REGEX if program[at] == "/" and before in BEFORE_REGEX else TOKEN).match(program, at)
        if token is None:
            return program[at:]
        text = token[0]
        if text in DANGEROUS or (printing and text == ">"):
            return program[at:]
        at = token.end()
        # A line end alone does not end a statement: it may follow a comma.
        printing = text not in (";", "{", "}") and (printing or text in PRINTING)
        before = before if text.isspace() and text != "\n" else text
    return ""
