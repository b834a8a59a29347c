"""Does this sed script only edit text? Judged by its text.

sed starts programs with `e`, also as a flag of `s`, and reads and writes files with `r`, `w` and their like. A script that
this module cannot take apart needs approval.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tools.shell.arguments import is_unknown

ADDRESS = r"(?:[0-9]+(?:~[0-9]+)?|\$|/(?:[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]*\])*/[IM]*)"
RANGE = re.compile(rf"[ \t;\n]*(?:{ADDRESS}(?:[ \t]*,[ \t]*(?:[+~][0-9]+|{ADDRESS}))?)?[ \t]*!?[ \t]*", re.DOTALL)
COMMAND = re.compile(
    r"""
      [{}=dDgGhHnNpPxzF]
    | [qQlL][ ]?[0-9]*
    | [btT:][ ]?[A-Za-z0-9_]*
    | [aic][ \t]*\\?\n?(?:[^\\\n]|\\.)*
    | y(?P<y>[/|,:#@])(?:(?!(?P=y))[^\\\n]|\\.)*(?P=y)(?:(?!(?P=y))[^\\\n]|\\.)*(?P=y)
    | s(?P<s>[/|,:\#@!%+_])(?P<regex>(?:(?!(?P=s))[^\\\n]|\\.)*)(?P=s)(?:(?!(?P=s))[^\\\n]|\\.)*(?P=s)[gpiIM0-9]*
    """,
    re.VERBOSE | re.DOTALL,
)
BRACKETS = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
END = re.compile(r"[ \t]*(?:[;\n]|(?=\})|#[^\n]*|$)")
GIVING = re.compile(r"-[nErsuz]*e|--expression")
"""Options that take the next word as a script."""
FLAGS = re.compile(r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|unbuffered|null-data|posix)")
IN_PLACE = re.compile(r"-[nErsz]*i(?:\.\w+)?|--in-place(?:=\.\w+)?")


@dataclass(frozen=True, slots=True)
class SedCall:
    in_place: bool
    files: tuple[str, ...]


def read_sed_call(words: Sequence[str]) -> SedCall | None:
    """Take the words after `sed` apart; None if it may do more than edit text. An option may stand anywhere."""
    scripts, others, in_place, at = list[str](), list[str](), False, 0
    while at < len(words):
        word = words[at]
        if is_unknown(word):
            return None
        if GIVING.fullmatch(word):
            scripts += words[at + 1 : at + 2]
            at += 1
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif IN_PLACE.fullmatch(word):
            in_place = True
        elif word.startswith("-") and word != "-":
            if not FLAGS.fullmatch(word):
                return None
        else:
            others.append(word)
        at += 1
    if not scripts:
        scripts, others = others[:1], others[1:]
    if not scripts or any(is_unknown(script) for script in scripts) or not only_edits("\n".join(scripts)):
        return None
    return SedCall(in_place, tuple(others))


def only_edits(script: str) -> bool:
    at = 0
    while script[at:].strip(" \t;\n"):
        at = RANGE.match(script, at).end()  # pyright: ignore[reportOptionalMemberAccess]  # it matches nothing as well
        command = COMMAND.match(script, at)
        if command is None:
            return False
        # Some versions of sed let a delimiter stand between brackets, others end the expression there.
        if command["regex"] is not None and "[" in BRACKETS.sub("", command["regex"]):
            return False
        at = command.end()
        if command[0] not in ("{", "}"):
            end = END.match(script, at)
            if end is None:
                return False
            at = end.end()
    return True
