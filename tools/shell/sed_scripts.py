"""Does this sed script only edit text? Judged by its text.

sed starts programs with `e`, also as a flag of `s`, and reads and writes files with `r`, `w` and the like. A script
that this module cannot take apart needs approval.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from tools.shell.interpreters import list_rewritten
from tools.shell.program_arguments import is_certain, is_pattern, is_unknown

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
IN_PLACE = re.compile(r"(?:-[nErsz]*i|--in-place(?:=(?=\.))?)(?P<ending>\.\w+)?")


class SedCall(Struct, frozen=True):
    in_place: bool
    files: tuple[str, ...]
    """With the copies that it keeps of them."""


def read_sed_call(words: Sequence[str]) -> SedCall | str:
    """Take the words after `sed` apart, or return the part that may do more than edit text."""
    scripts, others, endings, at = list[str](), list[str](), list[str](), 0
    while at < len(words):  # an option may stand anywhere
        word = words[at]
        if is_unknown(word) or (word.startswith("-") and is_pattern(word)):
            return word
        if GIVING.fullmatch(word):
            scripts += words[at + 1 : at + 2]
            at += 1
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif match := IN_PLACE.fullmatch(word):
            endings += ["", match["ending"] or ""]
        elif not word.startswith("-") or word == "-":
            others.append(word)
        elif not FLAGS.fullmatch(word):
            return word
        at += 1
    if not scripts:
        scripts, others = others[:1], others[1:]
    if uncertain := [script for script in scripts if not is_certain(script)]:
        return uncertain[0]
    if not scripts:
        return "sed"
    return find_sed_danger("\n".join(scripts)) or SedCall(bool(endings), list_rewritten(others, endings or [""]))


def find_sed_danger(script: str) -> str:
    """Return the script from the first command that may do more than edit text; empty if there is none."""
    at = 0
    while script[at:].strip(" \t;\n"):
        at = RANGE.match(script, at).end()  # pyright: ignore[reportOptionalMemberAccess]  # it matches nothing as well
        command = COMMAND.match(script, at)
        # Some versions of sed let a delimiter stand between brackets, others end the expression there.
        if command is None or (command["regex"] is not None and "[" in BRACKETS.sub("", command["regex"])):
            return script[at:] or script
        end = END.match(script, command.end()) if command[0] not in ("{", "}") else command
        if end is None:
            return script[at:]
        at = end.end()
    return ""
