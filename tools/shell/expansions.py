"""Which expansions only insert text?"""

import re

from mcp_server.model.shell import ShellCommand
from mcp_server.model.text import quote_text
from tools.shell.arithmetic import IsNumber, judge_arithmetic, judge_loop_head, read_arithmetic, read_delimited
from tools.shell.variables import is_own_variable
from tools.shell.verdicts import NeedsApproval

PLAIN_EXPANSION = re.compile(
    r"\$(?:\w+|[@*#?$!-])"  # $x $1 $@ $?
    r"|\$\{#?(?:\w+|[@*#?$!-])\}"  # ${x} ${#x}
    r"|\{-?\w+\.\.-?\w+(?:\.\.\d+)?\}"  # {1..9}
)
BRACED = re.compile(r"\$\{(?P<sign>[#!]?)(?P<name>\w+|[@*])(?:\[(?P<at>[^][{}'\"`\\]*)\])?(?P<rest>.*)\}", re.DOTALL)
PLAIN_VALUE = r"\$(?:\w+|\{\w+\})"
OPERAND = (
    rf"(?:[^$`'\"\\{{}}()<>;&|\n]|\\[^{{}}\n]|{PLAIN_VALUE}|'[^'\"$`\\{{}}\n]*'"
    rf"|\"(?:[^'\"$`\\{{}}\n]|{PLAIN_VALUE})*\"|\$'(?:[^'\"$`\\{{}}\n]|\\[nrt])*')*"
)
"""Text, or what plain variables contain. Where braces or odd quotes are in it, not everybody agrees where it ends."""
CHANGED = re.compile(rf"(?:%%?|##?|:?[-+?]|//?[%#]?|,,?|\^\^?){OPERAND}|@[QULu]")
DEFAULT = re.compile(rf":?={OPERAND}")
PART = re.compile(r":(?![-+=?])(.*)", re.DOTALL)
"""The other expansions can run commands: `${x@P}`, `${!x}`, `${x[y]}`."""
COUNT = r"\$(?:[?#$]|\{[?#$]\}|\{#\w+(?:\[[@*]\])?\}|\{PIPESTATUS\[\d+\]\})"
"""Expansions that are always a number."""
LITERAL_ARITHMETIC = re.compile(r"\$\(\([\d \t+*/%-]*\)\)")
NUMBER = re.compile(rf"{COUNT}|{LITERAL_ARITHMETIC.pattern}|\$\((?:nproc(?: --all)?|getconf _NPROCESSORS_ONLN)\)")
ARITHMETIC = re.compile(r"\$\(\(|\$\[")
SUBSCRIPT = re.compile(r"[@*]|-?\d+|\$\{?(?P<inserted>[A-Za-z_]\w*)\}?|(?P<named>[A-Za-z_]\w*)")


def has_no_number(name: str, begun: frozenset[str] = frozenset()) -> bool:
    return False


def require_plain_expansion(source: str, is_number: IsNumber = has_no_number) -> None:
    if PLAIN_EXPANSION.fullmatch(source):
        return
    if source.startswith(("$((", "((")):
        if ";" in source:
            judge_loop_head(source, is_number, is_own_variable)
        else:
            judge_arithmetic(source, read_delimited(source), is_number, is_own_variable)
        return
    found = BRACED.fullmatch(source)
    if found is None or not _is_plain_subscript(found["at"], is_number):
        raise NeedsApproval(f"{quote_text(source)} can do more than insert a value")
    rest = found["rest"]
    if found["sign"]:
        fits = rest == "" and (found["sign"] == "#" or found["at"] in ("@", "*"))
    elif part := PART.fullmatch(rest):
        for one in part[1].split(":", 1):
            judge_arithmetic(source, read_arithmetic(one), is_number, is_own_variable)
        return
    else:
        fits = rest == "" or CHANGED.fullmatch(rest) is not None
        is_own = is_own_variable(found["name"]) and found["at"] is None
        fits = fits or (is_own and DEFAULT.fullmatch(rest) is not None)
    if not fits:
        raise NeedsApproval(f"{quote_text(source)} can do more than insert a value")


def _is_plain_subscript(text: str | None, is_number: IsNumber) -> bool:
    if text is None:
        return True
    found = SUBSCRIPT.fullmatch(text)
    name = found and (found["inserted"] or found["named"])
    return found is not None and (not name or is_number(name))


def find_set_by_expansion(source: str) -> frozenset[str]:
    """Find the variables that `${x:=…}` sets."""
    found = BRACED.fullmatch(source)
    return frozenset((found["name"],)) if found and DEFAULT.fullmatch(found["rest"]) else frozenset()


def does_hidden_arithmetic(command: ShellCommand) -> bool:
    """True if a word computes something that is not among the expansions of the line."""
    seen = [one for one in _list_expansions(command) if one.startswith("$((")]
    for word in command.words:
        source = LITERAL_ARITHMETIC.sub("", word.source)
        for one in seen:
            source = source.replace(one, "")
        if ARITHMETIC.search(source):
            return True
    return False


def _list_expansions(command: ShellCommand) -> list[str]:
    inner = [one for line in command.nested for within in line.list_commands() for one in within.expansions]
    return [*command.expansions, *inner]
